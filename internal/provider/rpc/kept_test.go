package rpc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/provider/schemacache"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// declared contains everything that a provider declares, decoded.
type declared struct {
	Config, Meta *schema.Block
	Functions    map[string]*schema.Function
	Capabilities schema.Capabilities
	Resources    map[string]*schema.Resource
}

func declaredBy(p *schema.Provider) declared {
	out := declared{p.Config, p.Meta, p.Functions, p.Capabilities, map[string]*schema.Resource{}}
	for mode, types := range p.Types {
		for _, name := range types {
			out.Resources[mode.Prefix()+name] = p.Resource(mode, name)
		}
	}
	return out
}

var equalSchemas = cmp.Options{
	cmpopts.IgnoreUnexported(schema.Block{}),
	cmp.Comparer(func(a, b cty.Type) bool {
		return (a == cty.NilType) == (b == cty.NilType) && (a == cty.NilType || a.Equals(b))
	}),
}

// The schemas of all kinds that a command keeps equal those that the plugin sends. Later commands
// do not request them.
func TestKeptSchemas(t *testing.T) {
	for protocol, perProcess := range map[int]int{6: 0, 5: 1} { // the test provider has GetProviderSchemaOptional with protocol 6 only
		files := schemacache.Cache{Dir: filepath.Join(t.TempDir(), "schemas"), Machine: "m", Now: time.Now}
		calls := filepath.Join(t.TempDir(), "calls")
		requested := func() int {
			text, _ := os.ReadFile(calls)
			_ = os.Remove(calls)
			n := 0
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "begin") && strings.Contains(line, "GetProviderSchema") {
					n++
				}
			}
			return n
		}
		o := options(t, protocol, "TEST_CALLS="+calls)
		fresh := launch(t, o)
		want := declaredBy(schemaOf(t, fresh))
		if want.Resources["test_object"].Identity == nil || len(want.Functions) == 0 || !want.Resources["test_object"].Block.HasWriteOnly() || want.Resources["test_old"].Block.Deprecated == "" {
			t.Fatal("the test provider lacks a kind")
		}

		o.Package = "test h1:1"
		o.Cache = &rpc.SchemaCache{Files: files}
		if o.Cache.Kept(o) != nil {
			t.Fatal("kept before the first start")
		}
		first := launch(t, o)
		if d := cmp.Diff(want, declaredBy(schemaOf(t, first)), equalSchemas); d != "" {
			t.Error(d)
		}
		if n := requested(); n != 2 {
			t.Errorf("protocol %d: %d requests of two processes", protocol, n)
		}

		o.Cache = &rpc.SchemaCache{Files: files} // another command
		kept := o.Cache.Kept(o)
		if kept == nil {
			t.Fatal("nothing is kept")
		}
		if d := cmp.Diff(want, declaredBy(kept), equalSchemas); d != "" {
			t.Error(d)
		}
		if kept.Resource(addr.Managed, "test_none") != nil || kept.Invalid(addr.Managed, "test_none") != nil {
			t.Error("a type that does not exist")
		}
		second := launch(t, o)
		if schemaOf(t, second) != kept {
			t.Error("the process has another schema")
		}
		if n := requested(); n != perProcess {
			t.Errorf("protocol %d: %d requests", protocol, n)
		}
		for _, k := range []rpc.Kind{rpc.Action, rpc.StateStore} {
			a, ds := fresh.Others(t.Context(), k)
			b, more := second.Others(t.Context(), k)
			noErrors(t, append(ds, more...))
			if d := cmp.Diff(a, b, cmpopts.EquateEmpty()); d != "" {
				t.Error(k, d)
			}
			for _, name := range a {
				a, ds := fresh.OtherSchema(t.Context(), k, name)
				b, more := second.OtherSchema(t.Context(), k, name)
				noErrors(t, append(ds, more...))
				if d := cmp.Diff(a, b, equalSchemas); d != "" {
					t.Error(k, name, d)
				}
			}
		}

		// Other packages, arguments and switches have other schemas; other variables do not.
		for name, change := range map[string]func(*rpc.Options){
			"package":   func(o *rpc.Options) { o.Package = "test h1:2" },
			"unhashed":  func(o *rpc.Options) { o.Package = "" },
			"arguments": func(o *rpc.Options) { o.Args = []string{"x"} },
			"switch":    func(o *rpc.Options) { o.Env = append(o.Env[:len(o.Env):len(o.Env)], "TEST_BETA=true") },
			"disabled":  func(o *rpc.Options) { o.Cache = &rpc.SchemaCache{} },
			"": func(o *rpc.Options) {
				o.Env = append(o.Env[:len(o.Env):len(o.Env)], "TOKEN=abc", "TF_VAR_x=true", "/=/", "SHLVL=2")
			},
		} {
			o := o
			o.Cache = &rpc.SchemaCache{Files: files}
			if change(&o); (o.Cache.Kept(o) != nil) != (name == "") {
				t.Errorf("%q: kept %v", name, o.Cache.Kept(o) != nil)
			}
		}
	}
}

// Schemas are requested again if the file was damaged, and replace it.
func TestKeptSchemasReplaced(t *testing.T) {
	files := schemacache.Cache{Dir: filepath.Join(t.TempDir(), "schemas"), Machine: "m", Now: time.Now}
	use := func() {
		o := options(t, 6)
		o.Package, o.Cache = "test h1:1", &rpc.SchemaCache{Files: files}
		schemaOf(t, launch(t, o))
	}
	use()
	paths, err := filepath.Glob(filepath.Join(files.Dir, "*"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	good, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(paths[0], good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	use()
	if again, err := os.ReadFile(paths[0]); err != nil || len(again) != len(good) {
		t.Errorf("%d bytes instead of %d, %v", len(again), len(good), err)
	}
}
