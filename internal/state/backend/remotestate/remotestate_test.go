package remotestate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/internal/state/backend/remotestate"
	"github.com/zclconf/go-cty/cty"
)

func reader(t *testing.T) remotestate.Reader {
	s := backendtest.Services(t)
	return remotestate.Reader{Backends: backend.NewSet(kinds.All(), kinds.Unknown, s), Dir: s.Dir}
}

func config(path string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"path": cty.StringVal(path)})
}

// A state is read from the directory of the reader. Reading leaves no file behind, and does
// not create a missing state.
func TestRead(t *testing.T) {
	r := reader(t)
	if err := os.WriteFile(filepath.Join(r.Dir, "x.tfstate"), []byte(`{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l","outputs":{},"resources":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"local", "_local"} {
		if s, ds := r.Read(t.Context(), kind, config("x.tfstate").Mark("secret"), "", false); ds.HasErrors() || s == nil || s.Serial != 7 {
			t.Errorf("%s: %v, %v", kind, s, ds)
		}
	}
	if s, ds := r.Read(t.Context(), "local", config("y.tfstate"), "", false); ds.HasErrors() || s != nil {
		t.Errorf("a state that is not there: %v, %v", s, ds)
	}
	files, err := os.ReadDir(r.Dir)
	if err != nil || len(files) != 1 {
		t.Errorf("reading left %v, %v", files, err)
	}
}

// With check, only the arguments are checked.
func TestCheck(t *testing.T) {
	r := reader(t)
	if err := os.WriteFile(filepath.Join(r.Dir, "x.tfstate"), []byte("no state"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ds := r.Read(t.Context(), "local", config("x.tfstate"), "", true); len(ds) > 0 {
		t.Error(ds)
	}
	if _, ds := r.Read(t.Context(), "local", config("x.tfstate"), "", false); !ds.HasErrors() {
		t.Error("a file that is no state was read")
	}
}

// Messages have the path of the affected argument.
func TestPlaces(t *testing.T) {
	at := func(ds diag.List) string {
		if !ds.HasErrors() {
			return "no error"
		}
		out := ""
		for _, step := range ds[0].Attr {
			out += "." + step.(cty.GetAttrStep).Name
		}
		return out
	}
	r := reader(t)
	for _, tt := range []struct {
		kind   string
		config cty.Value
		want   string
	}{
		{"nowhere", cty.NilVal, ".backend"},
		{"local", cty.ObjectVal(map[string]cty.Value{"path": cty.EmptyObjectVal}), ".config"},
		{"cos", cty.ObjectVal(map[string]cty.Value{"bucket": cty.StringVal("b"), "region": cty.StringVal("r"), "acl": cty.StringVal("open"), "secret_id": cty.StringVal("i"), "secret_key": cty.StringVal("k")}), ".config.acl"},
	} {
		if _, ds := r.Read(t.Context(), tt.kind, tt.config, "", false); at(ds) != tt.want {
			t.Errorf("%s: %s; %v", tt.kind, at(ds), ds)
		}
	}
}
