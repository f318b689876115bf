package azurerm

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// An object is the state of one workspace: a blob. Its version is the checksum of its
// content. The ETag is not suitable, because the lock changes it with the blob's metadata.
type object struct {
	b    *container
	name string
}

const (
	metaPrefix = "X-Ms-Meta-"
	lockMeta   = metaPrefix + "terraformlockid"
)

// encrypted adds the blob's encryption key or scope to headers.
func (b *container) encrypted(h http.Header, writes bool) http.Header {
	if b.customerKey != "" {
		raw, _ := base64.StdEncoding.DecodeString(b.customerKey) // checked by open
		sum := sha256.Sum256(raw)
		h.Set("X-Ms-Encryption-Key", b.customerKey)
		h.Set("X-Ms-Encryption-Key-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
		h.Set("X-Ms-Encryption-Algorithm", "AES256")
	}
	if b.scope != "" && writes {
		h.Set("X-Ms-Encryption-Scope", b.scope)
	}
	return h
}

func absent(resp *rest.Response) bool {
	return resp.Status == http.StatusNotFound && resp.Header.Get("X-Ms-Error-Code") != "ContainerNotFound"
}

func (o *object) Read(ctx context.Context) (backend.Payload, error) { return backend.Collect(ctx, o) }

// Fetch implements backend.Streamed.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	sum := md5.New()
	resp, err := o.b.do(ctx, rest.Request{Method: "GET", URL: o.b.address(o.name), Header: o.b.encrypted(http.Header{}, false), Repeat: true, Into: func(r io.Reader) error {
		sum.Reset()
		return take(backend.Tee(r, sum))
	}})
	switch {
	case err != nil:
		return "", err
	case absent(resp):
		return none, nil
	case resp.Status != http.StatusOK:
		return "", o.b.refused("", "Storage Blob Data Reader", resp)
	}
	if got := [md5.Size]byte(sum.Sum(nil)); got != md5.Sum(nil) {
		return versionOf(got), nil
	}
	return none, nil
}

// versionOf returns the version of a content, which is the checksum as the service stores
// it.
func versionOf(sum [md5.Size]byte) string { return base64.StdEncoding.EncodeToString(sum[:]) }

// is reports whether the blob with these properties has the content that was read.
func (o *object) is(ctx context.Context, p http.Header, prior backend.Prior) (bool, error) {
	empty := p == nil || p.Get("Content-Length") == "0"
	switch {
	case prior.Unknown:
		return true, nil
	case prior.Absent || prior.Version == none || empty:
		return empty && (prior.Absent || prior.Version == none), nil
	case p.Get("Content-Md5") != "":
		return p.Get("Content-Md5") == prior.Version, nil
	}
	now, err := o.Fetch(ctx, backend.Hash(md5.New())) // some programs upload without a checksum
	return now == prior.Version, err
}

// none is the version of a blob that is missing, or empty, as locking creates it.
const none = "none"

// properties returns the headers of the blob; nil if it is missing.
func (o *object) properties(ctx context.Context) (http.Header, error) {
	resp, err := o.b.send(ctx, "HEAD", o.name, nil, o.b.encrypted(http.Header{}, false), nil)
	switch {
	case err != nil:
		return nil, err
	case absent(resp):
		return nil, nil
	case resp.Status != http.StatusOK:
		return nil, o.b.refused("", "Storage Blob Data Reader", resp)
	}
	return resp.Header, nil
}

// holder returns the holder of the lease; nil if there is none.
func holder(p http.Header) *store.LockInfo {
	if p.Get("X-Ms-Lease-Status") != "locked" && p.Get(lockMeta) == "" {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(p.Get(lockMeta))
	info, wrong := store.ParseLockInfo(text)
	if err != nil || wrong != nil || info.ID == "" {
		return &store.LockInfo{ID: nameless, Info: "a lease on the blob that names no holder"}
	}
	return &info
}

// nameless is the ID, for force-unlock, of a lease without a holder's name. A run that ends
// between taking the lease and writing its name leaves one, and so do other programs.
const nameless = "lease"

// meta returns the metadata in headers.
func meta(p http.Header) http.Header {
	out := http.Header{}
	for name, v := range p {
		if strings.HasPrefix(name, metaPrefix) {
			out[name] = v
		}
	}
	return out
}

func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed.
func (o *object) Send(ctx context.Context, t *backend.Text, prior backend.Prior, lock string) (string, error) {
	p, err := o.properties(ctx)
	if err != nil {
		return "", err
	}
	if lock != "" {
		if h := holder(p); p == nil || h == nil || !strings.EqualFold(h.ID, lock) {
			return "", lost()
		}
	}
	if same, err := o.is(ctx, p, prior); err != nil || !same {
		if err == nil {
			err = changed()
		}
		return "", err
	}
	if o.b.snapshot && p != nil {
		h := http.Header{}
		if lock != "" {
			h.Set("X-Ms-Lease-Id", lock)
		}
		resp, err := o.b.send(ctx, "PUT", o.name, url.Values{"comp": {"snapshot"}}, o.b.encrypted(h, true), []byte{})
		if err != nil {
			return "", err
		}
		if resp.Status != http.StatusCreated {
			return "", o.b.refused("Failed to make a snapshot of the state", "Storage Blob Data Contributor", resp)
		}
	}
	h := meta(p)
	if lock != "" {
		h.Set("X-Ms-Lease-Id", lock)
	}
	switch {
	case prior.Unknown:
	case p == nil:
		h.Set("If-None-Match", "*")
	default:
		h.Set("If-Match", p.Get("Etag")) // ensures that the blob does not change in between
	}
	resp, err := o.put(ctx, o.name, t, h)
	switch {
	case err == nil && resp.Status == http.StatusCreated:
		return versionOf(t.MD5()), nil
	case err == nil && strings.HasPrefix(resp.Header.Get("X-Ms-Error-Code"), "LeaseLost"),
		err == nil && lock != "" && strings.HasPrefix(resp.Header.Get("X-Ms-Error-Code"), "Lease"):
		return "", lost()
	case err == nil && resp.Status != http.StatusPreconditionFailed && resp.Status != http.StatusConflict, err == nil && resp.Header.Get("X-Ms-Error-Code") == "LeaseIdMissing":
		return "", o.b.refused("Failed to write the state", "Storage Blob Data Contributor", resp)
	case err == nil && resp.Repeated == 0:
		return "", changed()
	}
	// An earlier attempt may have succeeded though its response was lost.
	sum := sha256.New()
	now, e := o.Fetch(context.WithoutCancel(ctx), backend.Hash(sum))
	switch {
	case e == nil && now != none && [sha256.Size]byte(sum.Sum(nil)) == t.SHA256():
		return now, nil
	case err != nil:
		return "", err
	}
	return "", changed()
}

func lost() error {
	return &backend.Error{Argument: "container_name", Answer: "the lease on the blob is not that of this run any more", Err: backend.ErrLockLost}
}

func changed() error {
	return &backend.Error{Argument: "container_name", Answer: "the blob is another one than the one that was read", Err: backend.ErrChanged}
}

func (o *object) put(ctx context.Context, name string, t *backend.Text, h http.Header) (*rest.Response, error) {
	h.Set("X-Ms-Blob-Type", "BlockBlob")
	h.Set("Content-Type", "application/json")
	return o.b.do(ctx, rest.Request{Method: "PUT", URL: o.b.address(name), Header: o.b.encrypted(h, true), Content: t, Repeat: true})
}

// lease sends a request about the lease.
func (o *object) lease(ctx context.Context, action string, h http.Header) (*rest.Response, error) {
	h.Set("X-Ms-Lease-Action", action)
	return o.b.send(ctx, "PUT", o.name, url.Values{"comp": {"lease"}}, h, []byte{})
}

// setMeta replaces the metadata under a lease.
func (o *object) setMeta(ctx context.Context, h http.Header, lease string) error {
	h.Set("X-Ms-Lease-Id", lease)
	resp, err := o.b.send(ctx, "PUT", o.name, url.Values{"comp": {"metadata"}}, o.b.encrypted(h, true), []byte{})
	if err == nil && resp.Status != http.StatusOK {
		err = o.b.refused("", "Storage Blob Data Contributor", resp)
	}
	return err
}

var uuid = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
})

// Lock takes an infinite lease with the ID of info, on a blob that it creates if necessary,
// and writes info to the blob's metadata.
func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	if !uuid().MatchString(info.ID) { // the service requires a UUID
		info.ID = store.NewID()
	}
	info.Path = o.b.address(o.name)
	p, err := o.properties(ctx)
	if err != nil {
		return "", err
	}
	if p == nil {
		resp, err := o.put(ctx, o.name, backend.Bytes(nil), http.Header{"If-None-Match": {"*"}})
		if err != nil {
			return "", err
		}
		if resp.Status != http.StatusCreated && resp.Status != http.StatusConflict && resp.Status != http.StatusPreconditionFailed {
			return "", o.b.refused("Error acquiring the state lock", "Storage Blob Data Contributor", resp)
		}
	} else if p.Get("X-Ms-Lease-Status") == "locked" {
		return "", &backend.LockedError{Holder: holder(p)}
	}
	resp, err := o.lease(ctx, "acquire", http.Header{"X-Ms-Lease-Duration": {"-1"}, "X-Ms-Proposed-Lease-Id": {info.ID}})
	switch {
	case err != nil:
		o.giveBack(ctx, info.ID) // it is unknown whether the lease was taken
		return "", err
	case resp.Status == http.StatusConflict:
		p, err := o.properties(ctx)
		if err != nil || p == nil {
			return "", &backend.LockedError{Reason: "somebody else has the lock", Again: true}
		}
		return "", &backend.LockedError{Holder: holder(p)}
	case resp.Status != http.StatusCreated:
		return "", o.b.refused("Error acquiring the state lock", "Storage Blob Data Contributor", resp)
	}
	if p, err = o.properties(ctx); err == nil {
		h := meta(p)
		h.Set(lockMeta, base64.StdEncoding.EncodeToString(info.JSON()))
		err = o.setMeta(ctx, h, info.ID)
	}
	if err != nil {
		o.giveBack(ctx, info.ID)
		return "", err
	}
	o.b.hold(o.name, info.ID)
	return info.ID, nil
}

// giveBack releases a lease that may have been taken and cannot be used. It ignores errors,
// because the caller reports the first one.
func (o *object) giveBack(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	_, _ = o.lease(ctx, "release", http.Header{"X-Ms-Lease-Id": {id}})
}

func (o *object) Unlock(ctx context.Context, id string) error {
	p, err := o.properties(ctx)
	if err != nil {
		return err
	}
	if o.b.held(o.name) == id {
		if o.b.hold(o.name, ""); p == nil { // the lease has ended with the blob
			return nil
		}
	}
	var h *store.LockInfo
	if p != nil {
		h = holder(p)
	}
	switch {
	case h == nil:
		return backend.NotHeld(id)
	case !strings.EqualFold(h.ID, id):
		return backend.WrongID(id, h.ID)
	case h.ID == nameless:
		// If another process writes its name in between, the ETag changes and that process
		// keeps the lease.
		resp, err := o.lease(ctx, "break", http.Header{"X-Ms-Lease-Break-Period": {"0"}, "If-Match": {p.Get("Etag")}})
		if err == nil && resp.Status != http.StatusAccepted && (resp.Repeated == 0 || resp.Status != http.StatusConflict) {
			err = o.b.refused("Failed to release the lease", "Storage Blob Data Contributor", resp)
		}
		return err
	}
	left := meta(p)
	left.Del(lockMeta)
	if p.Get(lockMeta) != "" {
		if err := o.setMeta(ctx, left, id); err != nil {
			return err
		}
	}
	resp, err := o.lease(ctx, "release", http.Header{"X-Ms-Lease-Id": {id}})
	if err == nil && resp.Status != http.StatusOK && (resp.Repeated == 0 || resp.Status != http.StatusConflict) {
		err = o.b.refused("Failed to release the lease", "Storage Blob Data Contributor", resp)
	}
	return err
}

// Probe implements backend.Prober.
func (o *object) Probe() (backend.Object, func(context.Context) error) {
	name := "doctor/" + store.NewID()
	return &object{o.b, o.beside() + name}, func(ctx context.Context) error { return o.DeleteBlob(ctx, name) }
}

// beside returns the prefix of blobs stored next to the state.
func (o *object) beside() string { return o.name + ".beside/" }

func (o *object) PutBlob(ctx context.Context, name string, data []byte) error {
	resp, err := o.put(ctx, o.beside()+name, backend.Bytes(data), http.Header{})
	if err == nil && resp.Status != http.StatusCreated {
		err = o.b.refused("Failed to write beside the state", "Storage Blob Data Contributor", resp)
	}
	return err
}

func (o *object) GetBlob(ctx context.Context, name string) ([]byte, error) {
	resp, err := o.b.send(ctx, "GET", o.beside()+name, nil, o.b.encrypted(http.Header{}, false), nil)
	switch {
	case err != nil:
		return nil, err
	case absent(resp):
		return nil, backend.ErrNoBlob
	case resp.Status != http.StatusOK:
		return nil, o.b.refused("", "Storage Blob Data Reader", resp)
	}
	return resp.Body, nil
}

func (o *object) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	all, err := o.b.list(ctx, o.beside()+prefix)
	for i, name := range all {
		all[i] = strings.TrimPrefix(name, o.beside())
	}
	return all, err
}

func (o *object) DeleteBlob(ctx context.Context, name string) error {
	return o.b.delete(ctx, o.beside()+name)
}
