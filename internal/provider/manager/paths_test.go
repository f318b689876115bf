package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/provider/fake"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// A located provider puts its working directory into the private data of what it reads.
type located struct {
	*fake.Provider
	dir string
}

func (l *located) Read(_ context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	return provider.ReadResponse{State: req.Prior, Private: []byte(l.dir)}, nil
}

// A locatedSource is the view of a unit in the directory dir.
type locatedSource struct {
	script *fake.Script
	dir    string
	env    []string
}

func (s locatedSource) Factory(addr.Provider) (provider.Factory, diag.List) { return nil, nil }

func (s locatedSource) Program(context.Context, addr.Provider) (Program, diag.List) {
	return Program{Path: "/bin/thing", Env: s.env, Dir: s.dir, Start: func(_ context.Context, dir string) (provider.Provider, diag.List) {
		return &located{s.script.New(), dir}, nil
	}}, nil
}

// paths that name something in the directory of each unit or of the host, or a new file in an
// existing directory of the unit.
var relative = []string{"main.tf", "files/a.json", "./new.txt", "../common", "files", "files/new.zip", "*.tf", "host.txt", "@main.tf", "file://files/a.json", "/etc/x:files"}

// plain strings name nothing.
var plain = []string{"", "10.0.0.0/16", "arn:aws:iam::123456789012:role/x", "https://example.com/files/a.json", "/etc/passwd", "~/.aws/credentials", "web", "a\nb", "us-east-1", "{\"Version\": \"2012-10-17\"}", "*", "[broken"}

// directories creates the directory of a host with two units.
func directories(t *testing.T) (root string, units []string) {
	root = t.TempDir()
	for _, u := range []string{"a", "b"} {
		dir := filepath.Join(root, "units", u)
		units = append(units, dir)
		if err := os.MkdirAll(filepath.Join(dir, "files"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"main.tf", "files/a.json"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"host.txt", "units/common"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, units
}

// wrap returns a value that contains a string somewhere.
func wrap(r *rand.Rand, s string, depth int) cty.Value {
	if depth == 0 {
		return cty.StringVal(s)
	}
	other := cty.StringVal("web")
	switch v := wrap(r, s, depth-1); r.IntN(6) {
	case 0:
		return cty.ObjectVal(map[string]cty.Value{"name": other, "content": v})
	case 1:
		return cty.TupleVal([]cty.Value{other, v, cty.NullVal(cty.String)})
	case 2:
		return cty.MapVal(map[string]cty.Value{s: other, "x": other})
	case 3:
		text, _ := json.Marshal(map[string]any{"deep": []any{s, 1, nil}})
		return cty.StringVal(string(text))
	case 4:
		return cty.SetVal([]cty.Value{cty.StringVal(s), other, cty.UnknownVal(cty.String)})
	default:
		return v
	}
}

// No path reaches a process in another directory than that of its unit, and no unit gets a
// process of its own without a path.
func TestPathsReachTheirDirectory(t *testing.T) {
	root, units := directories(t)
	script := newWorld().script
	h := NewHost(Options{Dir: root, Empty: root, Sharing: sharing{use: UsesNamedPaths}})
	defer h.Close()
	h.Expect(1)
	own := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := units[r.IntN(len(units))]
		p := h.New(locatedSource{script: script, dir: dir}, "")
		prov := configured(t, p, "web")
		for range 3 {
			s, want := plain[r.IntN(len(plain))], root
			if path := r.IntN(4) == 0; path {
				s, want = relative[r.IntN(len(relative))], dir
				own++
			}
			v := cty.ObjectVal(map[string]cty.Value{"value": wrap(r, s, r.IntN(4))})
			got, ds := prov.Read(t.Context(), provider.ReadRequest{Type: "thing", Prior: v})
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			if string(got.Private) != want {
				t.Fatalf("seed %d: %#v was read in %s, want %s", seed, v, got.Private, want)
			}
			if want == dir {
				break // from here on the unit has its own process
			}
		}
		p.Close()
	}
	if own < 500 {
		t.Errorf("only %d cases have a path", own)
	}
}

// An argument for paths gives the unit a process of its own, also if the file does not exist yet.
func TestPathArguments(t *testing.T) {
	root, units := directories(t)
	f := pathFinder{own: units[0], shared: root}
	for _, tt := range []struct {
		argument, value string
		want            bool
	}{
		{"config_path", "kube.conf", true},
		{"config_paths", "kube.conf", true},
		{"shared_config_files", "aws.conf", true},
		{"shared_credentials_files", "aws.creds", true},
		{"web_identity_token_file", "token", true},
		{"custom_ca_bundle", "ca.pem", true},
		{"credentials", "account.json", true},
		{"credentials", `{"type": "service_account"}`, false},
		{"client_certificate_path", "client.pfx", true},
		{"oidc_token_file_path", "token", true},
		{"registry_config_path", "helm.json", true},
		{"repository_cache", "cache", true},
		{"output_path", "out.zip", true},
		{"path", "/service/", false},
		{"filename", "/tmp/x", false},
		{"config_path", "~/.kube/config", false},
		{"name", "kube.conf", false},
	} {
		v := cty.ObjectVal(map[string]cty.Value{tt.argument: cty.StringVal(tt.value)})
		if tt.argument[len(tt.argument)-1] == 's' && tt.argument != "credentials" {
			v = cty.ObjectVal(map[string]cty.Value{tt.argument: cty.ListVal([]cty.Value{cty.StringVal(tt.value)})})
		}
		if got := f.inValues(v); (got == tt.argument) != tt.want {
			t.Errorf("%s = %q: found %q", tt.argument, tt.value, got)
		}
	}
}

// A path in the configuration or in the environment gives the unit a process of its own from the
// start. Variables that providers do not read make no difference.
func TestPathsBeforeTheFirstCall(t *testing.T) {
	root, units := directories(t)
	script := newWorld().script
	for _, tt := range []struct {
		name, config string
		env          []string
		own          bool
	}{
		{"nothing", "web", nil, false},
		{"configuration", "main.tf", nil, true},
		{"environment", "web", []string{"KUBECONFIG=kube.conf"}, true},
		{"other variables", "web", []string{"TF_VAR_file=main.tf", "TG_WORKING_DIR=files", "TF_DATA_DIR=files"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var separated []string
			h := NewHost(Options{Dir: root, Empty: root, Sharing: sharing{use: UsesNamedPaths, separated: func(unit, argument string) {
				separated = append(separated, unit+" "+argument)
			}}})
			defer h.Close()
			var dirs []string
			for i, dir := range units {
				p := h.New(locatedSource{script: script, dir: dir, env: append([]string{"HOME=/h"}, tt.env...)}, fmt.Sprint(i))
				defer p.Close()
				got, _ := configured(t, p, tt.config).Read(t.Context(), provider.ReadRequest{Type: "thing", Prior: configOf("x")})
				dirs = append(dirs, string(got.Private))
			}
			want := []string{root, root}
			if tt.own {
				want = units
			}
			if !slices.Equal(dirs, want) || (len(separated) == 2) != tt.own {
				t.Errorf("the processes run in %v, %q were reported", dirs, separated)
			}
		})
	}
}

// Calls with and without paths may be made at the same time.
func TestSeparatedDuringCalls(t *testing.T) {
	root, units := directories(t)
	h := NewHost(Options{Dir: root, Empty: root, Sharing: sharing{use: UsesNamedPaths}})
	defer h.Close()
	p := h.New(locatedSource{script: newWorld().script, dir: units[0]}, "")
	defer p.Close()
	prov := configured(t, p, "web")
	parallel.Each(64, 8, func(i int) {
		name := "web"
		if i%5 == 4 {
			name = "main.tf"
		}
		got, ds := prov.Read(t.Context(), provider.ReadRequest{Type: "thing", Prior: configOf(name)})
		if ds.HasErrors() || name == "main.tf" && string(got.Private) != units[0] {
			t.Errorf("%s was read in %s: %v", name, got.Private, ds)
		}
	})
}
