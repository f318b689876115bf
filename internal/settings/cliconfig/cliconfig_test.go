package cliconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

func load(t *testing.T, text string, env ...string) (*Config, diag.List) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rc"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(nil, append(sys.Env{"TF_CLI_CONFIG_FILE=rc"}, env...), dir, dir)
}

const everything = `
# the user's settings
plugin_cache_dir = "$HERE/cache" // and more
plugin_cache_may_break_dependency_lock_file = true
/* no
   more */
credentials "example.com" {
  token = "to\"ken"
}
host "Example.org" { services = { "modules.v1" = "https://x/", "login.v1" = { client = "c", ports = [1, 2] } } }
credentials_helper "vault" {
  args = ["-x", "y",]
}
registry_protocols {
  retry_count = 3
  request_timeout_seconds = "20"
}
oci_credentials "ghcr.io/a" { username = "u" password = "p" }
oci_default_credentials { discover_ambient_credentials = false }
provider_installation {
  dev_overrides {
    "hashicorp/null" = "/dev/null-provider"
    "example.com/a/b" = <<-EOT
      /b
    EOT
  }
  filesystem_mirror { path = "/m" include = ["example.com/*/*"] }
  network_mirror {
    url = "https://example.net/providers"
    download_retry_count = 7
    trust_all_hashes = true
  }
  oci_mirror {
    repository_template = "example.com/${namespace}-${type}"
    include = ["registry.opentofu.org/*/*"]
  }
  direct { exclude = ["example.com/*/*", "a/b"] }
}
`

func TestEverything(t *testing.T) {
	here := t.TempDir()
	if err := os.Mkdir(filepath.Join(here, "cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, ds := load(t, everything, "HERE="+here, "TF_TOKEN_app_example__x_io=secret")
	if len(ds) > 0 {
		t.Fatal(ds.Err(), ds[0].Detail)
	}
	if c.PluginCacheDir != filepath.Join(here, "cache") || !c.PluginCacheMayBreakLock {
		t.Error(c.PluginCacheDir, c.PluginCacheMayBreakLock)
	}
	for host, want := range map[string]string{"example.com": `to"ken`, "app.example-x.io": "secret"} {
		if got, ok := c.Token(host); !ok || got != want {
			t.Errorf("token of %s: %q", host, got)
		}
	}
	want := map[string]map[string]any{"example.org": {"modules.v1": "https://x/", "login.v1": map[string]any{"client": "c", "ports": []any{1.0, 2.0}}}}
	if d := cmp.Diff(want, c.Hosts); d != "" {
		t.Error(d)
	}
	if c.Helper == nil || c.Helper.Name != "vault" || len(c.Helper.Args) != 2 {
		t.Error(c.Helper)
	}
	if c.Registry != (Registry{3, 20 * time.Second, 2}) {
		t.Error(c.Registry)
	}
	if len(c.OCI) != 1 || c.OCI[0].Host != "ghcr.io" || c.OCI[0].Path != "a" || c.OCIPlain == nil || c.OCIPlain.Ambient {
		t.Error(c.OCI, c.OCIPlain)
	}
	in := c.Installation
	if in.DevOverrides[addr.DefaultProvider("null")] != "/dev/null-provider" || strings.TrimSpace(in.DevOverrides[addr.Provider{Host: "example.com", Namespace: "a", Type: "b"}]) != "/b" {
		t.Error(in.DevOverrides)
	}
	if len(in.Methods) != 4 || in.Methods[0].Location != "/m" || in.Methods[1].Location != "https://example.net/providers/" || in.Methods[1].Retries != 7 || !in.Methods[1].TrustAllHashes {
		t.Fatal(in.Methods)
	}
	host, path, err := in.Methods[2].Template.Repository(addr.DefaultProvider("null"))
	if err != nil || host+" "+path != "example.com hashicorp-null" {
		t.Error(host, path, err)
	}
	direct := in.Methods[3]
	if direct.Allows(addr.Provider{Host: "example.com", Namespace: "x", Type: "y"}) || direct.Allows(addr.Provider{Host: addr.DefaultHost, Namespace: "a", Type: "b"}) || !direct.Allows(addr.DefaultProvider("x")) {
		t.Error("direct allows the wrong providers")
	}
}

// Files that OpenTofu 1.12.6 rejects.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"provider_installation {}\nprovider_installation {}", "No more than one provider_installation block"},
		{"plugin_cache_dir = \"/dev/null\"", "cannot be opened"},
		{"provider_installation {\n direct {}\n dev_overrides {\n}\n}", "must appear before all other"},
		{"provider_installation {\n foo {}\n}", "Unknown provider installation method \"foo\""},
		{"provider_installation {\n filesystem_mirror {}\n}", "\"path\" argument is required"},
		{"provider_installation {\n network_mirror { url = \"http://a\" }\n}", "must be at an https: URL"},
		{"provider_installation {\n direct { include = [\"x/y/z/a\"] }\n}", "two or three slash-separated segments"},
		{"provider_installation {\n direct { include = [\"a.b/*/b\"] }\n}", "all that follow must be too"},
		{"provider_installation \"x\" {\n}", "must not have any labels"},
		{"provider_installation {\n direct \"z\" {}\n}", "may not have any labels"},
		{"provider_installation = 1", "must not be introduced with an equals sign"},
		{"provider_installation { direct = 1 }", "must all be blocks"},
		{"provider_installation { dev_overrides { hashicorp/x = \"z\" } }", "Expected"},
		{"provider_installation { dev_overrides { \"a/b/c/d\" = \"z\" } }", "not a valid provider source"},
		{"credentials_helper \"a\" {}\ncredentials_helper \"b\" {}", "No more than one credentials_helper"},
		{"host \"x!\" {}", "invalid hostname"},
		{"credentials \"x_y\" {}", "invalid hostname"},
		{"provider_installation { \n filesystem_mirror { path = ", "Expected a value"},
		{"provider_installation { \n filesystem_mirror { ", "closing brace is missing"},
		{"registry_protocols { request_timeout_seconds = \"x\" }", "whole number"},
		{"oci_credentials \"a.b/c\" { username = \"x\" }", "both username and password"},
		{"oci_credentials \"a.b\" { username = \"x\"\n password=\"y\"\naccess_token=\"x\" }", "exactly one group"},
		{"oci_default_credentials { }\noci_default_credentials {}", "No more than one oci_default_credentials"},
		{"provider_installation { oci_mirror { repository_template = \"example.com/${namespace}/${type}\" } }", "\"hostname\""},
		{"provider_installation { oci_mirror { repository_template = \"example.com/$${namespace}/${foo}\"\n include=[\"registry.opentofu.org/*/*\"] } }", "\"foo\""},
		{"{\"plugin_cache_dir\": }", "not valid JSON"},
		{"{\"provider_installation\": 3}", "must be a block"},
		{"a = \"x", "not closed"},
		{"a = [1 2]", "comma"},
		{"a = x", "not a value"},
	} {
		_, ds := load(t, c.text)
		if !ds.HasErrors() || !strings.Contains(ds[0].Detail, c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.text, ds.Err(), c.want)
		}
	}
}

func TestJSONForm(t *testing.T) {
	c, ds := load(t, `{"provider_installation": [{"direct": {}, "filesystem_mirror": [{"path":"/x"},{"path":"/y"}]}], "credentials": {"a.b": {"token": "t"}}}`)
	if len(ds) > 0 {
		t.Fatal(ds.Err())
	}
	var kinds []string
	for _, m := range c.Installation.Methods {
		kinds = append(kinds, string(m.Kind)+m.Location)
	}
	if d := cmp.Diff([]string{"direct", "filesystem_mirror/x", "filesystem_mirror/y"}, kinds); d != "" {
		t.Error(d)
	}
	if tok, _ := c.Token("a.b"); tok != "t" {
		t.Error(c.Credentials)
	}
}

func TestWhichFile(t *testing.T) {
	home, xdg := t.TempDir(), t.TempDir()
	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("credentials \"f.x\" { token = \""+filepath.Base(path)+"\" }"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string, env ...string) {
		t.Helper()
		c, ds := Load(nil, env, home, home)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		if got, _ := c.Token("f.x"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check("")
	write(filepath.Join(xdg, "opentofu", "tofurc"))
	check("")
	check("tofurc", "XDG_CONFIG_HOME="+xdg)
	write(filepath.Join(home, ".terraformrc"))
	check(".terraformrc", "XDG_CONFIG_HOME="+xdg)
	write(filepath.Join(home, ".tofurc"))
	check(".tofurc")
	write(filepath.Join(home, ".terraform.d", "credentials.tfrc.json"))
	if err := os.WriteFile(filepath.Join(home, ".terraform.d", "credentials.tfrc.json"), []byte(`{"credentials":{"f.x":{"token":"logged in"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	check("logged in")
	write(filepath.Join(home, "own"))
	check("own", "TF_CLI_CONFIG_FILE="+filepath.Join(home, "own"))
	check("", "TF_CLI_CONFIG_FILE=nowhere")
	check("env", "TF_CLI_CONFIG_FILE=nowhere", "TF_TOKEN_f_x=env")
}

func FuzzParse(f *testing.F) {
	f.Add(everything)
	f.Add(`{"a": {"b": [1, true, null, "x"]}}`)
	f.Add("a = <<-X\n  y\n X\nb \"c\" { d = \"${e}\\u00e9\" }")
	f.Fuzz(func(t *testing.T, src string) {
		l := &loader{c: &Config{}}
		ds := l.parse([]byte(src), "rc")
		ds = append(ds, l.once()...)
		for _, m := range ds {
			if m.At == nil {
				t.Errorf("no place: %s: %s", m.Summary, m.Detail)
			}
		}
	})
}
