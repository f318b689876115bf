package oss

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// The columns of the row with the state's checksum.
const (
	digestSuffix = "-md5"
	digestColumn = "Digest"
	nextColumn   = "NextDigest"
)

// writeFailed is the summary of a message.
const writeFailed = "Failed to write the state"

// An object is the state of one workspace. The store has no conditional writes, so it has
// no versions.
type object struct {
	bucket.Object
	b *ossBackend
	// seen is the checksum of the state that was last read or written, if there is a table.
	seen atomic.Pointer[string]
}

// id returns the key of the lock's row.
func (o *object) id() string { return o.Bucket + "/" + o.File }

func (o *object) Read(ctx context.Context) (backend.Payload, error) { return backend.Collect(ctx, o) }

// Fetch implements backend.Streamed. If the checksum in the table is that of another state,
// it reads again for some time, because a write may become visible late.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	for try := 0; ; try++ {
		got, err := o.Client.Fetch(ctx, o.File, take)
		if err == nil && got == "" {
			err = take(http.NoBody) // discards the content of an earlier attempt
		}
		if err != nil {
			return "", err
		}
		var row map[string]string
		if o.b.table != nil {
			if row, err = o.b.table.get(ctx, o.id()+digestSuffix); err != nil {
				return "", err
			}
		}
		want, next := row[digestColumn], row[nextColumn]
		if want == "" || want == got || next != "" && next == got {
			o.seen.Store(&got)
			return "", nil
		}
		if try >= 5 {
			return "", &backend.Error{Argument: "tablestore_table", Summary: "Failed to read the state",
				Answer: fmt.Sprintf("the state does not have the checksum that the table holds for it: it has %q, the table says %q", got, want),
				Advice: fmt.Sprintf("The state may not be the last that was written. If it is, set the column Digest of the row %q to %q.", o.id()+digestSuffix, got)}
		}
		if err := o.b.s.Sleep(ctx, 2*time.Second); err != nil {
			return "", err
		}
	}
}

func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed.
func (o *object) Send(ctx context.Context, t *backend.Text, _ backend.Prior, lock string) (string, error) {
	if lock != "" {
		holder, err := o.holder(ctx)
		if err != nil {
			return "", err
		}
		if holder == nil || holder.ID != lock {
			return "", &backend.Error{Argument: "tablestore_table", Answer: "the row of the lock is not that of this run any more", Err: backend.ErrLockLost}
		}
	}
	if o.b.table == nil {
		return "", o.Client.Write(ctx, o.File, t, writeFailed)
	}
	sum := t.MD5()
	digest := hex.EncodeToString(sum[:])
	if err := o.announce(ctx, digest); err != nil {
		return "", err
	}
	if err := o.Client.Write(ctx, o.File, t, writeFailed); err != nil {
		return "", err
	}
	o.seen.Store(&digest)
	_, err := o.b.table.put(ctx, o.id()+digestSuffix, []column{{digestColumn, digest}}, false)
	return "", err
}

// announce stores the checksum of the state that is about to be written next to the present
// one. A reader that finds the new state with the old checksum then knows that the writer
// ended in between. OpenTofu and Terraform ignore the additional column. After the write,
// the row is as they write it.
func (o *object) announce(ctx context.Context, next string) error {
	row, err := o.b.table.get(ctx, o.id()+digestSuffix)
	if err != nil {
		return err
	}
	now := row[digestColumn]
	if seen, other := o.seen.Load(), row[nextColumn]; other != "" && seen != nil && *seen == other { // the announced write was carried out
		now = other
	}
	_, err = o.b.table.put(ctx, o.id()+digestSuffix, []column{{digestColumn, now}, {nextColumn, next}}, false)
	return err
}

// holder returns the holder of the lock, or nil.
func (o *object) holder(ctx context.Context) (*store.LockInfo, error) {
	row, err := o.b.table.get(ctx, o.id())
	if err != nil || row == nil {
		return nil, err
	}
	info, err := store.ParseLockInfo([]byte(row["Info"]))
	if err != nil {
		return &store.LockInfo{Path: o.id()}, nil
	}
	return &info, nil
}

func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	if o.b.table == nil {
		return "", backend.ErrNoLocks
	}
	info.Path = o.id()
	there, err := o.b.table.put(ctx, o.id(), []column{{"Info", string(info.JSON())}}, true)
	if err != nil || there {
		// The lock may be from an earlier attempt whose response was lost.
		holder, e := o.holder(context.WithoutCancel(ctx))
		switch {
		case e == nil && holder != nil && holder.ID == info.ID:
		case err != nil:
			return "", err
		case e != nil:
			return "", e
		case holder == nil:
			return "", &backend.LockedError{Reason: "the state was locked a moment ago", Again: true}
		default:
			return "", &backend.LockedError{Holder: holder}
		}
	}
	return info.ID, nil
}

func (o *object) Unlock(ctx context.Context, id string) error {
	if o.b.table == nil {
		return backend.ErrNoLocks
	}
	holder, err := o.holder(ctx)
	switch {
	case err != nil:
		return err
	case holder == nil:
		return backend.NotHeld(id)
	case holder.ID != id:
		return backend.WrongID(id, holder.ID)
	}
	return o.b.table.remove(ctx, o.id())
}
