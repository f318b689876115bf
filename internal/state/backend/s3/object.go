package s3

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// An object is the state of one workspace.
type object struct {
	b   *s3Backend
	key string
	// seen is the digest of the state that was last read or written, if there is a table.
	seen atomic.Pointer[string]
}

// path identifies the state in locks and in the table.
func (o *object) path() string     { return o.b.bucket + "/" + o.key }
func (o *object) lockKey() string  { return o.key + ".tflock" }
func (o *object) digestID() string { return o.path() + "-md5" }

// get reads an object; nil if it does not exist.
func (o *object) get(ctx context.Context, key, what string) (*rest.Response, error) {
	return o.fetch(ctx, key, what, nil)
}

// fetch reads an object and passes it to into, if that is not nil.
func (o *object) fetch(ctx context.Context, key, what string, into func(io.Reader) error) (*rest.Response, error) {
	resp, err := o.b.do(ctx, rest.Request{Method: "GET", URL: o.b.base + "/" + escape(key), Header: o.b.readers(), Repeat: true, Into: into})
	switch {
	case err != nil:
		return nil, err
	case resp.Status == http.StatusOK:
		return resp, nil
	case resp.Status == http.StatusNotFound && answerOf(resp).Code != "NoSuchBucket":
		return nil, nil
	}
	return nil, o.b.refused("Failed to read the "+what, resp, "s3:GetObject")
}

// Read implements backend.Object.
func (o *object) Read(ctx context.Context) (backend.Payload, error) { return backend.Collect(ctx, o) }

// Fetch implements backend.Streamed. With a table, the content must have the digest in it.
// An outdated store is read again for ten seconds.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	for waited := time.Duration(0); ; waited += 2 * time.Second {
		seen := summed{md5.New(), 0}
		resp, err := o.fetch(ctx, o.key, "state", func(r io.Reader) error {
			seen = summed{md5.New(), 0}
			return take(backend.Tee(r, &seen))
		})
		if err != nil {
			return "", err
		}
		version := ""
		if resp != nil {
			version = resp.Header.Get("ETag")
		} else if err := take(http.NoBody); err != nil { // discards the content of an earlier attempt
			return "", err
		}
		if o.b.table == "" {
			return version, nil
		}
		want, next, err := o.digest(ctx)
		if err != nil {
			return "", err
		}
		have := ""
		if seen.n > 0 {
			have = hex.EncodeToString(seen.Sum(nil))
		}
		if want == "" || want == have || next != "" && next == have {
			o.seen.Store(&have)
			return version, nil
		}
		if waited >= 10*time.Second {
			shown := have
			if have == "" {
				shown = "(there is none)"
			}
			return "", &backend.Error{
				Argument: "dynamodb_table", Code: diag.CodeBackendDigest, Summary: "State does not match its digest",
				Answer: fmt.Sprintf("the state in the bucket has the MD5 digest %s, and the table %s has %s for it", shown, o.b.table, want),
				Advice: fmt.Sprintf("Either the bucket gave an old version, or somebody changed the state by hand. Wait a few minutes and try again. If the state in the bucket is right, set Digest of the item with the LockID %q to its digest.", o.digestID()),
			}
		}
		if err := o.b.s.Sleep(ctx, 2*time.Second); err != nil {
			return "", err
		}
	}
}

// summed computes the checksum and the size of data while it is read.
type summed struct {
	hash.Hash
	n int
}

func (s *summed) Write(b []byte) (int, error) {
	s.n += len(b)
	return s.Hash.Write(b)
}

func digestOf(t *backend.Text) string {
	sum := t.MD5()
	return hex.EncodeToString(sum[:])
}

// put writes an object. With a condition, a response with status 412 or 409 is errExists.
func (o *object) put(ctx context.Context, key string, t *backend.Text, tags string, condition http.Header) (*rest.Response, error) {
	b := o.b
	h := b.readers()
	h.Set("Content-Type", "application/json")
	if b.checksum {
		sum := t.SHA256()
		h.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
		h.Set("X-Amz-Sdk-Checksum-Algorithm", "SHA256")
	}
	if b.encrypt && b.customerKey == "" {
		h.Set("X-Amz-Server-Side-Encryption", "AES256")
		if b.kmsKey != "" {
			h.Set("X-Amz-Server-Side-Encryption", "aws:kms")
			h.Set("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", b.kmsKey)
		}
	}
	if b.acl != "" {
		h.Set("X-Amz-Acl", b.acl)
	}
	if tags != "" {
		h.Set("X-Amz-Tagging", tags)
	}
	maps.Copy(h, condition)
	return b.do(ctx, rest.Request{Method: "PUT", URL: b.base + "/" + escape(key), Header: h, Content: t, Repeat: len(condition) == 0})
}

// Write implements backend.Object.
func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed. It compares the version twice: by reading it, for
// services that ignore conditions, and with the condition of the request.
func (o *object) Send(ctx context.Context, t *backend.Text, prior backend.Prior, lock string) (string, error) {
	if err := o.holds(ctx, lock); err != nil {
		return "", err
	}
	condition := http.Header{}
	if !prior.Unknown {
		resp, err := o.b.send(ctx, "HEAD", o.key, nil, o.b.readers(), nil, true)
		if err != nil {
			return "", err
		}
		switch {
		case resp.Status == http.StatusNotFound:
			if !prior.Absent {
				return "", changed()
			}
			condition.Set("If-None-Match", "*")
		case resp.Status != http.StatusOK:
			return "", o.b.refused("Failed to read the state", resp, "s3:GetObject")
		case prior.Absent && resp.Header.Get("Content-Length") != "0" || !prior.Absent && resp.Header.Get("ETag") != prior.Version:
			return "", changed()
		default:
			condition.Set("If-Match", resp.Header.Get("ETag"))
		}
	}
	if o.b.table == "" {
		return o.replace(ctx, t, prior, condition)
	}
	was, err := o.announce(ctx, digestOf(t))
	if err != nil {
		return "", err
	}
	version, err := o.replace(ctx, t, prior, condition)
	if version == "" && errors.Is(err, backend.ErrChanged) {
		was.retract(ctx, o)
	}
	return version, err
}

// replace writes the state with a condition.
func (o *object) replace(ctx context.Context, t *backend.Text, prior backend.Prior, condition http.Header) (string, error) {
	resp, err := o.put(ctx, o.key, t, o.b.stateTags, condition)
	if len(condition) > 0 && err == nil && (resp.Status == http.StatusNotImplemented || resp.Status == http.StatusBadRequest && answerOf(resp).Code == "NotImplemented") {
		resp, err = o.put(ctx, o.key, t, o.b.stateTags, nil) // the service has no conditional writes; the version was compared before
	}
	if len(condition) > 0 && (err != nil || resp.Status >= 500 || resp.Status == http.StatusPreconditionFailed) && ctx.Err() == nil {
		return o.confirm(ctx, t, prior, resp, err)
	}
	switch {
	case err != nil:
		return "", err
	case resp.Status == http.StatusPreconditionFailed || resp.Status == http.StatusConflict:
		return "", changed()
	case resp.Status/100 != 2:
		return "", o.b.refused("Failed to write the state", resp, "s3:PutObject")
	}
	return resp.Header.Get("ETag"), o.written(ctx, t)
}

// confirm finds out whether a conditional write whose response was lost was carried out. If
// the object is unchanged, the write is repeated once.
func (o *object) confirm(ctx context.Context, t *backend.Text, prior backend.Prior, resp *rest.Response, cause error) (string, error) {
	sum := sha256.New()
	now, err := o.fetch(ctx, o.key, "state", backend.Hash(sum))
	if err != nil {
		return "", err
	}
	if now != nil && [sha256.Size]byte(sum.Sum(nil)) == t.SHA256() {
		return now.Header.Get("ETag"), o.written(ctx, t)
	}
	condition := http.Header{}
	switch {
	case now == nil && prior.Absent:
		condition.Set("If-None-Match", "*")
	case now != nil && !prior.Absent && now.Header.Get("ETag") == prior.Version:
		condition.Set("If-Match", prior.Version)
	default:
		return "", changed()
	}
	again, err := o.put(ctx, o.key, t, o.b.stateTags, condition)
	switch {
	case err == nil && again.Status/100 == 2:
		return again.Header.Get("ETag"), o.written(ctx, t)
	case cause != nil:
		return "", cause
	}
	return "", o.b.refused("Failed to write the state", resp, "s3:PutObject")
}

// written records the digest of the written state, if there is a table.
func (o *object) written(ctx context.Context, t *backend.Text) error {
	if o.b.table == "" {
		return nil
	}
	now := digestOf(t)
	o.seen.Store(&now)
	if err := o.putDigest(ctx, digestOf(t)); err != nil {
		var e *backend.Error
		if errors.As(err, &e) {
			e.Advice = strings.TrimSpace(e.Advice + fmt.Sprintf(" The state itself was written; its digest in the table is the old one. The next write here sets it; before OpenTofu reads the state, set Digest of the item with the LockID %q to %s.", o.digestID(), digestOf(t)))
		}
		return err
	}
	return nil
}

func changed() error {
	return &backend.Error{Answer: backend.ErrChanged.Error(), Err: backend.ErrChanged}
}

func lost(why string) error {
	return &backend.Error{Answer: why, Err: backend.ErrLockLost}
}

// holds returns an error unless every configured lock is held with this ID.
func (o *object) holds(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	if o.b.lockfile {
		info, err := o.lockObject(ctx)
		if err != nil {
			return err
		}
		if info == nil || info.ID != id {
			return lost("the lock object is gone or somebody else's")
		}
	}
	if o.b.table != "" {
		info, _, err := o.lockItem(ctx)
		if err != nil {
			return err
		}
		if info == nil || info.ID != id {
			return lost("the item of the lock is gone or somebody else's")
		}
	}
	return nil
}

// lockObject returns the lock in the lock object; nil if there is none.
func (o *object) lockObject(ctx context.Context) (*store.LockInfo, error) {
	resp, err := o.get(ctx, o.lockKey(), "lock")
	if err != nil || resp == nil {
		return nil, err
	}
	info, err := store.ParseLockInfo(resp.Body)
	if err != nil {
		return &store.LockInfo{}, nil // held, by an unknown holder
	}
	return &info, nil
}

// Lock implements backend.Object. It takes the lock object first, and then the item in the
// table.
func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	if !o.b.lockfile && o.b.table == "" {
		return "", backend.ErrNoLocks
	}
	info.Path = o.path()
	if o.b.lockfile {
		if err := o.takeObject(ctx, info); err != nil {
			return "", err
		}
	}
	if o.b.table != "" {
		if err := o.takeItem(ctx, info); err != nil {
			if o.b.lockfile {
				if release := o.releaseObject(context.WithoutCancel(ctx), info.ID); release != nil {
					return "", errors.Join(err, release)
				}
			}
			return "", err
		}
	}
	return info.ID, nil
}

// takeObject creates the lock object if there is none. Services other than AWS may ignore
// the condition, so for these it first checks that the object does not exist, and reads it
// afterwards.
func (o *object) takeObject(ctx context.Context, info store.LockInfo) error {
	held := func() error {
		holder, err := o.lockObject(ctx)
		if err != nil {
			return err
		}
		if holder == nil {
			return &backend.LockedError{Again: true}
		}
		return &backend.LockedError{Holder: holder}
	}
	if o.b.custom {
		holder, err := o.lockObject(ctx)
		if err != nil {
			return err
		}
		if holder != nil {
			return &backend.LockedError{Holder: holder}
		}
	}
	condition := http.Header{"If-None-Match": {"*"}}
	resp, err := o.put(ctx, o.lockKey(), backend.Bytes(info.JSON()), o.b.lockTags, condition)
	if err != nil || resp.Status >= 500 && resp.Status != http.StatusNotImplemented {
		if ctx.Err() == nil { // it may have been created nevertheless
			if holder, more := o.lockObject(ctx); more == nil && holder != nil && holder.ID == info.ID {
				return nil
			}
		}
		if err == nil {
			err = o.b.refused("Error acquiring the state lock", resp, "s3:PutObject")
		}
		return err
	}
	switch {
	case resp.Status == http.StatusNotImplemented:
		if resp, err = o.put(ctx, o.lockKey(), backend.Bytes(info.JSON()), o.b.lockTags, nil); err != nil {
			return err
		}
		if resp.Status/100 != 2 {
			return o.b.refused("Error acquiring the state lock", resp, "s3:PutObject")
		}
	case resp.Status == http.StatusPreconditionFailed || resp.Status == http.StatusConflict:
		return held()
	case resp.Status/100 != 2:
		return o.b.refused("Error acquiring the state lock", resp, "s3:PutObject")
	}
	if o.b.custom { // also after an interrupt, so that a created lock is released
		if holder, err := o.lockObject(context.WithoutCancel(ctx)); err != nil {
			return err
		} else if holder == nil || holder.ID != info.ID {
			return &backend.LockedError{Holder: holder}
		}
	}
	return nil
}

func (o *object) releaseObject(ctx context.Context, id string) error {
	holder, err := o.lockObject(ctx)
	switch {
	case err != nil:
		return err
	case holder == nil:
		return backend.NotHeld(id)
	case holder.ID != id:
		return backend.WrongID(id, holder.ID)
	}
	return o.b.remove(ctx, o.lockKey())
}

// Unlock implements backend.Object. It releases in the opposite order to Lock.
func (o *object) Unlock(ctx context.Context, id string) error {
	var errs []error
	if o.b.table != "" {
		errs = append(errs, o.releaseItem(ctx, id))
	}
	if o.b.lockfile {
		errs = append(errs, o.releaseObject(ctx, id))
	}
	return errors.Join(errs...)
}

// blobKey returns the key of an object next to the state.
func (o *object) blobKey(name string) string { return o.key + ".beside/" + name }

// PutBlob implements backend.Blobs.
func (o *object) PutBlob(ctx context.Context, name string, data []byte) error {
	resp, err := o.put(ctx, o.blobKey(name), backend.Bytes(data), o.b.stateTags, nil)
	if err == nil && resp.Status/100 != 2 {
		err = o.b.refused("Failed to write beside the state", resp, "s3:PutObject")
	}
	return err
}

// GetBlob implements backend.Blobs.
func (o *object) GetBlob(ctx context.Context, name string) ([]byte, error) {
	resp, err := o.get(ctx, o.blobKey(name), "object beside the state")
	switch {
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, backend.ErrNoBlob
	}
	return resp.Body, nil
}

// ListBlobs implements backend.Blobs.
func (o *object) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	err := o.b.keys(ctx, o.blobKey(prefix), func(key string) { out = append(out, strings.TrimPrefix(key, o.blobKey(""))) })
	return out, err
}

// DeleteBlob implements backend.Blobs.
func (o *object) DeleteBlob(ctx context.Context, name string) error {
	return o.b.remove(ctx, o.blobKey(name))
}
