// Package consul is the backend "consul": state in the key-value store of Consul, with its
// sessions as locks.
//
// Main types: Kind opens a path, an object is one key below it. The one rule: a write is
// one transaction that compares the index of the key and, with a lock, the session of the
// lock's key. So it fails after a write of another process and after the loss of the lock.
package consul

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "consul".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "consul",
		Reached: []string{"address"},
		Schema: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
			"path":         cty.String,
			"access_token": cty.String,
			"address":      cty.String,
			"scheme":       cty.String,
			"datacenter":   cty.String,
			"http_auth":    cty.String,
			"gzip":         cty.Bool,
			"lock":         cty.Bool,
			"ca_file":      cty.String,
			"cert_file":    cty.String,
			"key_file":     cty.String,
		}, "path")},
		Open: open,
	}
}

type consulBackend struct {
	s          backend.Services
	path       string
	gzip, lock bool
	client     *rest.Client
	base       string // the address, without a final slash
	header     http.Header
	query      url.Values // the query parameters of each request
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &consulBackend{s: s, path: a.Required("path"), gzip: a.Bool("gzip", false), lock: a.Bool("lock", true), header: http.Header{}, query: url.Values{}}
	if strings.HasPrefix(b.path, "/") {
		a.Fail("path", "The %q begins with a slash, which keys of Consul do not", "path")
	}
	scheme := a.String("scheme", "")
	if scheme == "" {
		scheme = "http"
		if a.Bool("", false, "CONSUL_HTTP_SSL") {
			scheme = "https"
		}
	}
	tls := backend.TLS{
		CA:         file(a, s, "ca_file", "CONSUL_CACERT"),
		Cert:       file(a, s, "cert_file", "CONSUL_CLIENT_CERT"),
		Key:        file(a, s, "key_file", "CONSUL_CLIENT_KEY"),
		ServerName: s.Env.Get("CONSUL_TLS_SERVER_NAME"),
		Insecure:   !a.Bool("", true, "CONSUL_HTTP_SSL_VERIFY"),
	}
	if dir := s.Env.Get("CONSUL_CAPATH"); dir != "" && tls.CA == "" {
		names, _ := filepath.Glob(filepath.Join(at(s, dir), "*"))
		for _, name := range names {
			if text, err := readfile.Whole(name); err == nil {
				tls.CA += string(text) + "\n"
			}
		}
	}
	transport, err := s.TLSTransport(tls)
	switch {
	case errors.Is(err, backend.ErrCA):
		a.Fail("ca_file", "The %q cannot be used: %s", "ca_file", err)
	case err != nil:
		a.Fail("cert_file", "The %q and %q cannot be used: %s", "cert_file", "key_file", err)
	}

	address := a.String("address", "127.0.0.1:8500", "CONSUL_HTTP_ADDR")
	if prefix, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
		switch prefix {
		case "http":
		case "https":
			scheme = "https"
		case "unix":
			address = "unix"
			if transport != nil {
				transport = s.Shared.Get("consul unix "+rest, func() any {
					t := s.Transport.Clone()
					t.Proxy = nil
					t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
						return (&net.Dialer{}).DialContext(ctx, "unix", rest)
					}
					return t
				}).(*http.Transport)
			}
		default:
			a.Fail("address", "The %q begins with %q; http, https and unix are known", "address", prefix+"://")
		}
	}
	if scheme != "http" && scheme != "https" {
		a.Fail("scheme", "The %q is neither http nor https", "scheme")
	}
	b.base = scheme + "://" + strings.TrimSuffix(address, "/")
	if u, err := url.Parse(b.base); err != nil || u.Host == "" {
		a.Fail("address", "The %q is not an address like 127.0.0.1:8500", "address")
	}

	token := a.String("access_token", "", "CONSUL_HTTP_TOKEN")
	if name := s.Env.Get("CONSUL_HTTP_TOKEN_FILE"); token == "" && name != "" {
		text, err := readfile.Whole(at(s, name))
		if err != nil {
			a.Fail("access_token", "The file that CONSUL_HTTP_TOKEN_FILE names cannot be read: %s", err)
		}
		token = strings.TrimSpace(string(text))
	}
	if token != "" {
		b.header.Set("X-Consul-Token", token)
	}
	if auth := a.String("http_auth", "", "CONSUL_HTTP_AUTH"); auth != "" {
		if !strings.Contains(auth, ":") {
			auth += ":"
		}
		b.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(auth)))
	}
	for name, v := range map[string]string{"dc": a.String("datacenter", ""), "ns": s.Env.Get("CONSUL_NAMESPACE"), "partition": s.Env.Get("CONSUL_PARTITION")} {
		if v != "" {
			b.query.Set(name, v)
		}
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	b.client = &rest.Client{HTTP: &http.Client{Transport: transport}, Retries: 4, Sleep: s.Sleep, Now: s.Now}
	return b, nil
}

func at(s backend.Services, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.Dir, name)
}

// file returns the content of the file in an argument or a variable.
func file(a *backend.Args, s backend.Services, name, env string) string {
	path := a.String(name, "", env)
	if path == "" {
		return ""
	}
	text, err := readfile.Whole(at(s, path))
	if err != nil {
		a.Fail(name, "The file of %q cannot be read: %s", name, err)
	}
	return string(text)
}

// key returns the key of a workspace.
func (b *consulBackend) key(workspace string) string {
	if workspace == "" || workspace == store.Default {
		return b.path
	}
	return b.path + "-env:" + workspace
}

func (b *consulBackend) List(ctx context.Context) ([]string, error) {
	prefix := b.path + "-env:"
	resp, err := b.send(ctx, "GET", "kv/"+escape(prefix), url.Values{"keys": {""}}, nil, true)
	if err != nil {
		return nil, err
	}
	var keys []string
	switch resp.Status {
	case http.StatusOK:
		if err := json.Unmarshal(resp.Body, &keys); err != nil {
			return nil, b.odd("Failed to list workspaces")
		}
	case http.StatusNotFound:
	default:
		return nil, b.refused("Failed to list workspaces", resp)
	}
	names := []string{store.Default}
	for _, k := range keys {
		if name := strings.TrimPrefix(k, prefix); name != "" && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

// Delete deletes the key and all keys below it except the lock.
func (b *consulBackend) Delete(ctx context.Context, workspace string) error {
	o := &object{b: b, key: b.key(workspace)}
	below := o.below()
	resp, err := b.send(ctx, "DELETE", "kv/"+escape(o.key), nil, nil, true)
	if err == nil && resp.Status != http.StatusOK {
		err = b.refused("Failed to delete the state", resp)
	}
	if err != nil {
		return err
	}
	for _, tree := range []string{below + "tfstate.", below + ".beside/", below + ".beside-more/"} {
		if err := b.deleteTree(ctx, tree); err != nil {
			return err
		}
	}
	return nil
}

func (b *consulBackend) deleteTree(ctx context.Context, prefix string) error {
	resp, err := b.send(ctx, "DELETE", "kv/"+escape(prefix), url.Values{"recurse": {""}}, nil, true)
	if err == nil && resp.Status != http.StatusOK {
		err = b.refused("", resp)
	}
	return err
}

func (b *consulBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	key := b.key(workspace)
	return backend.NewStore(&object{b: b, key: key}, "consul:"+key, o, b.s), nil
}

// escape escapes a key for the path of a URL.
func escape(key string) string {
	return (&url.URL{Path: key}).EscapedPath()
}

// send sends a request to the API "v1".
func (b *consulBackend) send(ctx context.Context, method, path string, q url.Values, body []byte, repeat bool) (*rest.Response, error) {
	all := url.Values{}
	for k, v := range b.query {
		all[k] = v
	}
	for k, v := range q {
		all[k] = v
	}
	address := b.base + "/v1/" + strings.TrimPrefix(path, "/")
	if len(all) > 0 {
		address += "?" + all.Encode()
	}
	resp, err := b.client.Do(ctx, rest.Request{Method: method, URL: address, Header: b.header, Body: body, Repeat: repeat})
	if err != nil {
		return nil, &backend.Error{Argument: "address", Answer: diag.Reason(err), Advice: rest.Reach(err, "ca_file", "Check address, scheme and the certificates, and that Consul can be reached from here."), Err: err}
	}
	return resp, nil
}

func (b *consulBackend) refused(summary string, resp *rest.Response) error {
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Summary: summary, Argument: "address", Answer: answer, Advice: advice}
	}
	e := &backend.Error{Summary: summary, Argument: "address", Answer: fmt.Sprintf("Consul answered %d %s", resp.Status, http.StatusText(resp.Status))}
	if line := rest.Line(resp.Body); line != "" {
		e.Answer += ": " + line
	}
	switch resp.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Argument, e.Permission = "access_token", b.rules()
		e.Advice = "The token needs the rules " + b.rules() + "."
		if b.header.Get("X-Consul-Token") == "" {
			e.Advice = "Set access_token or CONSUL_HTTP_TOKEN; the token needs the rules " + b.rules() + "."
		}
	case http.StatusInternalServerError:
		if strings.Contains(e.Answer, "datacenter") {
			e.Argument, e.Advice = "datacenter", "Check the name of the datacenter, and that this agent can reach it."
			break
		}
		fallthrough
	default:
		e.Advice = "The log of the Consul agent says more; \"consul operator raft list-peers\" tells whether there is a leader."
	}
	return e
}

// rules returns the required permissions of a token, as Consul names them.
func (b *consulBackend) rules() string {
	return fmt.Sprintf(`key_prefix %q { policy = "write" } and session_prefix "" { policy = "write" }`, b.path)
}

func (b *consulBackend) odd(summary string) error {
	return &backend.Error{Summary: summary, Argument: "address", Answer: "the answer is not one of Consul", Advice: "Check that the address is that of Consul's HTTP interface."}
}

// WhyNoLocks implements backend.Lockless.
func (b *consulBackend) WhyNoLocks() string { return "lock is false" }

// Check implements backend.Checker.
func (b *consulBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	report(b.checkToken(ctx))
	backend.CheckNoVersioning("Consul keeps no older states: \"consul snapshot save\" does", report)
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: "Consul has none of its own: what its servers keep is as safe as their disks; an encryption block seals the state"})
	f := backend.Finding{What: "encryption on the way", OK: true, Detail: "TLS"}
	switch {
	case b.base == "http://unix" || strings.HasPrefix(b.base, "http://127.") || strings.HasPrefix(b.base, "http://localhost"):
		f.Detail = "the agent is on this machine"
	case strings.HasPrefix(b.base, "http://"):
		f.OK, f.Detail = false, "the scheme is http: token and state can be read on the way"
	}
	report(f)
	backend.CheckClock(b.client, report)
}

// checkToken reads the token's description from Consul.
func (b *consulBackend) checkToken(ctx context.Context) backend.Finding {
	f := backend.Finding{What: "credentials", OK: true, Detail: "no token"}
	if b.header.Get("X-Consul-Token") == "" {
		return f
	}
	resp, err := b.send(ctx, "GET", "acl/token/self", nil, nil, true)
	if err != nil {
		return backend.Failed(f.What, err)
	}
	var token struct {
		AccessorID     string
		ExpirationTime *string
	}
	f.Detail = "a token"
	if resp.Status == http.StatusOK && json.Unmarshal(resp.Body, &token) == nil && token.AccessorID != "" {
		f.Detail = "the token " + token.AccessorID
		if token.ExpirationTime != nil {
			f.Detail += ", until " + *token.ExpirationTime
		}
	}
	return f
}
