package gcs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// An object is the state of one workspace. Its version is its generation.
type object struct {
	b          *bucket
	file, lock string
}

func (o *object) Read(ctx context.Context) (backend.Payload, error) { return backend.Collect(ctx, o) }

// Fetch implements backend.Streamed.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	generation, err := o.b.fetch(ctx, o.file, o.b.customer(http.Header{}), take)
	if err == nil && generation == "" {
		return "0", nil
	}
	return generation, err
}

func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed.
func (o *object) Send(ctx context.Context, t *backend.Text, prior backend.Prior, lock string) (string, error) {
	if lock != "" {
		_, generation, err := o.b.read(ctx, o.lock, nil)
		if err != nil {
			return "", err
		}
		if generation != lock {
			return "", &backend.Error{Argument: "bucket", Answer: "the lock object is not that of this run any more", Err: backend.ErrLockLost}
		}
	}
	want := prior.Version
	switch {
	case prior.Unknown:
		want = ""
	case want == "" && prior.Absent:
		want = "0"
	}
	generation, resp, err := o.b.write(ctx, o.file, t, want, o.b.customer(http.Header{}))
	switch {
	case err == nil && resp.Status == http.StatusOK:
		return generation, nil
	case err == nil && resp.Status != http.StatusPreconditionFailed:
		return "", o.b.refused("Failed to write the state", "storage.objects.create", resp)
	case err == nil && resp.Repeated == 0:
		return "", &backend.Error{Argument: "bucket", Answer: "the state has another generation than the one that was read", Err: backend.ErrChanged}
	}
	// An earlier attempt may have succeeded though its response was lost.
	sum := sha256.New()
	generation, e := o.b.fetch(context.WithoutCancel(ctx), o.file, o.b.customer(http.Header{}), backend.Hash(sum))
	switch {
	case e == nil && generation != "" && [sha256.Size]byte(sum.Sum(nil)) == t.SHA256():
		return generation, nil
	case err != nil:
		return "", err
	}
	return "", &backend.Error{Argument: "bucket", Answer: "the state has another generation than the one that was read", Err: backend.ErrChanged}
}

// holder returns the holder of the lock, or nil. The lock's ID is its generation.
func (o *object) holder(ctx context.Context) (*store.LockInfo, []byte, error) {
	text, generation, err := o.b.read(ctx, o.lock, nil)
	if err != nil || text == nil {
		return nil, nil, err
	}
	info, err := store.ParseLockInfo(text)
	if err != nil {
		info = store.LockInfo{}
	}
	info.ID = generation
	return &info, text, nil
}

// Lock creates the lock object if there is none. The lock's ID is the generation of the
// object.
func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	info.Path = "gs://" + o.b.name + "/" + o.lock
	text := info.JSON()
	generation, resp, err := o.b.write(ctx, o.lock, backend.Bytes(text), "0", http.Header{})
	switch {
	case err == nil && resp.Status == http.StatusOK:
		return generation, nil
	case err == nil && resp.Status != http.StatusPreconditionFailed:
		return "", o.b.refused("Error acquiring the state lock", "storage.objects.create", resp)
	}
	holder, now, e := o.holder(context.WithoutCancel(ctx))
	switch {
	case e == nil && holder != nil && bytes.Equal(now, text): // an earlier attempt has created it, and its response was lost
		return holder.ID, nil
	case err != nil:
		return "", err
	case e != nil:
		return "", e
	case holder == nil:
		return "", &backend.LockedError{Reason: "somebody else had the lock just now", Again: true}
	}
	return "", &backend.LockedError{Holder: holder}
}

func (o *object) Unlock(ctx context.Context, id string) error {
	if _, err := strconv.ParseInt(id, 10, 64); err != nil {
		return &backend.Error{Answer: fmt.Sprintf("the lock ID of this backend is a number, the generation of the lock object, and not %q", id), Advice: "Give the ID as it was shown with the lock."}
	}
	holder, _, err := o.holder(ctx)
	switch {
	case err != nil:
		return err
	case holder == nil:
		return backend.NotHeld(id)
	case holder.ID != id:
		return backend.WrongID(id, holder.ID)
	}
	return o.b.delete(ctx, o.lock, id)
}

// Probe implements backend.Prober.
func (o *object) Probe() (backend.Object, func(context.Context) error) {
	name := "doctor/" + store.NewID()
	return &object{b: o.b, file: o.beside() + name}, func(ctx context.Context) error { return o.DeleteBlob(ctx, name) }
}

// beside returns the prefix of objects stored next to the state.
func (o *object) beside() string { return o.file + ".beside/" }

func (o *object) PutBlob(ctx context.Context, name string, data []byte) error {
	_, resp, err := o.b.write(ctx, o.beside()+name, backend.Bytes(data), "", o.b.customer(http.Header{}))
	if err == nil && resp.Status != http.StatusOK {
		err = o.b.refused("Failed to write beside the state", "storage.objects.create", resp)
	}
	return err
}

func (o *object) GetBlob(ctx context.Context, name string) ([]byte, error) {
	data, _, err := o.b.read(ctx, o.beside()+name, o.b.customer(http.Header{}))
	if err == nil && data == nil {
		err = backend.ErrNoBlob
	}
	return data, err
}

func (o *object) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	all, err := o.b.list(ctx, o.beside()+prefix, "")
	for i, name := range all {
		all[i] = strings.TrimPrefix(name, o.beside())
	}
	return all, err
}

func (o *object) DeleteBlob(ctx context.Context, name string) error {
	return o.b.delete(ctx, o.beside()+name, "")
}
