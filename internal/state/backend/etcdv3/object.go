package etcdv3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	lockSuffix = ".lock"
	infoSuffix = ".lockinfo"
	// leaseTTL is the time in seconds after which the lock of a process that has ended
	// expires.
	leaseTTL = 60
)

// An object is the key of one workspace. Its version is the key's ModRevision.
type object struct {
	b   *etcdBackend
	key string

	mu   sync.Mutex
	held *held
}

// A held is the lock of this process: a lease that the client renews, and its key.
type held struct {
	id      string
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

// Limit implements backend.Limited.
func (o *object) Limit(bool) (int64, string) { return int64(o.b.limit - 512 - len(o.key)), tooLarge }

func (o *object) Read(ctx context.Context) (backend.Payload, error) {
	resp, err := do(ctx, o.b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, o.key)
	})
	if err != nil || len(resp.Kvs) == 0 {
		return backend.Payload{}, err
	}
	p := backend.Payload{Data: resp.Kvs[0].Value, Version: strconv.FormatInt(resp.Kvs[0].ModRevision, 10)}
	if len(p.Data) == 0 {
		p.Data = nil
	}
	return p, nil
}

func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	var conditions []clientv3.Cmp
	var owner string
	if lock != "" {
		o.mu.Lock()
		h := o.held
		o.mu.Unlock()
		if h == nil || h.id != lock {
			return "", backend.ErrLockLost
		}
		owner = h.mutex.Key()
		conditions = append(conditions, h.mutex.IsOwner())
	}
	if !prior.Unknown {
		var revision int64 // 0: the key does not exist
		if prior.Version != "" {
			var err error
			if revision, err = strconv.ParseInt(prior.Version, 10, 64); err != nil {
				return "", err
			}
		}
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(o.key), "=", revision))
	}
	other := []clientv3.Op{}
	if owner != "" {
		other = append(other, clientv3.OpGet(owner, clientv3.WithCountOnly()))
	}
	resp, err := do(ctx, o.b, len(data), func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).If(conditions...).Then(clientv3.OpPut(o.key, string(data))).Else(other...).Commit()
	})
	switch {
	case err != nil:
		// It is unknown whether the write succeeded.
		if p, e := o.Read(context.WithoutCancel(ctx)); ctx.Err() == nil && e == nil && bytes.Equal(p.Data, data) && (prior.Unknown || p.Version != prior.Version) {
			return p.Version, nil
		}
		return "", err
	case resp.Succeeded:
		return strconv.FormatInt(resp.Header.Revision, 10), nil
	case owner != "" && resp.Responses[0].GetResponseRange().GetCount() == 0:
		return "", &backend.Error{Argument: "lock", Answer: "the lease that held the lock has ended", Err: backend.ErrLockLost}
	}
	return "", backend.ErrChanged
}

func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	if !o.b.lock {
		return "", backend.ErrNoLocks
	}
	type result struct {
		held   *held
		locked bool
	}
	got, err := do(ctx, o.b, 0, func(ctx context.Context, c *clientv3.Client) (result, error) {
		lease, err := c.Grant(ctx, leaseTTL)
		if err != nil {
			return result{}, err
		}
		// The session outlives this request, and an interrupt.
		session, err := concurrency.NewSession(c, concurrency.WithTTL(leaseTTL), concurrency.WithLease(lease.ID), concurrency.WithContext(context.WithoutCancel(ctx)))
		if err != nil {
			return result{}, err
		}
		h := &held{id: info.ID, session: session, mutex: concurrency.NewMutex(session, o.key+lockSuffix)}
		err = h.mutex.TryLock(ctx)
		if err == nil {
			// The lock's info expires with the lease, as the lock does.
			_, err = c.Put(ctx, o.key+infoSuffix, string(info.JSON()), clientv3.WithLease(lease.ID))
		}
		if err == nil {
			return result{held: h}, nil
		}
		session.Close()
		if errors.Is(err, concurrency.ErrLocked) {
			return result{locked: true}, nil
		}
		return result{}, err
	})
	if err != nil {
		return "", err
	}
	if got.locked {
		_, holder, err := o.holder(ctx)
		if err != nil {
			return "", err
		}
		if holder == nil {
			return "", &backend.LockedError{Reason: "the state was locked a moment ago", Holder: &store.LockInfo{ID: "0"}, Again: true}
		}
		return "", &backend.LockedError{Holder: holder}
	}
	o.mu.Lock()
	o.held = got.held
	o.mu.Unlock()
	return info.ID, nil
}

// holder returns the lease that holds the lock, with its info; nil if there is none.
func (o *object) holder(ctx context.Context) (clientv3.LeaseID, *store.LockInfo, error) {
	resp, err := do(ctx, o.b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).Then(clientv3.OpGet(o.key+lockSuffix+"/", clientv3.WithFirstCreate()...), clientv3.OpGet(o.key+infoSuffix)).Commit()
	})
	if err != nil {
		return 0, nil, err
	}
	keys := resp.Responses[0].GetResponseRange().Kvs
	if len(keys) == 0 {
		return 0, nil, nil
	}
	lease := keys[0].Lease
	info := store.LockInfo{ID: strconv.FormatInt(lease, 16)}
	if text := resp.Responses[1].GetResponseRange().Kvs; len(text) > 0 && (text[0].Lease == 0 || text[0].Lease == lease) {
		if i, err := store.ParseLockInfo(text[0].Value); err == nil && i.ID != "" {
			info = i
		}
	}
	return clientv3.LeaseID(lease), &info, nil
}

// Unlock revokes the lease that holds the lock, which deletes its keys.
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
	lease, holder, err := o.holder(ctx)
	switch {
	case err != nil:
		return err
	case ours != nil && (holder == nil || lease != ours.session.Lease()):
		ours.session.Close()
		return &backend.Error{Argument: "lock", Answer: "the lease that held the lock has ended", Err: backend.ErrLockLost}
	case holder == nil:
		return backend.NotHeld(id)
	case holder.ID != id && strconv.FormatInt(int64(lease), 16) != id:
		return backend.WrongID(id, holder.ID)
	}
	if ours != nil {
		ours.session.Orphan() // it is not renewed any more
	}
	_, err = do(ctx, o.b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		if _, err := c.Revoke(ctx, lease); err != nil {
			return nil, err
		}
		return c.Txn(ctx).Then(clientv3.OpDelete(o.key + infoSuffix)).Commit() // other programs may write it without a lease
	})
	return err
}

// Probe implements backend.Prober.
func (o *object) Probe() (backend.Object, func(context.Context) error) {
	name := "doctor/" + store.NewID()
	return &object{b: o.b, key: o.key + ".beside/" + name}, func(ctx context.Context) error { return o.DeleteBlob(ctx, name) }
}

// Objects next to the state have keys below ".beside/". A value begins with the number of
// its parts. All parts except the first are below ".beside-more/".

func (o *object) more(name string, i int) string {
	return fmt.Sprintf("%s.beside-more/%s/%d", o.key, name, i)
}

func (o *object) put(ctx context.Context, key string, data []byte) error {
	_, err := do(ctx, o.b, len(data), func(ctx context.Context, c *clientv3.Client) (*clientv3.PutResponse, error) {
		return c.Put(ctx, key, string(data))
	})
	return err
}

func (o *object) getKey(ctx context.Context, key string) ([]byte, bool, error) {
	resp, err := do(ctx, o.b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) { return c.Get(ctx, key) })
	if err != nil || len(resp.Kvs) == 0 {
		return nil, false, err
	}
	return resp.Kvs[0].Value, true, nil
}

func (o *object) PutBlob(ctx context.Context, name string, data []byte) error {
	size := max(1024, min(o.b.limit, defaultLimit)-8192)
	parts := slices.Collect(slices.Chunk(data, size))
	if len(parts) == 0 {
		parts = [][]byte{nil}
	}
	for i, part := range parts[1:] {
		if err := o.put(ctx, o.more(name, i+1), part); err != nil {
			return err
		}
	}
	return o.put(ctx, o.key+".beside/"+name, append(fmt.Appendf(nil, "%d\n", len(parts)), parts[0]...))
}

func (o *object) GetBlob(ctx context.Context, name string) ([]byte, error) {
	first, ok, err := o.getKey(ctx, o.key+".beside/"+name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, backend.ErrNoBlob
	}
	head, data, _ := bytes.Cut(first, []byte("\n"))
	parts, err := strconv.Atoi(string(head))
	if err != nil {
		return nil, &backend.Error{Argument: "prefix", Answer: fmt.Sprintf("%q is not what was written there", name)}
	}
	for i := 1; i < parts; i++ {
		part, ok, err := o.getKey(ctx, o.more(name, i))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, &backend.Error{Argument: "prefix", Answer: fmt.Sprintf("a part of %q is missing", name)}
		}
		data = append(data, part...)
	}
	return data, nil
}

func (o *object) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	root := o.key + ".beside/"
	resp, err := do(ctx, o.b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, root+prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, kv := range resp.Kvs {
		names = append(names, strings.TrimPrefix(string(kv.Key), root))
	}
	slices.Sort(names)
	return names, nil
}

func (o *object) DeleteBlob(ctx context.Context, name string) error {
	_, err := do(ctx, o.b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).Then(clientv3.OpDelete(o.key+".beside/"+name), clientv3.OpDelete(o.key+".beside-more/"+name+"/", clientv3.WithPrefix())).Commit()
	})
	return err
}
