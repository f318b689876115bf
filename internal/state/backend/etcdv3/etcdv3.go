// Package etcdv3 is the backend "etcdv3": state in etcd with one key per workspace, locked
// by a lease.
//
// Main types: Kind opens a prefix, an object is one key. The one rule: a write is one
// transaction that compares the key's ModRevision and, with a lock, checks that the lock's
// key still exists.
package etcdv3

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind returns the backend "etcdv3".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "etcdv3",
		Reached: []string{"endpoints"},
		Schema: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
			"endpoints":         cty.List(cty.String),
			"username":          cty.String,
			"password":          cty.String,
			"prefix":            cty.String,
			"lock":              cty.Bool,
			"cacert_path":       cty.String,
			"cert_path":         cty.String,
			"key_path":          cty.String,
			"max_request_bytes": cty.Number,
		}, "endpoints")},
		Open: open,
	}
}

// defaultLimit is the default maximum size of a request, in bytes.
const defaultLimit = 1536 * 1024

type etcdBackend struct {
	s      backend.Services
	c      *connection
	prefix string
	lock   bool
	limit  int
	cert   bool // a client certificate is configured
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	c := clientv3.Config{
		Endpoints:            a.Strings("endpoints"),
		Username:             a.String("username", "", "ETCDV3_USERNAME"),
		Password:             a.String("password", "", "ETCDV3_PASSWORD"),
		DialTimeout:          cmp.Or(s.Answer, dialTimeout),
		DialKeepAliveTime:    15 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		Logger:               zap.NewNop(), // otherwise the client writes to standard error
	}
	b := &etcdBackend{s: s, prefix: a.String("prefix", ""), lock: a.Bool("lock", true), limit: a.Int("max_request_bytes", 0)}
	if b.limit < 0 {
		a.Fail("max_request_bytes", "The %q is below 0", "max_request_bytes")
	}
	c.MaxCallSendMsgSize = b.limit
	if b.limit == 0 {
		b.limit = defaultLimit
	} else {
		c.MaxCallSendMsgSize += 4096 // the overhead of a request
	}
	if len(c.Endpoints) == 0 {
		a.Fail("endpoints", "The argument %q is required", "endpoints")
	}
	t := backend.TLS{CA: file(a, s, "cacert_path"), Cert: file(a, s, "cert_path"), Key: file(a, s, "key_path")}
	if t != (backend.TLS{}) {
		config, err := t.Config()
		switch {
		case errors.Is(err, backend.ErrCA):
			a.Fail("cacert_path", "The %q cannot be used: %s", "cacert_path", err)
		case err != nil:
			a.Fail("cert_path", "The %q and %q cannot be used: %s", "cert_path", "key_path", err)
		}
		c.TLS, b.cert = config, t.Cert != ""
	}
	for _, e := range c.Endpoints {
		if strings.HasPrefix(e, "https://") && c.TLS == nil {
			c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	key := fmt.Sprintf("etcdv3 %q %q %q %#v %d", c.Endpoints, c.Username, c.Password, t, b.limit)
	b.c = s.Shared.Get(key, func() any { return &connection{config: c} }).(*connection)
	return b, nil
}

// file returns the content of the file in an argument.
func file(a *backend.Args, s backend.Services, name string) string {
	path := a.String(name, "")
	if path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	text, err := readfile.Whole(path)
	if err != nil {
		a.Fail(name, "The file of %q cannot be read: %s", name, err)
	}
	return string(text)
}

// dialTimeout is the default time limit for a request.
const dialTimeout = 10 * time.Second

// A connection is a client that is created on first use.
type connection struct {
	config clientv3.Config

	reached atomic.Bool // a request was answered

	mu     sync.Mutex
	client *clientv3.Client
}

// get returns the client. It requests a token if a user is configured. ctx applies to that
// request only, not to the client.
func (c *connection) get(ctx context.Context) (*clientv3.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	config := c.config
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	config.Context = life
	stop := context.AfterFunc(ctx, end)
	client, err := clientv3.New(config)
	if ended := !stop(); ended {
		if err == nil {
			_ = client.Close()
		}
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	c.client = client
	return client, nil
}

// do sends one request with a time limit. Without a limit, the client would wait for
// unreachable endpoints indefinitely.
func do[T any](ctx context.Context, b *etcdBackend, size int, request func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	var none T
	if err := store.Fenced(ctx); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.c.config.DialTimeout+time.Duration(size)*10*time.Microsecond)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The etcd client retries whatever the error is.
	early := time.AfterFunc(soon, func() {
		if b.c.reached.Load() || len(b.c.config.Endpoints) > 1 { // another endpoint may work
			return
		}
		for try := 0; try < 3 && ctx.Err() == nil; try++ { // a service that rejects a certificate may just close the connection
			if _, err := b.askVersion(ctx); rest.Lasting(err) {
				stop(&unreachable{err})
			}
			_ = b.s.Sleep(ctx, soon)
		}
	})
	defer early.Stop()
	var out T
	client, err := b.c.get(ctx)
	if err == nil {
		out, err = request(ctx, client)
	}
	if wrong, ok := errors.AsType[*unreachable](context.Cause(ctx)); ok && err != nil {
		e := &backend.Error{Err: wrong.error}
		b.explain(e, wrong.error)
		return none, e
	}
	if err != nil {
		return none, b.fail(err)
	}
	b.c.reached.Store(true)
	return out, nil
}

// soon is the time without a response after which the reason is determined.
const soon = time.Second

// unreachable is the reason why there is no connection, if waiting does not help.
type unreachable struct{ error }

// fail returns the error for a failed request.
func (b *etcdBackend) fail(err error) error {
	e := &backend.Error{Argument: "endpoints", Err: err}
	var answer rpctypes.EtcdError
	if errors.As(err, &answer) {
		e.Answer = "etcd answered: " + strings.TrimPrefix(answer.Error(), "etcdserver: ")
	} else if st, ok := status.FromError(err); ok {
		e.Answer = "etcd answered: " + st.Message()
	} else {
		e.Answer = diag.Reason(err)
	}
	e.Answer, _, _ = strings.Cut(e.Answer, "\n")
	switch code := status.Code(err); {
	case errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || code == codes.Unavailable:
		e.Answer = fmt.Sprintf("no answer from %s within %s", strings.Join(b.c.config.Endpoints, ", "), b.c.config.DialTimeout)
		e.Advice = "Check the endpoints, the certificates, and that etcd has a leader."
		b.why(e)
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrInvalidAuthToken), code == codes.Unauthenticated:
		e.Argument = "username"
		e.Advice = "Check username and password, or ETCDV3_USERNAME and ETCDV3_PASSWORD."
	case errors.Is(err, rpctypes.ErrPermissionDenied) || code == codes.PermissionDenied:
		e.Argument = "prefix"
		e.Permission = fmt.Sprintf("readwrite with --prefix on %q", b.prefix)
		e.Advice = fmt.Sprintf("The user's role needs the permission %s.", e.Permission)
	case errors.Is(err, rpctypes.ErrRequestTooLarge) || code == codes.ResourceExhausted:
		e.Argument = "max_request_bytes"
		e.Advice = tooLarge
	case errors.Is(err, rpctypes.ErrNoSpace):
		e.Advice = "The quota of etcd is used up: compact and defragment it, or raise --quota-backend-bytes."
	default:
		e.Advice = "The log of etcd says more; \"etcdctl endpoint status\" tells whether it has a leader."
	}
	return e
}

const tooLarge = "Raise --max-request-bytes of the etcd servers and max_request_bytes here, split the state, or keep it in another backend."

func (b *etcdBackend) List(ctx context.Context) ([]string, error) {
	resp, err := do(ctx, b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		if b.prefix == "" {
			return c.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithKeysOnly())
		}
		return c.Get(ctx, b.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	})
	if err != nil {
		return nil, err
	}
	names := []string{store.Default}
	for _, kv := range resp.Kvs {
		name := strings.TrimPrefix(string(kv.Key), b.prefix)
		if name != store.Default && store.ValidWorkspace(name) && !strings.HasSuffix(name, infoSuffix) {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

func (b *etcdBackend) Delete(ctx context.Context, workspace string) error {
	key := b.prefix + workspace
	_, err := do(ctx, b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).Then(
			clientv3.OpDelete(key),
			clientv3.OpDelete(key+".beside/", clientv3.WithPrefix()),
			clientv3.OpDelete(key+".beside-more/", clientv3.WithPrefix()),
		).Commit()
	})
	return err
}

func (b *etcdBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace == "" {
		workspace = store.Default
	}
	return backend.NewStore(&object{b: b, key: b.prefix + workspace}, "etcdv3:"+b.prefix+workspace, o, b.s), nil
}

// WhyNoLocks implements backend.Lockless.
func (b *etcdBackend) WhyNoLocks() string { return "lock is false" }

// Check implements backend.Checker.
func (b *etcdBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	c := b.c.config
	who := "none"
	switch {
	case c.Username != "":
		who = "the user " + c.Username
	case c.TLS != nil && len(c.TLS.Certificates) > 0:
		who = "a client certificate"
	}
	report(backend.Finding{What: "credentials", OK: true, Detail: who}) // the state was read with them
	for _, e := range c.Endpoints {
		s, err := do(ctx, b, 0, func(ctx context.Context, c *clientv3.Client) (*clientv3.StatusResponse, error) {
			return c.Status(ctx, e)
		})
		if err != nil {
			report(backend.Failed("endpoint "+e, err))
			continue
		}
		report(backend.Finding{What: "endpoint " + e, OK: s.Leader != 0 && len(s.Errors) == 0, Detail: strings.Join(append([]string{"version " + s.Version}, s.Errors...), "; ")})
	}
	backend.CheckNoVersioning("etcd forgets older states when it is compacted: \"etcdctl snapshot save\" keeps them", report)
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: "etcd has none of its own: what its servers keep is as safe as their disks; an encryption block seals the state"})
	f := backend.Finding{What: "encryption on the way", OK: true, Detail: "TLS"}
	switch {
	case c.TLS != nil:
	case slices.ContainsFunc(c.Endpoints, isLocal):
		f.Detail = "an endpoint is on this machine"
	default:
		f.OK, f.Detail = false, "there is no TLS: the state can be read on the way"
	}
	report(f)
	b.checkClock(ctx, report)
}

func (b *etcdBackend) checkClock(ctx context.Context, report func(backend.Finding)) {
	client, _ := b.askVersion(ctx) // without a response the clock is unknown
	backend.CheckClock(client, report)
}

// askVersion requests the version of the first endpoint, which etcd returns over plain
// HTTP.
func (b *etcdBackend) askVersion(ctx context.Context) (*rest.Client, error) {
	_, address, ok := strings.Cut(b.c.config.Endpoints[0], "://")
	if !ok {
		address = b.c.config.Endpoints[0]
	}
	transport, scheme := b.s.Transport.Clone(), "http://"
	transport.Proxy = nil // the etcd client uses no proxy either
	if b.c.config.TLS != nil {
		transport.TLSClientConfig, scheme = b.c.config.TLS.Clone(), "https://"
	}
	defer transport.CloseIdleConnections()
	client := &rest.Client{HTTP: &http.Client{Transport: transport, Timeout: dialTimeout / 2}, Sleep: b.s.Sleep, Now: b.s.Now}
	resp, err := client.Do(ctx, rest.Request{Method: "GET", URL: scheme + address + "/version"})
	if err == nil && !strings.Contains(string(resp.Body), "etcdserver") {
		err = fmt.Errorf("%s: %w", address, errNotEtcd)
	}
	return client, err
}

var errNotEtcd = errors.New("what answers there does not speak the protocol of etcd")

// why adds the reason for a failed connection to e. The etcd client only reports that there
// is no connection.
func (b *etcdBackend) why(e *backend.Error) {
	_, err := b.askVersion(context.Background()) // the context of the request may have ended
	b.explain(e, err)
}

// explain adds the reason for a failed connection to e.
func (b *etcdBackend) explain(e *backend.Error, err error) {
	e.Argument = "endpoints"
	switch {
	case err == nil: // it is etcd, but does not respond to requests
	case errors.Is(err, errNotEtcd), errors.Is(err, rest.ErrPage):
		e.Answer, e.Advice = errNotEtcd.Error(), "Check the endpoints, and whether a proxy or a portal stands in between."
	default:
		e.Answer, e.Advice = diag.Reason(err), rest.Reach(err, "cacert_path", e.Advice)
		if rest.Refused(err) && b.cert {
			e.Argument = "cert_path"
		}
	}
}

func isLocal(endpoint string) bool {
	endpoint = strings.TrimPrefix(endpoint, "http://")
	return strings.HasPrefix(endpoint, "127.") || strings.HasPrefix(endpoint, "localhost") || strings.HasPrefix(endpoint, "unix:")
}
