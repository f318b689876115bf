package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/net/registry"
	"github.com/terrace-iac/terrace/internal/net/registry/registrytest"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
)

func client(s *registrytest.Server) *registry.Client {
	return &registry.Client{
		HTTP:   &transfer.Client{HTTP: &http.Client{Transport: s.Transport()}, Backoff: time.Millisecond},
		Config: &cliconfig.Config{Registry: cliconfig.Registry{Retries: 1, Timeout: time.Minute}},
	}
}

func TestModules(t *testing.T) {
	s := registrytest.New(t)
	s.AddModule("ns", "net", "aws", "1.0.0", "git::https://example.com/net.git?ref=v1", false)
	s.AddModule("ns", "net", "aws", "1.1.0", "./files/net.zip", true)
	s.Token = "secret"
	c := client(s)
	c.Config.EnvTokens = map[string]string{s.Host: "secret"}
	a := fetch.Address{Kind: fetch.Registry, Host: s.Host, Namespace: "ns", Name: "net", System: "aws"}
	ctx := context.Background()
	vs, err := c.ModuleVersions(ctx, a)
	if d := cmp.Diff([]string{"1.0.0", "1.1.0"}, vs); d != "" || err != nil {
		t.Fatal(d, err)
	}
	loc, err := c.ModuleLocation(ctx, a, "1.0.0")
	if err != nil || loc.Where != "git::https://example.com/net.git?ref=v1" || loc.Direct || loc.Header != nil {
		t.Error(loc, err)
	}
	loc, err = c.ModuleLocation(ctx, a, "1.1.0")
	if err != nil || !loc.Direct || loc.Header.Get("Authorization") != "Bearer secret" || loc.Base.Path != "/modules/ns/net/aws/1.1.0/download" {
		t.Error(loc, err)
	}
	a.Name = "none"
	if _, err := c.ModuleVersions(ctx, a); !errors.Is(err, registry.ErrNotFound) {
		t.Error(err)
	}
	if n := strings.Count(strings.Join(s.Requests(), " "), "/.well-known/"); n != 1 {
		t.Errorf("the host was discovered %d times", n)
	}
}

func TestDiscovery(t *testing.T) {
	s := registrytest.New(t)
	var doc string
	kind := "application/json"
	s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/.well-known/") {
			return false
		}
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, doc)
		return true
	}
	ask := func() (string, error) {
		u, err := client(s).Service(context.Background(), s.Host, "modules.v1", "a module registry")
		if err != nil {
			return "", err
		}
		return strings.ReplaceAll(u.String(), s.Host, "HOST"), nil
	}
	for _, c := range []struct{ doc, want, err string }{
		{`{"modules.v1":"/m/"}`, "https://HOST/m/", ""},
		{`{"modules.v1":"m"}`, "https://HOST/.well-known/m/", ""},
		{`{"modules.v1":"https://other.example.com/x"}`, "https://other.example.com/x/", ""},
		{`{}`, "", "does not offer a module registry"},
		{`{"modules.v1":null}`, "", "does not offer a module registry"},
		{`{"modules.v1":"ftp://x/"}`, "", "not an http or https URL"},
		{`[]`, "", "not valid JSON"},
		{`{`, "", "not valid JSON"},
		{`{"x":"` + strings.Repeat("x", 1<<20) + `"}`, "", "larger than allowed"},
	} {
		doc = c.doc
		got, err := ask()
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.40s: %s %v", c.doc, got, err)
		}
	}
	doc, kind = `{}`, "text/html"
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "not of type application/json") {
		t.Error(err)
	}
	c := client(s)
	c.Config.Hosts = map[string]map[string]any{"example.com": {"modules.v1": "https://127.0.0.1:1/"}}
	if u, err := c.Service(context.Background(), "EXAMPLE.com", "modules.v1", ""); err != nil || u.String() != "https://127.0.0.1:1/" {
		t.Error(u, err)
	}
	if _, err := c.Service(context.Background(), "no host", "modules.v1", ""); err == nil {
		t.Error("a host name with a space")
	}
}

func TestStoredCredentials(t *testing.T) {
	c := &registry.Client{Config: &cliconfig.Config{Dir: filepath.Join(t.TempDir(), "conf")}}
	ctx := context.Background()
	path, helper, err := c.Where()
	if err != nil || helper {
		t.Fatal(path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"other":1,"credentials":{"a.b":{"token":"x"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Store(ctx, "Example.COM", "tok"); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if d := cmp.Diff(want, string(text)); d != "" || err != nil {
			t.Error(d, err)
		}
	}
	check("{\n  \"credentials\": {\n    \"a.b\": {\n      \"token\": \"x\"\n    },\n    \"example.com\": {\n      \"token\": \"tok\"\n    }\n  },\n  \"other\": 1\n}\n")
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
		t.Error(st.Mode())
	}
	home := filepath.Dir(filepath.Dir(path))
	if err := os.Rename(filepath.Dir(path), filepath.Join(home, ".terraform.d")); err != nil {
		t.Fatal(err)
	}
	loaded, ds := cliconfig.Load(nil, nil, home, home)
	if tok, ok := loaded.Token("example.com"); tok != "tok" || !ok || ds.HasErrors() {
		t.Error(tok, ds.Err())
	}
	if err := os.Rename(filepath.Join(home, ".terraform.d"), filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if err := c.Forget(ctx, "a.b"); err != nil {
		t.Fatal(err)
	}
	check("{\n  \"credentials\": {\n    \"example.com\": {\n      \"token\": \"tok\"\n    }\n  },\n  \"other\": 1\n}\n")
}

func TestHelper(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$1\" in\nget) [ -f " + dir + "/$2 ] && cat " + dir + "/$2 || echo '{}' ;;\nstore) cat > " + dir + "/$2 ;;\nforget) rm " + dir + "/$2 ;;\n*) echo broken >&2; exit 3 ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "terraform-credentials-t"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	make := func() *registry.Client {
		return &registry.Client{Config: &cliconfig.Config{Helper: &cliconfig.Helper{Name: "t"}}, Run: sys.Run, WorkDir: dir, Env: sys.Env{"PATH=" + os.Getenv("PATH")}, HelperDirs: []string{dir}}
	}
	ctx := context.Background()
	if tok, err := make().Token(ctx, "a.b"); tok != "" || err != nil {
		t.Error(tok, err)
	}
	if err := make().Store(ctx, "a.b", "x"); err != nil {
		t.Fatal(err)
	}
	if tok, err := make().Token(ctx, "a.b"); tok != "x" || err != nil {
		t.Error(tok, err)
	}
	if err := make().Forget(ctx, "a.b"); err != nil {
		t.Fatal(err)
	}
	if tok, err := make().Token(ctx, "a.b"); tok != "" || err != nil {
		t.Error(tok, err)
	}
	bad := make()
	bad.Config.Helper.Args = []string{"nonsense"}
	if _, err := bad.Token(ctx, "a.b"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Error(err)
	}
	bad.Config.Helper.Name = "none"
	if err := bad.Store(ctx, "a.b", "x"); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Error(err)
	}
}

func TestLogin(t *testing.T) {
	var srv *httptest.Server
	var challenge string
	srv = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/terraform.json":
			_ = json.NewEncoder(w).Encode(map[string]any{"login.v1": map[string]any{"client": "cli", "authz": "/authz", "token": "/token", "ports": []int{47000, 47100}, "scopes": []string{"a", "b"}}})
		case "/authz":
			q := r.URL.Query()
			challenge = q.Get("code_challenge")
			if q.Get("scope") != "a b" || q.Get("client_id") != "cli" || q.Get("error") != "" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			back, _ := url.Parse(q.Get("redirect_uri"))
			back.RawQuery = url.Values{"code": {"c0de"}, "state": {q.Get("state")}}.Encode()
			http.Redirect(w, r, back.String(), http.StatusFound)
		case "/token":
			if r.FormValue("code") != "c0de" || r.FormValue("code_verifier") == "" || challenge == "" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			fmt.Fprint(w, `{"access_token":"t0ken"}`)
		}
	}))
	defer srv.Close()
	c := &registry.Client{HTTP: &transfer.Client{HTTP: srv.Client(), Backoff: time.Millisecond}, Config: &cliconfig.Config{}}
	ctx := context.Background()
	host := strings.TrimPrefix(srv.URL, "https://")
	l, err := c.LoginService(ctx, host)
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.LoginWith(ctx, l, func(u string) { // as the browser does
		resp, err := srv.Client().Get(u)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Error(resp, err)
			return
		}
		resp.Body.Close()
	})
	if token != "t0ken" || err != nil {
		t.Error(token, err)
	}
	_, err = c.LoginWith(ctx, l, func(u string) { // another browser, then a refusal
		parsed, _ := url.Parse(u)
		back := parsed.Query().Get("redirect_uri")
		if resp, err := http.Get(back + "?code=x&state=guess"); err != nil || resp.StatusCode != http.StatusNotFound {
			t.Error(resp, err)
		}
		_, _ = http.Get(back + "?error=access_denied&state=" + parsed.Query().Get("state"))
	})
	if err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Error(err)
	}
	off, cancel := context.WithCancel(ctx)
	if _, err := c.LoginWith(off, l, func(string) { cancel() }); err == nil {
		t.Error("logged in though called off")
	}
	s := registrytest.New(t)
	if _, err := client(s).LoginService(ctx, s.Host); err == nil || !strings.Contains(err.Error(), "does not offer a login service") {
		t.Error(err)
	}
}

// After a failure, a host's services and a helper's token are requested again. Results are
// cached. A canceled caller does not affect the others.
func TestFailuresAreNotKept(t *testing.T) {
	s := registrytest.New(t)
	down, asked := true, 0
	s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			asked++
		}
		if down {
			http.Error(w, "down", http.StatusBadRequest)
		}
		return down
	}
	c := client(s)
	ask := func(ctx context.Context) error {
		_, err := c.Service(ctx, s.Host, "modules.v1", "a module registry")
		return err
	}
	if err := ask(t.Context()); err == nil {
		t.Error("no error")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	down = false
	if err := ask(canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	before := asked
	for range 3 {
		if err := ask(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if asked != before+1 {
		t.Errorf("asked %d times after the failure, want once", asked-before)
	}

	dir := t.TempDir()
	script := "#!/bin/sh\nmkdir " + dir + "/failed 2>/dev/null && { echo down >&2; exit 1; }\necho x >>" + dir + "/calls\necho '{\"token\":\"t\"}'\n"
	if err := os.WriteFile(filepath.Join(dir, "terraform-credentials-t"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	h := &registry.Client{Config: &cliconfig.Config{Helper: &cliconfig.Helper{Name: "t"}}, Run: sys.Run, WorkDir: dir, Env: sys.Env{"PATH=" + os.Getenv("PATH")}, HelperDirs: []string{dir}}
	if _, err := h.Token(t.Context(), "a.b"); err == nil {
		t.Error("no error")
	}
	for range 2 {
		if tok, err := h.Token(t.Context(), "a.b"); tok != "t" || err != nil {
			t.Error(tok, err)
		}
	}
	if calls, _ := os.ReadFile(filepath.Join(dir, "calls")); string(calls) != "x\n" {
		t.Errorf("the helper was called %q times after the failure", calls)
	}
}
