package cos

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// lockTag is the key of the tag that serves as a mutex of the account while a lock object
// is created.
const lockTag = "tencentcloud-terraform-lock"

// An object is the state of one workspace. The store has no conditional writes, so it has
// no versions.
type object struct {
	bucket.Object
	b *cosBackend
}

func md5sum(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

func (o *object) lockFile() string { return o.File + ".tflock" }

// tag returns the value of the tag for this state.
func (o *object) tag() string { return md5sum([]byte(o.Bucket + ":" + o.lockFile())) }

func (o *object) Read(ctx context.Context) (backend.Payload, error) {
	return backend.Collect(ctx, o)
}

// Fetch implements backend.Streamed.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	_, err := o.Client.Fetch(ctx, o.File, take)
	return "", err
}

func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed.
func (o *object) Send(ctx context.Context, t *backend.Text, _ backend.Prior, lock string) (string, error) {
	if lock != "" {
		text, err := o.Client.Read(ctx, o.lockFile())
		if err != nil {
			return "", err
		}
		if text == nil || md5sum(text) != lock {
			return "", &backend.Error{Argument: "bucket", Answer: "the lock object is not that of this run any more", Err: backend.ErrLockLost}
		}
	}
	return "", o.Client.Write(ctx, o.File, t, "Failed to write the state")
}

// holder returns the holder of the lock, or nil. Unlock accepts its ID.
func (o *object) holder(ctx context.Context) (*store.LockInfo, error) {
	text, err := o.Client.Read(ctx, o.lockFile())
	if err != nil || text == nil {
		return nil, err
	}
	info, err := store.ParseLockInfo(text)
	if err != nil {
		info = store.LockInfo{}
	}
	info.ID = md5sum(text)
	return &info, nil
}

// Lock creates the tag, which only one process can do, then the lock object if there is
// none, and deletes the tag. The lock's ID is the checksum of the object.
func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	const summary = "Error acquiring the state lock"
	for try := 0; ; try++ {
		// If the lock is held already, the tag is not needed.
		holder, err := o.holder(ctx)
		if err != nil {
			return "", err
		}
		if holder != nil {
			return "", &backend.LockedError{Holder: holder}
		}
		code, refusal := o.callTag(ctx, "CreateTag", nil)
		if refusal == nil {
			break
		}
		if code != "ResourceInUse.TagDuplicate" {
			refusal.Summary = summary
			return "", refusal
		}
		if try >= 5 {
			return "", &backend.LockedError{
				Reason: fmt.Sprintf("the tag %s=%s says that somebody is about to take the lock; if no run works on this state, one has died there, and force-unlock %s takes the tag away", lockTag, o.tag(), o.tag()),
				Holder: &store.LockInfo{ID: o.tag(), Info: "tag of the account", Path: o.lockFile()},
			}
		}
		if err := o.b.s.Sleep(ctx, time.Second); err != nil {
			return "", err
		}
	}
	id, err := o.makeLock(ctx, info)
	if e := o.dropTag(context.WithoutCancel(ctx)); e != nil && err == nil {
		err = e
		o.Remove(context.WithoutCancel(ctx), o.lockFile())
	}
	return id, err
}

// makeLock creates the lock object.
func (o *object) makeLock(ctx context.Context, info store.LockInfo) (string, error) {
	holder, err := o.holder(ctx)
	if err != nil {
		return "", err
	}
	if holder != nil {
		return "", &backend.LockedError{Holder: holder}
	}
	info.Path = o.lockFile()
	text := info.JSON()
	resp, err := o.Put(ctx, o.lockFile(), backend.Bytes(text), http.Header{"X-Cos-Forbid-Overwrite": {"true"}})
	if err != nil || resp.Repeated > 0 && resp.Status == http.StatusConflict {
		// It is unknown whether the write succeeded.
		now, e := o.Client.Read(context.WithoutCancel(ctx), o.lockFile())
		if e == nil && bytes.Equal(now, text) {
			return md5sum(text), nil
		}
		if err != nil {
			return "", err
		}
	}
	switch resp.Status {
	case http.StatusOK:
		return md5sum(text), nil
	case http.StatusConflict:
		return "", &backend.LockedError{Reason: "somebody else took the lock just now", Again: true}
	}
	return "", o.Refused("Error acquiring the state lock", "PutObject", resp)
}

func (o *object) callTag(ctx context.Context, action string, out any) (string, *backend.Error) {
	c, err := o.b.account.Credentials(ctx)
	if err != nil {
		return "", &backend.Error{Argument: "assume_role", Answer: diag.Reason(err), Err: err}
	}
	return o.b.account.call(ctx, c, "tag", action, "2018-08-13", map[string]string{"TagKey": lockTag, "TagValue": o.tag()}, out)
}

// dropTag deletes the tag. While it exists, no process can take the lock.
func (o *object) dropTag(ctx context.Context) error {
	var last error
	for range 30 {
		code, err := o.callTag(ctx, "DeleteTag", nil)
		if err == nil || strings.HasPrefix(code, "ResourceNotFound") {
			return nil
		}
		var found struct{ Tags []struct{ TagValue string } }
		if _, e := o.callTag(ctx, "DescribeTags", &found); e == nil && len(found.Tags) == 0 {
			return nil
		}
		last = err
		if e := o.b.s.Sleep(ctx, time.Second); e != nil {
			return e
		}
	}
	return last
}

func (o *object) Unlock(ctx context.Context, id string) error {
	holder, err := o.holder(ctx)
	switch {
	case err != nil:
		return err
	case holder == nil && id == o.tag():
		return o.dropTag(ctx)
	case holder == nil:
		return backend.NotHeld(id)
	case holder.ID != id:
		return backend.WrongID(id, holder.ID)
	}
	return o.Remove(ctx, o.lockFile())
}
