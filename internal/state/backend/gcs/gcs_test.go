package gcs

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

var ctx = context.Background()

func place(t *testing.T, s *servers.GCSServer) backendtest.Place {
	p := backendtest.Place{
		Config:   map[string]cty.Value{"bucket": cty.StringVal(s.Bucket), "prefix": cty.StringVal("/team/a b"), "access_token": cty.StringVal(s.Token)},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true,
		Steal:   func(*testing.T) { s.Put("team/a b/default.tflock", []byte(`{"ID":"other"}`)) },
		Secrets: []string{s.Token},
	}
	p.Services.Transport = s.Transport(t)
	return p
}

func TestSuite(t *testing.T) {
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place { return place(t, servers.GCS(t)) })
}

func TestSuiteWithCustomerKey(t *testing.T) {
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
		p := place(t, servers.GCS(t))
		key := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
		p.Config["encryption_key"] = cty.StringVal(key)
		p.Secrets = append(p.Secrets, key)
		return p
	})
}

func open0(t *testing.T, p backendtest.Place, workspace string) *object {
	t.Helper()
	st, err := backendtest.Open(t, Kind(), p).Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st.(*backend.Store).Object().(*object)
}

// Names, lock and preconditions are those of OpenTofu and Terraform.
func TestLayout(t *testing.T) {
	for _, c := range []struct{ prefix, workspace, want string }{
		{"", "", "default"}, {"", "dev", "dev"}, {"p/q", "", "p/q/default"}, {"/p/q/", "dev", "p/q/dev"},
	} {
		s := servers.GCS(t)
		p := place(t, s)
		p.Config["prefix"], p.Config["kms_encryption_key"] = cty.StringVal(c.prefix), cty.StringVal("projects/p/k")
		o := open0(t, p, c.workspace)
		id, err := o.Lock(ctx, store.LockInfo{ID: "x", Operation: "op", Created: time.Unix(0, 1).UTC()})
		if err != nil {
			t.Fatal(err)
		}
		version, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Objects(), " "); got != c.want+".tflock "+c.want+".tfstate" {
			t.Error(got)
		}
		text, generation, _, _ := s.Object(c.want + ".tflock")
		if text != `{"ID":"x","Operation":"op","Info":"","Who":"","Version":"","Created":"1970-01-01T00:00:00.000000001Z","Path":"gs://states/`+c.want+`.tflock"}` || id != fmt.Sprint(generation) {
			t.Errorf("%s %s", id, text)
		}
		if _, generation, _, kms := s.Object(c.want + ".tfstate"); fmt.Sprint(generation) != version || kms != "projects/p/k" {
			t.Errorf("%s %d %s", version, generation, kms)
		}
		if err := o.Unlock(ctx, "not a number"); err == nil || !strings.Contains(err.Error(), "is a number") {
			t.Error(err)
		}
		if err := o.Unlock(ctx, id); err != nil {
			t.Error(err)
		}
	}
}

// The customer's key is used for the state, but not for the lock.
func TestCustomerKey(t *testing.T) {
	s := servers.GCS(t)
	p := place(t, s)
	write(t, filepath.Join(p.Services.Dir, "key"), base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n")
	p.Config["encryption_key"] = cty.StringVal("key")
	o := open0(t, p, "")
	id, err := o.Lock(ctx, store.LockInfo{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id); err != nil {
		t.Fatal(err)
	}
	if _, _, key, _ := s.Object("team/a b/default.tflock"); key != "" {
		t.Error("the lock is encrypted")
	}
	if _, _, key, _ := s.Object("team/a b/default.tfstate"); key == "" {
		t.Error("the state is not encrypted")
	}
	delete(p.Config, "encryption_key")
	var e *backend.Error
	if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "encryption_key" {
		t.Errorf("%v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCredentials(t *testing.T) {
	s := servers.GCS(t)
	read := func(change func(p *backendtest.Place)) error {
		p := place(t, s)
		change(&p)
		_, err := open0(t, p, "").Read(ctx)
		return err
	}
	if err := read(func(p *backendtest.Place) {
		p.Config["impersonate_service_account"] = cty.StringVal(s.Account)
	}); err != nil {
		t.Error(err)
	}
	account, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(account)
	if err != nil {
		t.Fatal(err)
	}
	key, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@b", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": "https://oauth2.googleapis.com/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	user := `{"type":"authorized_user","client_id":"c","client_secret":"d","refresh_token":"refresh-` + s.Token + `"}`
	for name, change := range map[string]func(p *backendtest.Place){
		"a service account's key": func(p *backendtest.Place) { p.Config["credentials"] = cty.StringVal(string(key)) },
		"a variable with a file": func(p *backendtest.Place) {
			write(t, filepath.Join(p.Services.Home, "user.json"), user)
			p.Services.Env = sys.Env{"GOOGLE_BACKEND_CREDENTIALS=~/user.json"}
		},
		"the application default": func(p *backendtest.Place) {
			write(t, filepath.Join(p.Services.Dir, "user.json"), user)
			p.Services.Env = sys.Env{"GOOGLE_APPLICATION_CREDENTIALS=user.json"}
		},
		"the login of gcloud": func(p *backendtest.Place) {
			write(t, filepath.Join(p.Services.Home, ".config", "gcloud", "application_default_credentials.json"), user)
		},
	} {
		if err := read(func(p *backendtest.Place) { delete(p.Config, "access_token"); change(p) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, change := range map[string]func(p *backendtest.Place){
		"cannot be impersonated":       func(p *backendtest.Place) { p.Config["impersonate_service_account"] = cty.StringVal("x@y") },
		"credentials are not accepted": func(p *backendtest.Place) { p.Config["access_token"] = cty.StringVal("another") },
		"There is no bucket \"none\"":  func(p *backendtest.Place) { p.Config["bucket"] = cty.StringVal("none") },
		"there are no credentials": func(p *backendtest.Place) {
			delete(p.Config, "access_token")
			p.Services.Env = sys.Env{"GCE_METADATA_HOST=127.0.0.1:1"}
		},
		"neither JSON nor the path": func(p *backendtest.Place) {
			delete(p.Config, "access_token")
			p.Config["credentials"] = cty.StringVal("none.json")
		},
		"unknown type": func(p *backendtest.Place) {
			delete(p.Config, "access_token")
			p.Services.Env = sys.Env{`GOOGLE_CREDENTIALS={"type":"x","private_key":"planted-token"}`}
		},
	} {
		if err := read(change); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), s.Token) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s.Deny()
	if err := read(func(*backendtest.Place) {}); err == nil || !strings.Contains(err.Error(), "permission storage.objects.get") {
		t.Errorf("%v", err)
	}
}

// Tokens that expire during a run are renewed, whatever their source.
func TestRenewal(t *testing.T) {
	for name, configure := range map[string]func(t *testing.T, s *servers.GCSServer, p *backendtest.Place){
		"login of a user": func(t *testing.T, s *servers.GCSServer, p *backendtest.Place) {
			p.Config["credentials"] = cty.StringVal(`{"type":"authorized_user","client_id":"c","client_secret":"d","refresh_token":"refresh-planted-token"}`)
		},
		"metadata of a machine": func(t *testing.T, s *servers.GCSServer, p *backendtest.Place) {
			m := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, `{"access_token":%q,"expires_in":5}`, s.Token)
			}))
			t.Cleanup(m.Close)
			p.Services.Env = sys.Env{"GCE_METADATA_HOST=" + strings.TrimPrefix(m.URL, "http://")}
		},
		"impersonation": func(t *testing.T, s *servers.GCSServer, p *backendtest.Place) {
			p.Config["credentials"] = cty.StringVal(`{"type":"authorized_user","client_id":"c","client_secret":"d","refresh_token":"refresh-planted-token"}`)
			p.Config["impersonate_service_account"] = cty.StringVal(s.Account)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servers.GCS(t)
			s.Lifetime = 5 * time.Second
			p := place(t, s)
			delete(p.Config, "access_token")
			configure(t, s, &p)
			o := open0(t, p, "")
			id, err := o.Lock(ctx, store.LockInfo{Who: "me"})
			if err != nil {
				t.Fatal(err)
			}
			prior := backend.Prior{Absent: true}
			for i := range 3 {
				s.Rotate()
				version, err := o.Write(ctx, fmt.Appendf(nil, "{\"n\":%d}\n", i), prior, id)
				if err != nil {
					t.Fatal(err)
				}
				prior = backend.Prior{Version: version}
			}
			s.Rotate()
			if err := o.Unlock(ctx, id); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBeside(t *testing.T) {
	s := servers.GCS(t)
	backendtest.Beside(t, Kind(), place(t, s), fmt.Sprintf(`
    bucket = %q
    prefix = "team/a b"
    storage_custom_endpoint = "https://storage.googleapis.com/storage/v1/"`, s.Bucket),
		"GOOGLE_OAUTH_ACCESS_TOKEN="+s.Token, "HTTPS_PROXY="+s.Proxy, "SSL_CERT_FILE="+s.CAFile)
}
