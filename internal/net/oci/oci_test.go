package oci

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
)

func TestParams(t *testing.T) {
	want := map[string]string{"realm": "https://a/token?x=1", "service": "s", "scope": "repository:a/b:pull,push", "error": "e"}
	if d := cmp.Diff(want, params(`realm="https://a/token?x=1",service=s, scope="repository:a/b:pull,push" ,error="e"`)); d != "" {
		t.Error(d)
	}
}

func FuzzParams(f *testing.F) {
	f.Add(`realm="a",b=c`)
	f.Add(`=,="`)
	f.Fuzz(func(t *testing.T, s string) { params(s) })
}

func TestAnswers(t *testing.T) {
	pages := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2/r/tags/list":
			pages++
			switch r.URL.Query().Get("last") {
			case "":
				w.Header().Set("Link", `</v2/r/tags/list?last=a>; rel="next"`)
				fmt.Fprint(w, `{"tags":["a"]}`)
			case "a":
				fmt.Fprint(w, `{"tags":["b"]}`)
			}
		case "/v2/away/tags/list":
			w.Header().Set("Link", `<http://example.invalid/x>; rel="next"`)
			fmt.Fprint(w, `{"tags":["a"]}`)
		case "/v2/r/manifests/bad":
			fmt.Fprint(w, `{`)
		case "/v2/r/manifests/one":
			fmt.Fprint(w, `{"schemaVersion":1}`)
		case "/v2/r/manifests/huge":
			_, _ = w.Write(make([]byte, MaxManifest+1))
		case "/v2/basic/manifests/x":
			if u, p, _ := r.BasicAuth(); u+p != "up" {
				w.Header().Set("WWW-Authenticate", "Basic realm=x")
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"schemaVersion":2}`)
		case "/v2/realm/manifests/x":
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://example.invalid/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fmt.Fprint(w, `{"schemaVersion":2}`)
		}
	}))
	defer srv.Close()
	client := func(repo string) *Client {
		return &Client{Host: strings.TrimPrefix(srv.URL, "http://"), Repository: repo, HTTP: &transfer.Client{Backoff: time.Millisecond}}
	}
	ctx := context.Background()
	tags, err := client("r").Tags(ctx)
	if d := cmp.Diff([]string{"a", "b"}, tags); d != "" || err != nil {
		t.Error(d, err)
	}
	if _, err := client("away").Tags(ctx); err == nil || !strings.Contains(err.Error(), "another host") {
		t.Error(err)
	}
	for ref, want := range map[string]string{"bad": "not valid JSON", "one": "schema version 2", "huge": "larger than allowed", "sha256:" + strings.Repeat("0", 64): "does not have the digest", "md5:00": "not a digest"} {
		if _, err := client("r").Manifest(ctx, ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	c := client("basic")
	if _, err := c.Manifest(ctx, "x"); err == nil || !strings.Contains(err.Error(), "wants a user name") {
		t.Error(err)
	}
	c = client("basic")
	c.Credentials = func(context.Context, string, string) (Credentials, error) {
		return Credentials{Username: "u", Password: "p"}, nil
	}
	if _, err := c.Manifest(ctx, "x"); err != nil {
		t.Error(err)
	}
	srvTLS := client("realm")
	if _, err := srvTLS.Manifest(ctx, "x"); err == nil {
		t.Error("the token was asked for at a strange place over plain HTTP")
	}
}

func TestStore(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(".docker/config.json", `{"auths":{"a.example":{"auth":"dTpw"},"b.example/team":{"identitytoken":"it"},"https://index.example/v1/":{"username":"x","password":"y"}},"credHelpers":{"h.example":"t"},"credsStore":"t"}`)
	write("bin/docker-credential-t", "#!/bin/sh\nread h\ncase \"$h\" in\nh.example) echo '{\"Username\":\"<token>\",\"Secret\":\"s\"}' ;;\ns.example) echo '{\"Username\":\"su\",\"Secret\":\"sp\"}' ;;\nbroken.example) echo oops >&2; exit 1 ;;\n*) echo 'credentials not found in native keychain'; exit 1 ;;\nesac\n")
	conf := &cliconfig.Config{OCI: []cliconfig.OCICredentials{{Host: "c.example", Username: "all", Password: "p"}, {Host: "c.example", Path: "team", AccessToken: "at", RefreshToken: "rt"}, {Host: "d.example", DockerHelper: "t"}}}
	s := &Store{Config: conf, Home: home, WorkDir: home, Run: sys.Run, Env: sys.Env{"PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH")}}
	for where, want := range map[string]Credentials{
		"a.example/x":          {Username: "u", Password: "p"},
		"b.example/team/x":     {RefreshToken: "it"},
		"b.example/other":      {},
		"index.example/x":      {Username: "x", Password: "y"},
		"h.example/x":          {RefreshToken: "s"},
		"s.example/x":          {Username: "su", Password: "sp"},
		"none.example/x":       {},
		"c.example/x":          {Username: "all", Password: "p"},
		"c.example/team/x":     {AccessToken: "at", RefreshToken: "rt"},
		"c.example/teammate/x": {Username: "all", Password: "p"},
		"d.example/x":          {},
	} {
		host, repo, _ := strings.Cut(where, "/")
		got, err := s.Find(context.Background(), host, repo)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %s %v", where, d, err)
		}
	}
	if _, err := s.Find(context.Background(), "broken.example", "x"); err == nil || !strings.Contains(err.Error(), "oops") {
		t.Error(err)
	}
	conf.OCIPlain = &cliconfig.OCIDefaults{Ambient: false}
	if got, err := s.Find(context.Background(), "a.example", "x"); got != (Credentials{}) || err != nil {
		t.Error(got, err)
	}
	conf.OCIPlain.Files = []string{filepath.Join(home, ".docker/config.json")}
	if got, err := s.Find(context.Background(), "a.example", "x"); got.Username != "u" || err != nil {
		t.Error(got, err)
	}
}

// Each repository has its own token: a registry that issues tokens for one repository accepts
// reads from several.
func TestTokensOfRepositories(t *testing.T) {
	var asked []string
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			scope := r.URL.Query().Get("scope")
			asked = append(asked, scope)
			fmt.Fprintf(w, `{"token":%q}`, "for "+scope)
			return
		}
		repo, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/tags/")
		scope := "repository:" + repo + ":pull"
		if r.Header.Get("Authorization") != "Bearer for "+scope {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,scope=%q", srv.URL+"/token", scope))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"tags":["1.0.0"]}`)
	}))
	defer srv.Close()
	clients := map[string]*Client{}
	for _, repo := range []string{"acme/a", "acme/b", "acme/a", "acme/b"} {
		c := clients[repo]
		if c == nil {
			c = &Client{Host: strings.TrimPrefix(srv.URL, "http://"), Repository: repo, HTTP: &transfer.Client{Backoff: time.Millisecond}}
			clients[repo] = c
		}
		if tags, err := c.Tags(context.Background()); err != nil || len(tags) != 1 {
			t.Errorf("%s: %v %v", repo, tags, err)
		}
	}
	if d := cmp.Diff([]string{"repository:acme/a:pull", "repository:acme/b:pull"}, asked); d != "" {
		t.Error(d)
	}
}
