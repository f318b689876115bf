// Package httpstore is the backend "http": state behind an address that supports GET and
// POST, with locks if the service has them.
//
// Main function: Kind. The one rule: the requests are exactly the documented ones, because
// many programs implement them. Whether the state changed is not part of the protocol, and
// is found out by reading.
package httpstore

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "http".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "http",
		Reached: []string{"address"},
		Ask:     map[string][]string{"address": {"TF_HTTP_ADDRESS"}},
		Schema: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
			"address":                   cty.String,
			"update_method":             cty.String,
			"lock_address":              cty.String,
			"unlock_address":            cty.String,
			"lock_method":               cty.String,
			"unlock_method":             cty.String,
			"username":                  cty.String,
			"password":                  cty.String,
			"skip_cert_verification":    cty.Bool,
			"retry_max":                 cty.Number,
			"retry_wait_min":            cty.Number,
			"retry_wait_max":            cty.Number,
			"client_ca_certificate_pem": cty.String,
			"client_certificate_pem":    cty.String,
			"client_private_key_pem":    cty.String,
			"headers":                   cty.Map(cty.String),
		})},
		Open: open,
	}
}

type httpBackend struct {
	s      backend.Services
	client *rest.Client

	address, lock, unlock                  string
	updateMethod, lockMethod, unlockMethod string
	username, password                     string
	headers                                http.Header
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &httpBackend{
		s:            s,
		address:      address(a, "address", a.Required("address", "TF_HTTP_ADDRESS")),
		lock:         address(a, "lock_address", a.String("lock_address", "", "TF_HTTP_LOCK_ADDRESS")),
		unlock:       address(a, "unlock_address", a.String("unlock_address", "", "TF_HTTP_UNLOCK_ADDRESS")),
		updateMethod: method(a, "update_method", a.String("update_method", "POST", "TF_HTTP_UPDATE_METHOD")),
		lockMethod:   method(a, "lock_method", a.String("lock_method", "LOCK", "TF_HTTP_LOCK_METHOD")),
		unlockMethod: method(a, "unlock_method", a.String("unlock_method", "UNLOCK", "TF_HTTP_UNLOCK_METHOD")),
		username:     a.String("username", "", "TF_HTTP_USERNAME"),
		password:     a.String("password", "", "TF_HTTP_PASSWORD"),
	}
	switch {
	case b.lock != "" && b.unlock == "":
		a.Fail("lock_address", "There is a %q and no %q, so a lock would never be released", "lock_address", "unlock_address")
	case b.lock == "" && b.unlock != "":
		a.Fail("unlock_address", "There is an %q and no %q, so nothing would be locked", "unlock_address", "lock_address")
	}
	b.headers = headers(a, b.username != "")
	b.client = &rest.Client{
		HTTP:    &http.Client{Transport: transport(a, s)},
		Retries: a.Int("retry_max", 2, "TF_HTTP_RETRY_MAX"),
		Min:     time.Duration(a.Int("retry_wait_min", 1, "TF_HTTP_RETRY_WAIT_MIN")) * time.Second,
		Max:     time.Duration(a.Int("retry_wait_max", 30, "TF_HTTP_RETRY_WAIT_MAX")) * time.Second,
		Sleep:   s.Sleep,
		Now:     s.Now,
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	return b, nil
}

// address parses and checks an address; "" means none.
func address(a *backend.Args, name, text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		a.Fail(name, "The %q is not an address that begins with http:// or https://", name)
	}
	return text
}

func method(a *backend.Args, name, text string) string {
	if _, err := http.NewRequest(text, "http://x/", nil); err != nil || text == "" {
		a.Fail(name, "The %q is not the name of an HTTP method", name)
	}
	return text
}

func headers(a *backend.Args, basicAuth bool) http.Header {
	out := http.Header{}
	names := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	for name, v := range a.Map("headers") {
		key := http.CanonicalHeaderKey(name)
		switch {
		case !names.MatchString(name):
			a.Fail("headers", "The name of the header %q has other characters than letters, digits, %q and %q", name, "-", "_")
		case strings.TrimSpace(v) == "":
			a.Fail("headers", "The header %q has no value", name)
		case strings.ContainsFunc(v, func(r rune) bool { return r > 126 || r < 32 && r != '\t' }):
			a.Fail("headers", "The value of the header %q has other characters than printable ASCII", name)
		case key == "Content-Type" || key == "Content-Md5":
			a.Fail("headers", "The header %q is set by the backend itself", name)
		case key == "Authorization" && basicAuth:
			a.Fail("headers", "The header %q cannot be set together with %q", name, "username")
		}
		out.Set(name, v)
	}
	return out
}

// transport returns the transport for the TLS arguments.
func transport(a *backend.Args, s backend.Services) *http.Transport {
	t, err := s.TLSTransport(backend.TLS{
		Insecure: a.Bool("skip_cert_verification", false),
		CA:       a.String("client_ca_certificate_pem", "", "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM"),
		Cert:     a.String("client_certificate_pem", "", "TF_HTTP_CLIENT_CERTIFICATE_PEM"),
		Key:      a.String("client_private_key_pem", "", "TF_HTTP_CLIENT_PRIVATE_KEY_PEM"),
	})
	switch {
	case errors.Is(err, backend.ErrCA):
		a.Fail("client_ca_certificate_pem", "The %q cannot be used: %s", "client_ca_certificate_pem", err)
	case err != nil:
		a.Fail("client_certificate_pem", "The %q and %q cannot be used: %s", "client_certificate_pem", "client_private_key_pem", err)
	}
	return t
}

func (b *httpBackend) List(context.Context) ([]string, error) { return nil, backend.ErrNoWorkspaces }

func (b *httpBackend) Delete(ctx context.Context, workspace string) error {
	if workspace != store.Default {
		return backend.ErrNoWorkspaces
	}
	resp, err := b.send(ctx, "DELETE", b.address, nil, true)
	if err != nil {
		return b.unreachable("address", err)
	}
	if resp.Status != http.StatusOK && !(resp.Repeated > 0 && resp.Status == http.StatusNotFound) {
		return b.refused("Failed to delete the state", "address", "DELETE", resp)
	}
	return nil
}

func (b *httpBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace != "" && workspace != store.Default {
		return nil, backend.ErrNoWorkspaces
	}
	return backend.NewStore(&object{b: b}, b.place(), o, b.s), nil
}

// place returns the address without parts that may be secret.
func (b *httpBackend) place() string {
	u, err := url.Parse(b.address)
	if err != nil {
		return "http"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

func (b *httpBackend) send(ctx context.Context, method, address string, body []byte, repeat bool) (*rest.Response, error) {
	r := rest.Request{Method: method, URL: address, Header: b.header(), Body: body, Repeat: repeat}
	if body != nil {
		describe(r.Header, md5.Sum(body))
	}
	return b.client.Do(ctx, r)
}

func (b *httpBackend) header() http.Header {
	h := b.headers.Clone()
	if b.username != "" {
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(b.username+":"+b.password)))
	}
	return h
}

// describe sets the headers of a body.
func describe(h http.Header, sum [md5.Size]byte) {
	h.Set("Content-Type", "application/json")
	h.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
}

func (b *httpBackend) unreachable(argument string, err error) error {
	return &backend.Error{Argument: argument, Answer: diag.Reason(err), Advice: rest.Reach(err, "client_ca_certificate_pem", "Check that the address is right and that the service can be reached from here, through its proxy if there is one."), Err: err}
}

// refused returns the error for an unsuccessful response.
func (b *httpBackend) refused(summary, argument, method string, resp *rest.Response) error {
	e := &backend.Error{Summary: summary, Argument: argument, Answer: fmt.Sprintf("%s was answered with %d %s", method, resp.Status, http.StatusText(resp.Status))}
	if line := rest.Line(resp.Body); line != "" && !strings.HasPrefix(line, "<") {
		e.Answer += ": " + line
	}
	switch {
	case resp.Status == http.StatusUnauthorized && b.username == "":
		e.Argument, e.Advice = "username", "The service requires credentials: set username and password, or TF_HTTP_USERNAME and TF_HTTP_PASSWORD."
	case resp.Status == http.StatusUnauthorized || resp.Status == http.StatusForbidden:
		e.Argument, e.Advice = "username", "The service does not accept these credentials for this: check username and password, or the Authorization header."
	case resp.Status == http.StatusMethodNotAllowed || resp.Status == http.StatusNotImplemented:
		e.Argument = map[string]string{b.updateMethod: "update_method", b.lockMethod: "lock_method", b.unlockMethod: "unlock_method"}[method]
		e.Advice = "The service does not know this method at this address: check the methods and addresses of the backend."
	default:
		e.Advice = backend.AdviceOn(resp.Status)
	}
	if resp.Page() {
		e.Advice += " If the page is not one of the service, a proxy or a portal before it has sent it."
	}
	return e
}

// An object is the one state of the backend.
type object struct {
	b *httpBackend

	mu   sync.Mutex
	held store.LockInfo // the lock of this process; its ID is "" without one
}

func (o *object) Read(ctx context.Context) (backend.Payload, error) { return backend.Collect(ctx, o) }

// Fetch implements backend.Streamed.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	sum := md5.New()
	resp, err := o.b.client.Do(ctx, rest.Request{Method: "GET", URL: o.b.address, Header: o.b.header(), Repeat: true, Into: func(r io.Reader) error {
		sum.Reset()
		return take(backend.Tee(r, sum))
	}})
	if err != nil {
		return "", o.b.unreachable("address", err)
	}
	switch resp.Status {
	case http.StatusOK:
	case http.StatusNoContent, http.StatusNotFound:
		return "", nil
	default:
		return "", o.b.refused("Failed to read the state", "address", "GET", resp)
	}
	if header := resp.Header.Get("Content-MD5"); header != "" {
		want, err := base64.StdEncoding.DecodeString(header)
		if err != nil || len(want) == md5.Size && !bytes.Equal(want, sum.Sum(nil)) {
			return "", &backend.Error{Argument: "address", Summary: "Failed to read the state", Answer: "the state that the service sent does not have the checksum that its Content-MD5 header gives", Advice: "It was damaged, on the way or where it is stored. Nothing was done with it."}
		}
	}
	return "", nil
}

func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed. It repeats requests without a response, because a
// second attempt writes the same content.
func (o *object) Send(ctx context.Context, t *backend.Text, _ backend.Prior, lock string) (string, error) {
	address := o.b.address
	if lock != "" {
		u, err := url.Parse(address)
		if err != nil {
			return "", err // Open has checked it
		}
		q := u.Query()
		q.Set("ID", lock)
		u.RawQuery = q.Encode()
		address = u.String()
	}
	h := o.b.header()
	describe(h, t.MD5())
	resp, err := o.b.client.Do(ctx, rest.Request{Method: o.b.updateMethod, URL: address, Header: h, Content: t, Repeat: true})
	if err != nil {
		return "", o.b.unreachable("address", err)
	}
	switch resp.Status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		return "", nil
	case http.StatusConflict, http.StatusLocked:
		if lock != "" {
			return "", &backend.Error{Answer: fmt.Sprintf("%s was answered with %d %s", o.b.updateMethod, resp.Status, http.StatusText(resp.Status)), Err: backend.ErrLockLost}
		}
	}
	return "", o.b.refused("Failed to write the state", "address", o.b.updateMethod, resp)
}

func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	if o.b.lock == "" {
		return "", backend.ErrNoLocks
	}
	const summary = "Error acquiring the state lock"
	info.Path = ""
	resp, err := o.b.send(ctx, o.b.lockMethod, o.b.lock, info.JSON(), true)
	if err != nil {
		return "", o.b.unreachable("lock_address", err)
	}
	switch resp.Status {
	case http.StatusOK:
	case http.StatusConflict, http.StatusLocked:
		holder, err := store.ParseLockInfo(resp.Body)
		if err != nil || holder.ID == "" {
			return "", &backend.LockedError{Reason: fmt.Sprintf("%s was answered with %d %s, which says that the state is locked, without saying by whom", o.b.lockMethod, resp.Status, http.StatusText(resp.Status))}
		}
		// An earlier attempt whose response was lost may have taken the lock.
		if holder.ID != info.ID || resp.Repeated == 0 {
			return "", &backend.LockedError{Holder: &holder}
		}
	default:
		return "", o.b.refused(summary, "lock_address", o.b.lockMethod, resp)
	}
	o.mu.Lock()
	o.held = info
	o.mu.Unlock()
	return info.ID, nil
}

// Unlock sends the same body as Lock. For the lock of another process, it sends only the
// ID.
func (o *object) Unlock(ctx context.Context, id string) error {
	if o.b.unlock == "" {
		return backend.ErrNoLocks
	}
	o.mu.Lock()
	info := o.held
	o.mu.Unlock()
	if info.ID != id {
		info = store.LockInfo{ID: id}
	}
	resp, err := o.b.send(ctx, o.b.unlockMethod, o.b.unlock, info.JSON(), true)
	if err != nil {
		return o.b.unreachable("unlock_address", err)
	}
	if resp.Status != http.StatusOK {
		if holder, err := store.ParseLockInfo(resp.Body); err == nil && holder.ID != "" && holder.ID != id {
			return backend.WrongID(id, holder.ID)
		}
		return o.b.refused("", "unlock_address", o.b.unlockMethod, resp)
	}
	o.mu.Lock()
	o.held = store.LockInfo{}
	o.mu.Unlock()
	return nil
}

// WhyNoLocks implements backend.Lockless.
func (b *httpBackend) WhyNoLocks() string { return "there is no lock_address and no unlock_address" }

// Check implements backend.Checker.
func (b *httpBackend) Check(_ context.Context, _ string, report func(backend.Finding)) {
	who := "none"
	switch {
	case b.username != "":
		who = "the username and its password"
	case b.headers.Get("Authorization") != "":
		who = "the header Authorization"
	}
	report(backend.Finding{What: "credentials", OK: true, Detail: who}) // the state was read with them
	report(backend.Finding{What: "conditional writes", OK: true, Detail: "the protocol has none: the state is read before each write"})
	backend.CheckNoVersioning("the service does not say whether it keeps older states", report)
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: "the service does not say; an encryption block seals the state"})
	f := backend.Finding{What: "encryption on the way", OK: true, Detail: "TLS"}
	if u, err := url.Parse(b.address); err == nil && u.Scheme == "http" {
		f.Detail = "none: what is sent over http can be read on the way"
		f.OK = who == "none" || u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
	}
	report(f)
	backend.CheckClock(b.client, report)
}
