package tfe

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
	"github.com/zclconf/go-cty/cty"
)

var ctx = context.Background()

// services returns services with the stand-in's certificate and discovery.
func services(t testing.TB, s *servers.TFEServer) backend.Services {
	out := backendtest.Services(t)
	out.Transport = s.Transport(t)
	out.Service = func(_ context.Context, host, _ string) (*url.URL, error) {
		if host != s.Host {
			return nil, errors.New("no such host")
		}
		return url.Parse("https://" + host + "/api/v2/")
	}
	return out
}

func block(set map[string]cty.Value) cty.Value {
	return cty.ObjectVal(set)
}

func arguments(s *servers.TFEServer, workspaces map[string]cty.Value) map[string]cty.Value {
	return map[string]cty.Value{
		"hostname": cty.StringVal(s.Host), "organization": cty.StringVal("acme"), "token": cty.StringVal("planted-token"),
		"workspaces": block(workspaces),
	}
}

func place(t *testing.T, s *servers.TFEServer, workspaces map[string]cty.Value) backendtest.Place {
	return backendtest.Place{Config: arguments(s, workspaces), Services: services(t, s), Locks: true, Secrets: []string{"planted-token"}}
}

func text(name, value string) map[string]cty.Value {
	return map[string]cty.Value{name: cty.StringVal(value)}
}

func TestRemoteByName(t *testing.T) {
	backendtest.Run(t, Remote(), func(t *testing.T) backendtest.Place {
		s := servers.TFE(t)
		p := place(t, s, text("name", "app"))
		p.Steal = func(*testing.T) {
			s.Change("app", func(w *servers.TFEWorkspace) { w.LockedBy, w.Reason = "bob", "mine" })
		}
		return p
	})
}

// The test suite requires a default workspace. Here it is a workspace of another name.
func TestWithWorkspaces(t *testing.T) {
	for name, c := range map[string]struct {
		kind       backend.Kind
		workspaces map[string]cty.Value
		remote     string
	}{
		"prefix":  {Remote(), text("prefix", "app-"), "app-main"},
		"tags":    {Cloud(), map[string]cty.Value{"tags": cty.SetVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")})}, "main"},
		"project": {Cloud(), map[string]cty.Value{"tags": cty.SetVal([]cty.Value{cty.StringVal("a")}), "project": cty.StringVal("P")}, "main"},
	} {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, renamed(c.kind), func(t *testing.T) backendtest.Place {
				s := servers.TFE(t)
				p := place(t, s, c.workspaces)
				p.Workspaces = true
				p.Steal = func(*testing.T) {
					s.Change(c.remote, func(w *servers.TFEWorkspace) { w.LockedBy, w.Reason = "bob", "" })
				}
				return p
			})
		})
	}
}

// renamed returns a kind whose workspace "main" is named "default".
func renamed(k backend.Kind) backend.Kind {
	open := k.Open
	k.Open = func(ctx context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
		b, err := open(ctx, cfg, s)
		if err != nil {
			return nil, err
		}
		return &withDefault{b.(*Backend)}, nil
	}
	return k
}

type withDefault struct{ *Backend }

func main(name string) string {
	if name == "" || name == store.Default {
		return "main"
	}
	return name
}

func (w *withDefault) List(ctx context.Context) ([]string, error) {
	names, err := w.Backend.List(ctx)
	if i := slices.Index(names, "main"); i >= 0 {
		names = slices.Delete(names, i, i+1)
	}
	return append([]string{store.Default}, names...), err
}

func (w *withDefault) Delete(ctx context.Context, name string) error {
	return w.Backend.Delete(ctx, main(name))
}

func (w *withDefault) Create(ctx context.Context, name string) error {
	return w.Backend.Create(ctx, main(name))
}

func (w *withDefault) Store(name string, o backend.StoreOptions) (store.Store, error) {
	return w.Backend.Store(main(name), o)
}

func openWith(t *testing.T, k backend.Kind, p backendtest.Place) (*Backend, error) {
	t.Helper()
	b, err := k.Open(ctx, backendtest.Config(t, k, p.Config), p.Services)
	if err != nil {
		return nil, err
	}
	return b.(*Backend), nil
}

func mustOpen(t *testing.T, k backend.Kind, p backendtest.Place) *Backend {
	t.Helper()
	b, err := openWith(t, k, p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Tokens, hosts and names come from the arguments, the environment and the login, in this
// order of precedence.
func TestEnvironment(t *testing.T) {
	s := servers.TFE(t)
	s.Add(servers.TFEWorkspace{Name: "app"})
	p := place(t, s, nil)
	p.Config = map[string]cty.Value{}
	p.Services.Env = sys.Env{"TF_CLOUD_HOSTNAME=" + s.Host, "TF_CLOUD_ORGANIZATION=acme", "TF_WORKSPACE=app"}
	p.Services.Token = func(_ context.Context, host string) (string, error) {
		if host != s.Host {
			t.Errorf("asked for the token of %s", host)
		}
		return "planted-token", nil
	}
	b := mustOpen(t, Cloud(), p)
	if names, err := b.List(ctx); err != nil || !slices.Equal(names, []string{"app"}) {
		t.Errorf("%v %v", names, err)
	}
	p.Services.Token = func(context.Context, string) (string, error) { return "", nil }
	_, err := openWith(t, Cloud(), p)
	var e *backend.Error
	if !errors.As(err, &e) || e.Argument != "hostname" || !strings.Contains(e.Advice, "TF_TOKEN_localhost") {
		t.Errorf("no token: %v", err)
	}
}

// An invalid configuration is an error that names the argument.
func TestBadConfiguration(t *testing.T) {
	s := servers.TFE(t)
	tags := cty.SetVal([]cty.Value{cty.StringVal("a")})
	for name, c := range map[string]struct {
		kind     backend.Kind
		argument string
		set      map[string]cty.Value
		env      sys.Env
	}{
		"no workspaces":         {Remote(), "workspaces", map[string]cty.Value{"workspaces": cty.NullVal(cty.DynamicPseudoType)}, nil},
		"name and prefix":       {Remote(), "workspaces", map[string]cty.Value{"workspaces": block(map[string]cty.Value{"name": cty.StringVal("a"), "prefix": cty.StringVal("b")})}, nil},
		"name and tags":         {Cloud(), "workspaces", map[string]cty.Value{"workspaces": block(map[string]cty.Value{"name": cty.StringVal("a"), "tags": tags})}, nil},
		"nothing":               {Cloud(), "workspaces", map[string]cty.Value{"workspaces": cty.NullVal(cty.DynamicPseudoType)}, nil},
		"another workspace":     {Cloud(), "workspaces", map[string]cty.Value{"workspaces": block(text("name", "a"))}, sys.Env{"TF_WORKSPACE=b"}},
		"no host":               {Cloud(), "hostname", map[string]cty.Value{"hostname": cty.NullVal(cty.String), "workspaces": block(text("name", "a"))}, nil},
		"a host that is none":   {Cloud(), "hostname", map[string]cty.Value{"hostname": cty.StringVal("other.example"), "workspaces": block(text("name", "a"))}, nil},
		"no organization":       {Remote(), "organization", map[string]cty.Value{"organization": cty.NullVal(cty.String), "workspaces": block(text("name", "a"))}, nil},
		"unknown organization":  {Remote(), "organization", map[string]cty.Value{"organization": cty.StringVal("nobody"), "workspaces": block(text("name", "a"))}, nil},
		"a token of nobody":     {Remote(), "token", map[string]cty.Value{"token": cty.StringVal("planted-wrong"), "workspaces": block(text("name", "a"))}, nil},
		"the default workspace": {Cloud(), "workspaces", map[string]cty.Value{"workspaces": block(text("name", "default"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t, s, nil)
			for k, v := range c.set {
				p.Config[k] = v
			}
			p.Services.Env = c.env
			_, err := openWith(t, c.kind, p)
			var e *backend.Error
			if !errors.As(err, &e) || e.Argument != c.argument {
				t.Fatalf("%v", err)
			}
			if strings.Contains(err.Error(), "planted") {
				t.Errorf("a token is shown: %v", err)
			}
		})
	}
}

// A certificate of an unknown authority is reported as such.
func TestUntrusted(t *testing.T) {
	s := servers.TFE(t)
	p := place(t, s, text("name", "a"))
	p.Services.Transport = backendtest.Services(t).Transport
	s.Before = func(http.ResponseWriter, *http.Request) bool { return false }
	_, err := openWith(t, Remote(), p)
	if err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("%v", err)
	}
}

// A workspace is created in the project, with the tags and the version.
func TestCreate(t *testing.T) {
	s := servers.TFE(t)
	p := place(t, s, map[string]cty.Value{"tags": cty.SetVal([]cty.Value{cty.StringVal("b"), cty.StringVal("a")}), "project": cty.StringVal("P")})
	b := mustOpen(t, Cloud(), p)
	if names, err := b.List(ctx); err != nil || len(names) != 0 {
		t.Errorf("%v %v", names, err)
	}
	if err := b.Create(ctx, "new"); err != nil {
		t.Fatal(err)
	}
	w := s.Workspace("new")
	if w == nil || w.Project != "P" || !slices.Equal(w.Tags, []string{"a", "b"}) || w.Version != "1.12.6" {
		t.Errorf("%+v", w)
	}
	s.Add(servers.TFEWorkspace{Name: "other", Project: "P", Tags: []string{"a"}})
	s.Add(servers.TFEWorkspace{Name: "elsewhere", Tags: []string{"a", "b"}})
	if names, err := b.List(ctx); err != nil || !slices.Equal(names, []string{"new"}) {
		t.Errorf("%v %v", names, err)
	}
	if err := b.Create(ctx, "not.valid"); err == nil || !strings.Contains(err.Error(), "letters") {
		t.Errorf("%v", err)
	}
	for range 105 { // more than one page
		s.Add(servers.TFEWorkspace{Name: "w-" + store.NewID(), Project: "P", Tags: []string{"a", "b"}})
	}
	if names, err := b.List(ctx); err != nil || len(names) != 106 {
		t.Errorf("%d %v", len(names), err)
	}
}

// States are stored with their outputs, and encrypted ones without.
func TestOutputs(t *testing.T) {
	s := servers.TFE(t)
	b := mustOpen(t, Remote(), place(t, s, text("name", "app")))
	st, err := b.Store("", backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ds := st.Write(ctx, storetest.Sample(2)); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	log := strings.Join(s.Log(), "\n")
	if !strings.Contains(log, `"json-state-outputs":"`) || !strings.Contains(log, `"lineage":"6f2c1d3e-0000-4000-8000-000000000000"`) || !strings.Contains(log, `"serial":3`) {
		t.Error(log)
	}
	before := len(s.Log())
	if _, err := (&object{b: b, name: "app"}).Write(ctx, []byte(`{"serial":9,"lineage":"l","meta":{},"encrypted_data":"eA=="}`), backend.Prior{Unknown: true}, ""); err != nil {
		t.Fatal(err)
	}
	if log := strings.Join(s.Log()[before:], "\n"); strings.Contains(log, "json-state-outputs") || !strings.Contains(log, `"serial":9`) {
		t.Error(log)
	}
}

// A service without uploads receives the state in the request.
func TestWithoutUploads(t *testing.T) {
	s := servers.TFE(t)
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/state-versions") && r.ContentLength < 700 {
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(`{"errors":[{"status":"400","title":"bad request","detail":"param is missing or the value is empty: state"}]}`))
			return true
		}
		return false
	}
	b := mustOpen(t, Remote(), place(t, s, text("name", "app")))
	st, _ := b.Store("", backend.StoreOptions{})
	if ds := st.Write(ctx, storetest.Sample(20)); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if !strings.Contains(s.State("app"), `"serial":21`) {
		t.Error(s.State("app"))
	}
}

// After a failed upload the workspace remains locked.
func TestFailedUpload(t *testing.T) {
	s := servers.TFE(t)
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == "PUT"
	}
	b := mustOpen(t, Remote(), place(t, s, text("name", "app")))
	st, _ := b.Store("", backend.StoreOptions{})
	unlock, ds := st.Lock(ctx, store.LockInfo{Operation: "OperationTypeApply"}, 0)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if _, ds := st.Read(ctx); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if ds := st.Write(ctx, storetest.Sample(1)); !ds.HasErrors() {
		t.Fatal("written")
	}
	if ds := unlock(); !ds.HasErrors() || s.Workspace("app").LockedBy != "alice" {
		t.Errorf("unlocked after a write that failed: %v", ds)
	}
	if ds := backend.ForceUnlock(ctx, mustStore(t, b), "acme/app"); ds.HasErrors() || s.Workspace("app").LockedBy != "" {
		t.Error(ds.Err())
	}
}

// An upload that arrives after that of a process that took over the lock does not count as
// written, though the service accepts it.
func TestOvertaken(t *testing.T) {
	s := servers.TFE(t)
	var authorized string
	ask := func(method, path, body string) string {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", authorized)
		w := httptest.NewRecorder()
		s.Answer(w, r)
		if w.Code/100 != 2 {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	uploads := 0
	s.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if a := r.Header.Get("Authorization"); a != "" {
			authorized = a
		}
		if r.Method == "PUT" {
			if uploads++; uploads == 1 { // a slow upload
				const theirs = `{"version":4,"serial":1,"lineage":"other"}`
				made := ask("POST", "/api/v2/workspaces/"+s.Workspace("app").ID+"/state-versions", fmt.Sprintf(`{"data":{"type":"state-versions","attributes":{"serial":1,"lineage":"other","md5":"%x"}}}`, md5.Sum([]byte(theirs))))
				ask("PUT", "/blob/state/"+regexp.MustCompile(`sv-[0-9]+`).FindString(made), theirs)
			}
		}
		return false
	}
	b := mustOpen(t, Remote(), place(t, s, text("name", "app")))
	st, _ := b.Store("", backend.StoreOptions{})
	unlock, ds := st.Lock(ctx, store.LockInfo{Operation: "OperationTypeApply"}, 0)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	defer unlock()
	if _, ds := st.Read(ctx); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	ds = st.Write(ctx, storetest.Sample(1))
	if !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "somebody else has written it") {
		t.Errorf("written: %v; the present state is %s", ds.Err(), s.State("app"))
	}
}

func mustStore(t *testing.T, b *Backend) store.Store {
	t.Helper()
	st, err := b.Store("", backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// The version of a workspace matters only if its runs use the state.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		ours, theirs string
		ok           bool
	}{
		{"1.12.6", "1.12.0", true}, {"1.12.6", "1.11.6", false}, {"1.12.6", "latest", true}, {"1.12.6", "~> 1.12.0", true},
		{"0.14.1", "1.2.9", true}, {"1.2.0", "1.3.0", false}, {"0.14.1", "0.13.1", false}, {"1.12.6", "odd", false},
	} {
		if got := compatible(c.ours, c.theirs); got != c.ok {
			t.Errorf("%s beside %s: %v", c.ours, c.theirs, got)
		}
	}
	s := servers.TFE(t)
	s.Add(servers.TFEWorkspace{Name: "app", Version: "1.5.7"})
	b := mustOpen(t, Remote(), place(t, s, text("name", "app")))
	lock := func(operation string, o backend.StoreOptions) bool {
		st, _ := b.Store("", o)
		unlock, ds := st.Lock(ctx, store.LockInfo{Operation: operation}, 0)
		if ds.HasErrors() {
			if !strings.Contains(ds.Err().Error(), "1.5.7") {
				t.Error(ds.Err())
			}
			return false
		}
		unlock()
		return true
	}
	if lock("state-mv", backend.StoreOptions{}) || !lock("state-mv", backend.StoreOptions{IgnoreVersion: true}) || !lock("OperationTypePlan", backend.StoreOptions{}) {
		t.Error("the version of the workspace")
	}
	s.Change("app", func(w *servers.TFEWorkspace) { w.Mode = "local" })
	if !lock("state-mv", backend.StoreOptions{}) {
		t.Error("a workspace for runs here")
	}
}

func TestBesideRemote(t *testing.T) {
	s := servers.TFE(t)
	s.Organization("acme", false)
	p := place(t, s, text("name", "app"))
	p.Anonymous = true // OpenTofu does not store the holder of its lock
	backendtest.Beside(t, Remote(), p, `
    hostname     = "`+s.Host+`"
    organization = "acme"
    token        = "planted-token"
    workspaces {
      name = "app"
    }`, "SSL_CERT_FILE="+s.CA)
}

// A plan with the service's variables omits those whose values the service does not return.
func TestInputVariables(t *testing.T) {
	s := servers.TFE(t)
	s.Add(servers.TFEWorkspace{Name: "app", Vars: []servers.TFEVar{
		{Key: "a", Value: "1", Category: "terraform"}, {Key: "b", Value: "[1, 2]", Category: "terraform", HCL: true},
		{Key: "c", Value: "hidden", Category: "terraform", Sensitive: true}, {Key: "D", Value: "e", Category: "env"},
	}})
	b := mustOpen(t, Remote(), place(t, s, text("name", "app")))
	got, err := b.InputVariables(ctx, "")
	if err != nil || len(got) != 2 || got["a"] != cty.StringVal("1") || got["b"].LengthInt() != 2 {
		t.Errorf("%v %v", got, err)
	}
}
