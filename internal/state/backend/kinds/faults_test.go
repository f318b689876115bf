package kinds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/backend/doctor"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

// planted contains the secrets in all blocks below.
var planted = []string{"planted-secret", base64.StdEncoding.EncodeToString([]byte("planted-secret"))}

// A block is a configuration of a kind, with {URL} and {HOST} for the address of the service,
// and {SCHEME} for its scheme.
type block struct {
	kind string
	text string
	// tls means that the kind always uses TLS.
	tls bool
}

func blocks() []block {
	return []block{
		{kind: "s3", text: `bucket = "states"
			key = "app"
			region = "eu-central-1"
			access_key = "planted-id"
			secret_key = "planted-secret"
			use_lockfile = true
			use_path_style = true
			endpoints = { s3 = "{URL}" }`},
		{kind: "gcs", tls: true, text: `bucket = "states"
			access_token = "planted-secret"`},
		{kind: "azurerm", tls: true, text: `storage_account_name = "acme"
			container_name = "states"
			key = "app"
			access_key = "` + planted[1] + `"`},
		{kind: "http", text: `address = "{URL}/state"
			lock_address = "{URL}/lock"
			unlock_address = "{URL}/lock"
			username = "me"
			password = "planted-secret"`},
		{kind: "consul", text: `path = "app"
			address = "{HOST}"
			scheme = "{SCHEME}"
			access_token = "planted-secret"`},
		{kind: "kubernetes", tls: true, text: `secret_suffix = "app"
			host = "https://{HOST}"
			insecure = true
			token = "planted-secret"`},
		{kind: "cos", tls: true, text: `bucket = "states-125"
			region = "ap-guangzhou"
			secret_id = "planted-id"
			secret_key = "planted-secret"`},
		{kind: "oss", text: `bucket = "states"
			endpoint = "{URL}"
			region = "eu-central-1"
			access_key = "planted-id"
			secret_key = "planted-secret"`},
		{kind: "remote", tls: true, text: `hostname = "tfe.test"
			organization = "acme"
			token = "planted-secret"
			workspaces {
				name = "app"
			}`},
		{kind: "pg", text: `conn_str = "postgres://me:planted-secret@{HOST}/db?sslmode=disable&connect_timeout=5"`},
		{kind: "etcdv3", text: `endpoints = ["{URL}"]
			username = "me"
			password = "planted-secret"`},
	}
}

// permissions are the missing permissions that the command which examines a backend must name,
// for services that report them.
var permissions = map[string]string{
	"s3": "s3:GetObject", "gcs": "storage.objects.get", "azurerm": "Storage Blob Data Reader", "consul": "key_prefix", "kubernetes": "get secrets", "cos": "cos:GetObject", "oss": "oss:GetObject",
}

// A wire describes how a kind reaches the stand-in for its service.
type wire struct {
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	proxy *url.URL
	trust bool           // all certificates are accepted
	roots *x509.CertPool // accepted authorities; nil means those of the system
	wait  time.Duration  // time limit for a response; 0 means a minute
}

// messagesOf runs every operation of a kind against a fault and returns the message of each.
func messagesOf(t *testing.T, b block, text string, w wire) map[string]string {
	t.Helper()
	var kind backend.Kind
	for _, k := range All() {
		if k.Name == b.kind {
			kind = k
		}
	}
	f, diags := hclsyntax.ParseConfig([]byte("terraform {\n  backend \""+b.kind+"\" {\n"+text+"\n  }\n}\n"), "main.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	body := f.Body.(*hclsyntax.Body).Blocks[0].Body.Blocks[0].Body
	at := f.Body.(*hclsyntax.Body).Blocks[0].Body.Blocks[0].DefRange()
	set := map[string]cty.Value{}
	for name, a := range body.Attributes {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if v.Type().IsObjectType() { // arguments that are not set are null
			all := map[string]cty.Value{}
			for n := range kind.Schema.Attributes[name].Type.AttributeTypes() {
				all[n] = cty.NullVal(cty.String)
			}
			for n, one := range v.AsValueMap() {
				all[n] = one
			}
			v = cty.ObjectVal(all)
		}
		set[name] = v
	}
	for _, inner := range body.Blocks {
		all := map[string]cty.Value{}
		for name, a := range inner.Body.Attributes {
			all[name], _ = a.Expr.Value(nil)
		}
		set[inner.Type] = cty.ObjectVal(all)
	}
	s := backendtest.Services(t)
	s.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	s.Service = func(_ context.Context, host, _ string) (*url.URL, error) {
		return url.Parse("https://" + host + "/api/v2/")
	}
	s.Transport.DialContext = w.dial
	if w.proxy != nil {
		s.Transport.Proxy = http.ProxyURL(w.proxy)
	}
	if w.wait != 0 {
		s.Transport.ResponseHeaderTimeout, s.Transport.TLSHandshakeTimeout = w.wait, w.wait
	}
	s.Transport.TLSClientConfig.RootCAs = w.roots
	if w.trust {
		s.Transport.TLSClientConfig.InsecureSkipVerify = true
	}

	out := map[string]string{}
	note := func(op string, err error) {
		if err == nil || errors.Is(err, backend.ErrNoWorkspaces) || errors.Is(err, backend.ErrNoLocks) {
			return
		}
		ds := configure.Locate(backend.Message(diag.CodeBackendFailed, "Failed", "", err), kind.Schema, body, &at, nil)
		m := ds[0]
		var e *backend.Error
		if _, ok := errors.AsType[*backend.LockedError](err); ok {
			out[op] = err.Error() // store.Locked adds advice
			return
		}
		if !errors.As(err, &e) || e.Advice == "" {
			t.Errorf("%s: nothing says what to do: %v", op, err)
		}
		if e != nil && e.Argument != "" && kind.Schema.Attributes[e.Argument] == nil && kind.Schema.Blocks[e.Argument] == nil {
			t.Errorf("%s: %q is no argument", op, e.Argument)
		}
		if m.At == nil || m.At.Filename != "main.tf" || m.At.Start.Line < 2 {
			t.Errorf("%s: no place: %+v", op, m.At)
			return
		}
		line := strings.Split(string(f.Bytes), "\n")[m.At.Start.Line-1]
		if strings.Contains(m.Detail, "\n") || strings.Count(m.Detail, ": ") > 4 || strings.Contains(m.Detail, "Post \"") || strings.Contains(m.Detail, "Get \"") || strings.Contains(m.Detail, "%!") {
			t.Errorf("%s: more than one line, or errors in errors: %s", op, m.Detail)
		}
		for _, secret := range planted {
			if strings.Contains(m.Detail, secret) {
				t.Errorf("%s: a secret is shown: %s", op, m.Detail)
			}
		}
		out[op] = strings.TrimSpace(strings.SplitN(line, "=", 2)[0]) + " | " + m.Detail
	}
	ctx := t.Context()
	defer func() {
		// The command that examines a backend names the missing permission as the service does.
		if want := permissions[b.kind]; want != "" && strings.HasSuffix(t.Name(), "/missing_permission") {
			b, err := kind.Open(t.Context(), backendtest.Config(t, kind, set), s)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			doctor.Run(t.Context(), b, store.Default, backend.StoreOptions{}, store.LockInfo{}, func(f backend.Finding) { names = append(names, f.Permission) })
			if !strings.Contains(strings.Join(names, "\n"), want) {
				t.Errorf("no finding names the permission %s: %q", want, names)
			}
		}
	}()
	opened, err := kind.Open(ctx, backendtest.Config(t, kind, set), s)
	if err != nil {
		note("open", err)
		return out
	}
	slow := kind.Name == "pg" || kind.Name == "etcdv3" // these wait for a response
	if !slow {
		_, err = opened.List(ctx)
		note("list", err)
	}
	st, err := opened.Store("", backend.StoreOptions{})
	if err != nil {
		note("store", err)
		return out
	}
	o := st.(*backend.Store).Object()
	p, err := o.Read(ctx)
	note("read", err)
	if err == nil && p.Data != nil {
		_, ds := st.Read(ctx)
		if !ds.HasErrors() {
			t.Errorf("%q was taken for a state", p.Data)
		} else {
			out["read"] = ds[0].Summary + " | " + ds[0].Detail
		}
	}
	if slow {
		return out
	}
	_, err = o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, "")
	note("write", err)
	_, err = o.Lock(ctx, store.LockInfo{ID: store.NewID(), Who: "me"})
	note("lock", err)
	note("unlock", o.Unlock(ctx, "6f2c1d3e-0000-4000-8000-000000000000"))
	return out
}

// to connects every connection to one server.
func to(address string) func(ctx context.Context, network, _ string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

func refusing(_ context.Context, network, address string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
}

func unnamed(_ context.Context, _, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// at replaces the placeholders for a service's address in a block.
func (b block) at(scheme, host string) string {
	return strings.NewReplacer("{URL}", scheme+"://"+host, "{HOST}", host, "{SCHEME}", scheme).Replace(b.text)
}

// For every fault of a service or its connection, the message names the argument with its line,
// contains the response in one line and advice, and shows no secret.
func TestFaults(t *testing.T) {
	for _, b := range blocks() {
		check := func(name, text string, w wire, want ...string) {
			t.Run(b.kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				got := messagesOf(t, b, text, w)
				all := ""
				for op, message := range got {
					t.Logf("%-6s %s", op, message)
					all += message + "\n"
				}
				if len(got) == 0 {
					t.Error("nothing went wrong")
				}
				for _, s := range want {
					if !strings.Contains(all, s) {
						t.Errorf("nothing says %q", s)
					}
				}
			})
		}
		serve := func(handler http.HandlerFunc) (plain, tls *httptest.Server) {
			plain, tls = httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
			tls.Config.ErrorLog = quiet()
			tls.StartTLS()
			t.Cleanup(plain.Close)
			t.Cleanup(tls.Close)
			return plain, tls
		}
		host := func(s *httptest.Server) string { return s.Listener.Addr().String() }
		for _, f := range backendtest.Faults(b.kind) {
			plain, tls := serve(func(w http.ResponseWriter, r *http.Request) {
				for k, v := range f.Header {
					w.Header().Set(k, v)
				}
				w.Header().Set("TFP-API-Version", "2.6")
				w.WriteHeader(f.Status)
				fmt.Fprint(w, f.Body)
			})
			s, scheme := plain, "http"
			if b.tls {
				s, scheme = tls, "https"
			}
			check(f.Name, b.at(scheme, host(s)), wire{dial: to(host(s)), trust: true}, f.Want...)
		}
		portal, secure := serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!DOCTYPE html>\n<html><head><title>Sign in to the network</title></head><body>planted-secret</body></html>\n")
		})
		proxy, _ := serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(http.StatusProxyAuthRequired)
			fmt.Fprint(w, "<html>who are you?</html>")
		})
		address, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		s, scheme := portal, "http"
		if b.tls {
			s, scheme = secure, "https"
		}
		want := []string{"a page of HTML", "a portal"}
		if b.kind == "pg" || b.kind == "etcdv3" { // these do not use HTTP
			want = []string{"does not speak"}
		}
		check("a portal in the way", b.at(scheme, host(s)), wire{dial: to(host(s)), trust: true}, want...)
		good, expired, elsewhere, pool, authorities := servers.WrongCertificates(t)
		secured := func(c *tls.Config) *httptest.Server {
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.TLS, s.Config.ErrorLog = c, quiet()
			s.StartTLS()
			t.Cleanup(s.Close)
			return s
		}
		strict := func(s *httptest.Server) string {
			return strings.Replace(b.at("https", host(s)), "insecure = true", "", 1)
		}
		mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections without responding
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = mute.Close() })
		if b.kind == "pg" || b.kind == "etcdv3" { // these have connections of their own
			check("nobody answers", strings.Replace(b.at("http", mute.Addr().String()), "connect_timeout=5", "connect_timeout=1", 1), wire{}, map[string]string{"pg": "within 1s", "etcdv3": "no answer in time"}[b.kind], "Check")
			check("nobody there", b.at("http", "127.0.0.1:1"), wire{})
			if b.kind == "etcdv3" {
				check("certificate", b.at("https", host(secure)), wire{})
				asking := good.Clone()
				asking.ClientAuth = tls.RequireAnyClientCert
				for name, c := range map[string]struct {
					config *tls.Config
					want   string
				}{
					"certificate that has expired":   {expired, "has expired"},
					"certificate of another host":    {elsewhere, "The certificate is that of another host"},
					"a client certificate is wanted": {asking, "wants another client certificate"},
				} {
					check(name, b.at("https", host(secured(c.config)))+"\n cacert_path = \""+authorities+"\"", wire{}, c.want, "endpoints |")
				}
			}
			continue
		}
		check("nobody there", b.at(scheme, host(s)), wire{dial: refusing}, "connection refused")
		check("no such host", b.at(scheme, host(s)), wire{dial: unnamed}, "The name is not known")
		check("nobody answers", b.at(scheme, host(s)), wire{dial: to(mute.Addr().String()), trust: true, wait: 50 * time.Millisecond}, "no answer in time", "Nobody answers in time")
		ended := make(chan struct{})
		late, lateTLS := serve(func(http.ResponseWriter, *http.Request) { <-ended })
		t.Cleanup(func() { close(ended) })
		if b.tls {
			late = lateTLS
		}
		check("no answer to requests", b.at(scheme, host(late)), wire{dial: to(host(late)), trust: true, wait: 50 * time.Millisecond}, "no answer in time", "Nobody answers in time")
		old, foreign := secured(expired), secured(elsewhere)
		check("certificate that has expired", strict(old), wire{dial: to(host(old)), roots: pool}, "has expired", "the clock of this machine")
		check("certificate of another host", strict(foreign), wire{dial: to(host(foreign)), roots: pool}, "The certificate is that of another host")
		check("certificate", strings.Replace(b.at("https", host(secure)), "insecure = true", "", 1), wire{dial: to(host(secure))}, "certificate")
		check("no TLS", b.at("https", host(portal)), wire{dial: to(host(portal)), trust: true}, "does not speak TLS")
		check("proxy that asks who it is", b.at(scheme, host(s)), wire{dial: new(net.Dialer).DialContext, proxy: address, trust: true}, "407", "HTTPS_PROXY")
		check("proxy that is not there", b.at(scheme, host(s)), wire{dial: new(net.Dialer).DialContext, proxy: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, trust: true}, "HTTPS_PROXY")
	}
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
