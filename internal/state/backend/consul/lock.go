package consul

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// Values that the client libraries of Consul use for their locks, so that other programs
// recognize the key as a lock.
const (
	sessionName = "Consul API Lock"
	sessionTTL  = 15 * time.Second
	lockDelay   = 5 * time.Second
	lockFlags   = "3304740253564472344" // 0x2ddccbc058a50c18
)

// A session holds a lock while it is renewed.
type session struct {
	id     string
	cancel context.CancelFunc
	ended  chan struct{} // closed when the session is no longer renewed
}

func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	if !o.b.lock {
		return "", backend.ErrNoLocks
	}
	body := fmt.Sprintf(`{"Name":%q,"TTL":"%s","LockDelay":"%s"}`, sessionName, sessionTTL, lockDelay)
	resp, err := o.b.send(ctx, "PUT", "session/create", nil, []byte(body), true)
	if err != nil {
		return "", err
	}
	var made struct{ ID string }
	if resp.Status != http.StatusOK {
		return "", o.b.refused("Error acquiring the state lock", resp)
	}
	if json.Unmarshal(resp.Body, &made) != nil || made.ID == "" {
		return "", o.b.odd("Error acquiring the state lock")
	}
	s := o.b.keep(ctx, made.ID)
	info.ID, info.Info, info.Path = s.id, "consul session: "+s.id, o.key
	if err := o.acquire(ctx, info); err != nil {
		s.end()
		o.b.destroy(context.WithoutCancel(ctx), s.id)
		return "", err
	}
	if err := o.b.put(ctx, o.below()+".lockinfo", info.JSON(), 0); err != nil {
		s.end()
		o.release(context.WithoutCancel(ctx), s.id)
		return "", err
	}
	o.mu.Lock()
	o.held = s
	o.mu.Unlock()
	return s.id, nil
}

// keep renews a session until it ends or Consul does not know it any more. An interrupted
// run also keeps its lock until it releases it.
func (b *consulBackend) keep(ctx context.Context, id string) *session {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{id: id, cancel: cancel, ended: make(chan struct{})}
	go func() { // end waits for it
		defer close(s.ended)
		for b.s.Sleep(ctx, sessionTTL/2) == nil {
			resp, err := b.send(ctx, "PUT", "session/renew/"+id, nil, nil, true)
			if err == nil && resp.Status == http.StatusNotFound {
				return // the next write detects the loss
			}
		}
	}()
	return s
}

func (s *session) end() {
	s.cancel()
	<-s.ended
}

// acquire takes the lock's key, or returns an error with its holder.
func (o *object) acquire(ctx context.Context, info store.LockInfo) error {
	const summary = "Error acquiring the state lock"
	key := o.below() + ".lock"
	for try := 0; ; try++ {
		resp, err := o.b.send(ctx, "PUT", "kv/"+escape(key), url.Values{"acquire": {info.ID}, "flags": {lockFlags}}, []byte{}, true)
		if err != nil {
			return err
		}
		if resp.Status != http.StatusOK {
			return o.b.refused(summary, resp)
		}
		if strings.TrimSpace(string(resp.Body)) == "true" {
			return nil
		}
		now, err := o.b.get(ctx, key)
		if err != nil {
			return err
		}
		if now != nil && now.Session == info.ID {
			return nil // the response of an earlier attempt was lost
		}
		if now != nil && now.Session != "" {
			holder := store.LockInfo{ID: now.Session, Info: "consul session: " + now.Session}
			if text, err := o.b.get(ctx, o.below()+".lockinfo"); err == nil && text != nil {
				if i, err := store.ParseLockInfo(text.Value); err == nil && i.ID == now.Session {
					holder = i
				}
			}
			return &backend.LockedError{Holder: &holder}
		}
		// No session holds the key: one ended without releasing it, and Consul refuses it
		// for the lock delay.
		if try > int(lockDelay/time.Second) {
			return &backend.LockedError{Reason: "nobody holds the lock, and Consul does not give it", Holder: &store.LockInfo{ID: "lock-delay"}}
		}
		if err := o.b.s.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// release releases the lock's key and deletes the lock's information.
func (o *object) release(ctx context.Context, id string) error {
	key := o.below() + ".lock"
	if text, err := o.b.get(ctx, o.below()+".lockinfo"); err == nil && text != nil {
		if i, err := store.ParseLockInfo(text.Value); err != nil || i.ID == id {
			resp, err := o.b.send(ctx, "DELETE", "kv/"+escape(o.below()+".lockinfo"), url.Values{"cas": {strconv.FormatUint(text.ModifyIndex, 10)}}, nil, true)
			if err != nil {
				return err
			}
			if resp.Status != http.StatusOK {
				return o.b.refused("", resp)
			}
		}
	}
	resp, err := o.b.send(ctx, "PUT", "kv/"+escape(key), url.Values{"release": {id}, "flags": {lockFlags}}, []byte{}, true)
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK {
		return o.b.refused("", resp)
	}
	if now, err := o.b.get(ctx, key); err != nil {
		return err
	} else if now != nil && now.Session == "" {
		resp, err := o.b.send(ctx, "DELETE", "kv/"+escape(key), url.Values{"cas": {strconv.FormatUint(now.ModifyIndex, 10)}}, nil, true)
		if err != nil {
			return err
		}
		if resp.Status != http.StatusOK {
			return o.b.refused("", resp)
		}
	}
	return o.b.destroy(ctx, id)
}

func (b *consulBackend) destroy(ctx context.Context, id string) error {
	resp, err := b.send(ctx, "PUT", "session/destroy/"+id, nil, nil, true)
	if err == nil && resp.Status != http.StatusOK {
		err = b.refused("", resp)
	}
	return err
}

func (o *object) Unlock(ctx context.Context, id string) error {
	if !o.b.lock {
		return backend.ErrNoLocks
	}
	o.mu.Lock()
	ours := o.held
	if ours != nil && ours.id == id {
		o.held = nil
	} else {
		ours = nil
	}
	o.mu.Unlock()
	if ours != nil {
		ours.end()
	}
	now, err := o.b.get(ctx, o.below()+".lock")
	if err != nil {
		return err
	}
	if now != nil && now.Session == id {
		return o.release(ctx, id)
	}
	if ours != nil {
		return &backend.Error{Argument: "lock", Answer: "the consul lock was lost: its session has ended", Err: backend.ErrLockLost}
	}
	text, err := o.b.get(ctx, o.below()+".lockinfo")
	if err != nil {
		return err
	}
	var left store.LockInfo
	if text != nil {
		left, _ = store.ParseLockInfo(text.Value)
	}
	switch {
	case now != nil && now.Session != "":
		return backend.WrongID(id, now.Session)
	case left.ID == id: // the session ended by itself, and the lock's information remains
		return o.release(ctx, id)
	}
	return backend.NotHeld(id)
}
