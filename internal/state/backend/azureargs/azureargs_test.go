package azureargs_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/azureargs"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/zclconf/go-cty/cty"
)

func args(env sys.Env, set map[string]cty.Value) *backend.Args {
	return backend.NewArgs(cty.ObjectVal(set), env)
}

func text(s string) cty.Value { return cty.StringVal(s) }

func argument(err error) string {
	var e *backend.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Argument
}

// The addresses of Azure's own clouds are known. Those of a private cloud are requested
// from it.
func TestReadCloud(t *testing.T) {
	answer := `{"authentication":{"loginEndpoint":"https://login.example.com/"},"resourceManager":"https://manage.example.com/","suffixes":{"storage":"store.example.com"}}`
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metadata/endpoints" {
			_, _ = io.WriteString(w, answer)
		}
	}))
	defer server.Close()
	client := &rest.Client{HTTP: server.Client(), Now: time.Now, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	host := strings.TrimPrefix(server.URL, "https://")
	for _, tt := range []struct {
		env     sys.Env
		set     map[string]cty.Value
		storage string
		wrong   string
	}{
		{nil, nil, "core.windows.net", ""},
		{sys.Env{"ARM_ENVIRONMENT=usgovernment"}, nil, "core.usgovcloudapi.net", ""},
		{sys.Env{"ARM_ENVIRONMENT=usgovernment"}, map[string]cty.Value{"environment": text("China")}, "core.chinacloudapi.cn", ""},
		{nil, map[string]cty.Value{"environment": text("mars")}, "", "environment"},
		{nil, map[string]cty.Value{"metadata_host": text(host)}, "store.example.com", ""},
		{nil, map[string]cty.Value{"metadata_host": text(host), "environment": text("public")}, "store.example.com", "metadata_host"},
	} {
		a := args(tt.env, tt.set)
		cloud := azureargs.ReadCloud(t.Context(), a, client)
		if cloud.Storage != tt.storage || argument(a.Err()) != tt.wrong {
			t.Errorf("%v %v: %+v, %v", tt.env, tt.set, cloud, a.Err())
		}
		if tt.storage == "store.example.com" && (cloud.Login != "https://login.example.com" || cloud.Manager != "https://manage.example.com") {
			t.Errorf("%+v", cloud)
		}
	}
	answer = "{}"
	a := args(nil, map[string]cty.Value{"metadata_host": text(host)})
	if azureargs.ReadCloud(t.Context(), a, client); argument(a.Err()) != "metadata_host" {
		t.Errorf("an answer without services: %v", a.Err())
	}
}

// A secret may be in a file, but must not differ from the argument.
func TestLogin(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("planted\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cloud := azureargs.Cloud{Login: "login.example.com", Audience: "api://x"}
	for _, tt := range []struct {
		env    sys.Env
		set    map[string]cty.Value
		secret string
		wrong  string
	}{
		{nil, map[string]cty.Value{"client_secret": text("x")}, "x", ""},
		{nil, map[string]cty.Value{"client_secret_file_path": text("secret")}, "planted", ""},
		{sys.Env{"ARM_CLIENT_SECRET_FILE_PATH=secret"}, map[string]cty.Value{"client_secret": text("planted")}, "planted", ""},
		{nil, map[string]cty.Value{"client_secret_file_path": text("secret"), "client_secret": text("x")}, "planted", "client_secret_file_path"},
		{nil, map[string]cty.Value{"client_secret_file_path": text("none")}, "", "client_secret_file_path"},
	} {
		a := args(tt.env, tt.set)
		o := azureargs.Login(a, cloud, dir)
		if o.Secret != tt.secret || argument(a.Err()) != tt.wrong || o.Login != cloud.Login || o.Audience != cloud.Audience {
			t.Errorf("%v %v: %+v, %v", tt.env, tt.set, o, a.Err())
		}
		if a.Err() != nil && strings.Contains(a.Err().Error(), "planted") {
			t.Errorf("the text of the file is shown: %v", a.Err())
		}
	}
	// az is used unless it is disabled; the argument has precedence over the variable.
	for want, set := range map[bool]map[string]cty.Value{true: nil, false: {"use_cli": cty.False}} {
		if o := azureargs.Login(args(sys.Env{"ARM_USE_CLI=true"}, set), cloud, dir); o.Tool != want {
			t.Errorf("%v: az is used: %v", set, o.Tool)
		}
	}
}
