package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	embed "github.com/terrace-iac/terrace"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/hooks"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/plan/imports"
	"github.com/terrace-iac/terrace/internal/provider/builtin"
	"github.com/terrace-iac/terrace/internal/provider/provisioner"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/oss"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/migrate"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"
)

// subject is the name of a cell.
type subject string

func (s subject) Describe() (string, *source.Range) { return string(s), nil }

// calls provoke the message codes that the command line cannot reach: they are for programs
// that embed packages, or an earlier check reports the problem.
var calls = map[string]func(t *testing.T) diag.List{
	"apply/instance-not-found": func(t *testing.T) diag.List {
		_, p := planned(t, `resource "terraform_data" "x" {}`)
		other := engineOn(t, "", engine.Options{})
		_, ds := other.Apply(t.Context(), p, engine.ApplyOptions{})
		return ds
	},
	"eval/nested-task": func(t *testing.T) diag.List {
		var g demand.Graph
		var c *demand.Cell[int]
		c = demand.NewCell(demand.Subject(subject("local.a")), 0, func(task *demand.Task) (int, diag.List) {
			v, _ := c.Get(g.Task(task.Context()), nil)
			return v, demand.Fail()
		})
		c.Get(g.Task(t.Context()), nil)
		return g.Diags()
	},
	"provider/panic": func(t *testing.T) diag.List {
		note := addr.Provider{Host: "example.com", Namespace: "me", Type: "note"}
		own := func(context.Context) (provider.Provider, diag.List) { return &struct{ provider.Provider }{}, nil }
		plugins := &workdir.Plugins{Directory: &workdir.Directory{Providers: map[addr.Provider]provider.Factory{note: own}}}
		start, ds := plugins.Factory(note)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		p, ds := start(t.Context())
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		_, ds = p.Read(t.Context(), provider.ReadRequest{Type: "note_line"})
		return ds
	},
	"provider/unimplemented": func(t *testing.T) diag.List {
		_, ds := provider.Unimplemented{}.Import(t.Context(), provider.ImportRequest{})
		return ds
	},
	"backend/failed": func(*testing.T) diag.List {
		return backend.Message(diag.CodeBackendFailed, "Failed to open the backend", "x", errors.New("no answer"))
	},
	"backend/write-failed": func(*testing.T) diag.List {
		return backend.Message(diag.CodeBackendWriteFailed, "Failed to write the state", "x", errors.New("no answer"))
	},
	"apply/not-done": func(t *testing.T) diag.List {
		e, p := planned(t, `resource "terraform_data" "x" {}`)
		p.Actions[0].Needs = []int{0}
		_, ds := e.Apply(t.Context(), p, engine.ApplyOptions{})
		return ds
	},
	"apply/not-known": func(t *testing.T) diag.List {
		e, p := planned(t, `
			variable "path" { default = "x" }
			resource "terraform_data" "x" {}
			data "terraform_remote_state" "x" {
				backend    = "local"
				config     = { path = var.path }
				depends_on = [terraform_data.x]
			}`)
		p.Variables = map[string]cty.Value{"path": cty.UnknownVal(cty.String)}
		_, ds := e.Apply(t.Context(), p, engine.ApplyOptions{})
		return ds
	},
	"apply/provisioners-not-available": func(t *testing.T) diag.List {
		e, p := planned(t, `
			resource "terraform_data" "x" {
				provisioner "local-exec" { command = "true" }
			}`)
		_, ds := e.Apply(t.Context(), p, engine.ApplyOptions{})
		return ds
	},
	"cli/file-changed": func(t *testing.T) diag.List {
		dir := laid(t, "-- terragrunt.hcl --\ninclude {\n  path = \"a.hcl\"\n}\n-- a.hcl --\n")
		path := filepath.Join(dir, "terragrunt.hcl")
		p, err := migrate.Imports(t.Context(), unit.Env{WorkingDir: dir}, []string{path}, nil)
		if err != nil || len(p.Changes) == 0 {
			t.Fatal(p, err)
		}
		if err := os.WriteFile(path, append(p.Changes[0].Before, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return p.Write()
	},
	"cli/migration": func(*testing.T) diag.List {
		return units.ValuesDiffer([]*affected.Unit{{Name: "a", Objects: []*affected.Object{{Address: "inputs", Changes: []*affected.Change{{Path: ".x", Action: outline.Changed}}}}}})
	},
	"cli/folder": func(t *testing.T) diag.List {
		_, ds := embed.Open(t.Context(), embed.Options{Dir: filepath.Join(t.TempDir(), "none")})
		return ds
	},
	"cli/plan-errors": func(t *testing.T) diag.List {
		e, p := planned(t, "")
		p.Deferred = []*plan.Deferred{{Addr: "terraform_data.x", Variables: []string{"x"}}}
		_, ds := e.Apply(t.Context(), p, engine.ApplyOptions{})
		return ds
	},
	"cli/shared-file": func(t *testing.T) diag.List {
		const far = "/dev/shm" // not near the test's directory
		if info, err := os.Stat(far); runtime.GOOS != "linux" || err != nil || !info.IsDir() || strings.HasPrefix(t.TempDir(), far) {
			t.Skip("there is no other directory")
		}
		dir, err := os.MkdirTemp(far, "terrace")
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.WriteFile(filepath.Join(dir, "root.hcl"), []byte("inputs = { x = path_relative_to_include() }\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return said(t, "migrate imports", "-- terragrunt.hcl --\ninclude \"root\" {\n  path = \""+dir+"/root.hcl\"\n}\n")
	},
	"config/language-version": func(*testing.T) diag.List {
		_, ds := config.LoadFiles(".", map[string][]byte{"main.tf": []byte("terraform {\n  required_version = \"> 1\"\n}\n")}, config.Options{Version: "two"})
		return ds
	},
	"backend/no-credentials": func(t *testing.T) diag.List {
		kind := oss.Kind()
		args := map[string]cty.Value{}
		for name, ty := range kind.Schema.ImpliedType().AttributeTypes() {
			args[name] = cty.NullVal(ty)
		}
		for name, v := range map[string]string{"bucket": "b", "region": "eu-central-1", "ecs_role_name": "r"} {
			args[name] = cty.StringVal(v)
		}
		nowhere := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("there is no machine of the cloud here")
		}}
		b, err := kind.Open(t.Context(), cty.ObjectVal(args), backend.Services{
			Dir: t.TempDir(), Now: time.Now, Sleep: func(context.Context, time.Duration) error { return nil }, Transport: nowhere, Shared: new(backend.Shared),
		})
		if err == nil {
			_, err = b.List(t.Context())
		}
		var e *backend.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		return diag.List{{Code: e.Code, Summary: e.Summary}}
	},
	"estate/command-failed": func(t *testing.T) diag.List {
		dir := t.TempDir()
		p := provocation{
			lines: []string{"run --report-file " + filepath.Join(dir, "report.json") + " -- apply"},
			files: txtar.Parse([]byte("-- main.tf --\nresource \"terraform_data\" \"x\" {}\n-- terragrunt.hcl --\n-- stdin --\nno\n")).Files,
		}
		out := p.run(t)
		var units []struct{ Cause string }
		text, err := os.ReadFile(filepath.Join(dir, "report.json"))
		if err = errors.Join(err, json.Unmarshal(text, &units)); err != nil || len(units) != 1 {
			t.Fatalf("%v\n%s\n%s", err, text, out)
		}
		return coded(units[0].Cause)
	},
	"estate/encryption": func(*testing.T) diag.List {
		d := &workcopy.UnitDirectory{Remote: &unit.RemoteState{Encryption: cty.EmptyObjectVal}}
		_, ds := d.Encryption()
		return ds
	},
	"estate/no-exec": func(t *testing.T) diag.List {
		r := &hooks.Runner{Blocks: &unit.Terraform{Before: []unit.Hook{{Name: "x", Commands: []string{"plan"}, Execute: []string{"true"}, If: true}}}, Dir: t.TempDir()}
		return r.Before(t.Context(), "plan").Diags
	},
	"estate/state-of-another-machine": func(t *testing.T) diag.List {
		dir := t.TempDir()
		k := states.NewKeeper(states.Settings{
			Backends: (&workdir.Directory{}).NewBackends("me@here"), CopiedTo: dir, CheckedOut: func(path string) string { return path },
		})
		_, ds := k.Where(t.Context(), "u", &workcopy.UnitDirectory{Unit: &unit.Unit{}, Path: dir}, nil, nil, sys.Env{})
		return ds
	},
	"journal/in-store": func(t *testing.T) diag.List {
		shared, beside := t.TempDir(), &blobs{Folder: remote.Folder(t.TempDir())}
		s := begun(t, machine(t, shared, 1, beside))
		beside.gone = true
		s.Release()
		beside.gone = false
		s, ds := statemgr.Take(t.Context(), machine(t, shared, 2, nil)) // this machine does not know the journal
		if ds.HasErrors() {
			return ds
		}
		if ds := append(s.Write(t.Context(), state.New().WithMeta("another", 5, "1.12.6")), s.Release()...); ds.HasErrors() {
			return ds
		}
		s, ds = statemgr.Take(t.Context(), machine(t, shared, 3, beside))
		if s != nil {
			ds = append(ds, s.Release()...)
		}
		return ds
	},
	"journal/foreign": func(t *testing.T) diag.List { return halfMoved(t, false, journal.User{}, nil) },
	"journal/move-unknown": func(t *testing.T) diag.List {
		return halfMoved(t, false, journal.User{}, func(string, *journal.Recovered) diag.List { return nil })
	},
	"journal/moved":   func(t *testing.T) diag.List { return halfMoved(t, true, journal.User{Dir: t.TempDir()}, nil) },
	"journal/unmoved": func(t *testing.T) diag.List { return halfMoved(t, false, journal.User{Dir: t.TempDir()}, nil) },
	"lang/inconsistent-types": func(t *testing.T) diag.List {
		f, diags := hclsyntax.ParseConfig([]byte("set {\n  a = 1\n}\nset {\n  a = []\n}\n"), "x.tf", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		inner := &schema.Block{Attributes: map[string]*schema.Attribute{"a": {Type: cty.DynamicPseudoType, Optional: true}}}
		b, ds := lang.CompileBody(f.Body, &schema.Block{Blocks: map[string]*schema.NestedBlock{"set": {Block: inner, Nesting: schema.Set}}})
		if ds.HasErrors() {
			return ds
		}
		_, ds = b.Eval(nil, nil)
		return ds
	},
	"module/depth": func(t *testing.T) diag.List {
		dir := t.TempDir()
		for n, at := 0, dir; n < 510; n, at = n+1, filepath.Join(at, "m") {
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(at, "main.tf"), []byte("module \"m\" {\n  source = \"./m\"\n}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return embed.Init(t.Context(), embed.Options{Dir: dir, Environ: []string{"HOME=" + dir}})
	},
	"plan/generated": func(*testing.T) diag.List {
		_, ds := imports.GeneratedValue("", &schema.Resource{Block: &schema.Block{}})
		return ds
	},
	"plan/replace-address": func(t *testing.T) diag.List {
		a, err := addr.ParseInstance("data.terraform_remote_state.x")
		if err != nil {
			t.Fatal(err)
		}
		_, ds := engineOn(t, "", engine.Options{}).Plan(t.Context(), nil, engine.PlanOptions{Options: plan.Options{Replace: []addr.Instance{a}}})
		return ds
	},
	"provider/closed": func(t *testing.T) diag.List {
		p, ds := rpc.Launch(t.Context(), testPlugin(t))
		if ds.HasErrors() {
			return ds
		}
		_ = p.Close()
		_, ds = p.Schema(t.Context())
		return ds
	},
	"provider/import-needs-id": func(t *testing.T) diag.List {
		_, ds := builtin.New(nil).Import(t.Context(), provider.ImportRequest{Type: "terraform_data"})
		return ds
	},
	"provider/interrupted": func(t *testing.T) diag.List {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, ds := rpc.Launch(ctx, testPlugin(t))
		return ds
	},
	"provider/moved-object": func(t *testing.T) diag.List {
		_, ds := builtin.New(nil).Move(t.Context(), provider.MoveRequest{SourceProvider: addr.DefaultProvider("null"), SourceType: "null_resource", SourceJSON: []byte("["), TargetType: "terraform_data"})
		return ds
	},
	"provider/no-identity": func(t *testing.T) diag.List {
		_, ds := builtin.New(nil).UpgradeIdentity(t.Context(), "terraform_data", 0, nil)
		return ds
	},
	"provider/slow": func(t *testing.T) diag.List {
		o := testPlugin(t)
		o.Env, o.StartTimeout = append(o.Env, "TEST_MISBEHAVE=hang"), 200*time.Millisecond
		_, ds := rpc.Launch(t.Context(), o)
		return ds
	},
	"provider/unasked": func(t *testing.T) diag.List {
		p, ds := rpc.Launch(t.Context(), testPlugin(t))
		if ds.HasErrors() {
			return ds
		}
		defer p.Close()
		s, ds := p.Schema(t.Context())
		if ds.HasErrors() {
			return ds
		}
		attrs := map[string]cty.Value{}
		for name, ty := range s.Config.ImpliedType().AttributeTypes() {
			attrs[name] = cty.NullVal(ty)
		}
		attrs["misbehave"] = cty.StringVal("exit:configure")
		_ = p.Configure(t.Context(), cty.ObjectVal(attrs)) // ends the plugin
		return p.Configure(t.Context(), cty.ObjectVal(attrs))
	},
	"provider/unknown-type": func(t *testing.T) diag.List {
		return builtin.New(nil).ValidateResource(t.Context(), addr.Managed, "none", cty.EmptyObjectVal)
	},
	"provisioner/removed": func(*testing.T) diag.List {
		return provisioner.Validate("chef", cty.EmptyObjectVal, cty.NilVal)
	},
	"provisioner/unknown": func(*testing.T) diag.List {
		return provisioner.Validate("none", cty.EmptyObjectVal, cty.NilVal)
	},
	"unit/dependency-cycle": func(t *testing.T) diag.List {
		dir := laid(t, "-- a/terragrunt.hcl --\ndependency \"b\" {\n  config_path = \"../b\"\n}\ninputs = { x = dependency.b.outputs.x }\n-- b/terragrunt.hcl --\n")
		var l *unit.Loader
		inputs := func(task *unit.Task) diag.List {
			u, ds := l.Unit(task, filepath.Join(dir, "a"), "")
			if ds.HasErrors() {
				return ds
			}
			_, ds = u.Inputs(task, nil)
			return ds
		}
		l = unit.NewLoader(unit.Env{WorkingDir: dir, Outputs: func(task *unit.Task, _ string, _ source.Range) (cty.Value, bool, diag.List) {
			return cty.EmptyObjectVal, true, inputs(task) // returns as if the inputs of b depended on a
		}})
		task := l.Task(t.Context())
		return inputs(task)
	},
	"state/journal-in-store": func(t *testing.T) diag.List {
		shared, beside := t.TempDir(), &blobs{Folder: remote.Folder(t.TempDir())}
		defer begun(t, machine(t, shared, 1, beside)).Release()
		_, ds := statemgr.Read(t.Context(), machine(t, shared, 2, beside))
		return ds
	},
	"unit/missing-output": func(t *testing.T) diag.List {
		dir := laid(t, "-- a/terragrunt.hcl --\ndependency \"b\" {\n  config_path = \"../b\"\n}\ninputs = { x = dependency.b.outputs.x }\n-- b/terragrunt.hcl --\n")
		l := unit.NewLoader(unit.Env{WorkingDir: dir, Tolerant: true, Outputs: func(*unit.Task, string, source.Range) (cty.Value, bool, diag.List) {
			return cty.EmptyObjectVal, true, nil
		}})
		task := l.Task(t.Context())
		u, ds := l.Unit(task, filepath.Join(dir, "a"), "")
		if ds.HasErrors() {
			return ds
		}
		_, ds = u.Inputs(task, nil)
		return ds
	},
	"unit/no-stack-file": func(t *testing.T) diag.List {
		l := unit.NewLoader(unit.Env{WorkingDir: t.TempDir()})
		_, ds := l.Stack(l.Task(t.Context()), "none")
		return ds
	},
	"unit/relative-path": func(t *testing.T) diag.List {
		l := unit.NewLoader(unit.Env{})
		_, ds := l.Load(l.Task(t.Context()), "a")
		return ds
	},
}

// blobs are objects stored next to a state. They cannot be changed after gone is set.
type blobs struct {
	remote.Folder
	gone bool
}

func (b *blobs) PutBlob(ctx context.Context, name string, data []byte) error {
	if b.gone {
		return errors.New("the machine is gone")
	}
	return b.Folder.PutBlob(ctx, name, data)
}

func (b *blobs) DeleteBlob(ctx context.Context, name string) error {
	if b.gone {
		return errors.New("the machine is gone")
	}
	return b.Folder.DeleteBlob(ctx, name)
}

// machine returns the options of a run on one of several machines, with a state in a directory
// that all machines share.
func machine(t *testing.T, shared string, n int, beside statemgr.Segments) statemgr.Options {
	dir := t.TempDir()
	return statemgr.Options{
		Store: local.Open(local.Options{Dir: shared, Who: "me@here", Now: time.Now}), Journal: filepath.Join(dir, "journal"), Dir: dir, User: journal.User{Dir: dir + "/user"}, StateID: "state",
		Segments: beside, KeepSegments: beside != nil,
		Lock: &store.LockInfo{Operation: "test", Who: fmt.Sprintf("run%d@here", n), Created: time.Date(2026, 1, 2, 3, 4, 5, n, time.UTC)},
	}
}

// begun returns a state of a run that has received a response and has not written the state.
func begun(t *testing.T, o statemgr.Options) *statemgr.State {
	s, ds := statemgr.Take(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	a := addr.Instance{Resource: addr.Resource{Type: "terraform_data", Name: "x"}}
	ds = s.Start(t.Context(), 1, 1)
	err := errors.Join(ds.Err(), s.Begin(0, a.String(), "create"), s.Answer(0, []state.Change{{
		Object: addr.Object{Instance: a}, Provider: addr.ProviderConfig{Provider: addr.BuiltIn}, New: &state.Object{JSON: []byte(`{"id":"x"}`)},
	}}), s.Sync())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// halfMoved returns the messages about a state whose run was killed while it moved an object
// to another state, before or after the decision. The zero user differs from the user of the
// next run.
func halfMoved(t *testing.T, decided bool, user journal.User, adopt func(string, *journal.Recovered) diag.List) diag.List {
	dir := laid(t, "-- other/x --\n")
	path := filepath.Join(dir, ".terraform.tfstate.journal")
	j, err := journal.Create(path, journal.Options{User: user})
	if err != nil {
		t.Fatal(err)
	}
	half, into := journal.NewTransfers("1")
	if adopt != nil {
		half = into
	}
	a, err := addr.ParseInstance("terraform_data.x")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(j.Transfer(half), j.Answer(0, []state.Change{{Object: addr.Object{Instance: a}}}), j.Sync(), j.Close())
	if decided && err == nil {
		err = errors.Join(user.CanMove(), user.Decide(half, path, filepath.Join(dir, "other", ".terraform.tfstate.journal")))
	}
	if err != nil {
		t.Fatal(err)
	}
	s, ds := statemgr.Take(t.Context(), statemgr.Options{
		Store: local.Open(local.Options{Dir: dir, Who: "me@here", Now: time.Now}), Journal: path, Dir: dir, User: user, Adopt: adopt,
		Lock: &store.LockInfo{Operation: "test", Who: "me@here", Created: time.Now()},
	})
	if s != nil {
		ds = append(ds, s.Release()...)
	}
	return ds
}

// laid returns a new directory with the files of an archive.
func laid(t *testing.T, archive string) string {
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// engineOn returns an engine for a directory with one file.
func engineOn(t *testing.T, main string, o engine.Options) *engine.Engine {
	o.Dir = laid(t, "-- main.tf --\n"+main+"\n")
	e, ds := engine.Open(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	t.Cleanup(e.Close)
	return e
}

// planned returns an engine for a directory with one file, and its plan.
func planned(t *testing.T, main string) (*engine.Engine, *plan.Plan) {
	e := engineOn(t, main, engine.Options{})
	p, ds := e.Plan(t.Context(), nil, engine.PlanOptions{})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return e, p
}

// said returns a message for each code that a command prints in a directory with the files of
// an archive.
func said(t *testing.T, command, archive string) diag.List {
	p := provocation{lines: []string{command}, files: txtar.Parse([]byte(archive)).Files}
	return coded(p.run(t))
}

// coded returns a message for each code in a text.
func coded(out string) diag.List {
	ds := diag.Errorf("", nil, "What was said", "%s", out)
	for _, m := range codeLine.FindAllStringSubmatch(out, -1) {
		ds = append(ds, &diag.Message{Code: m[1]})
	}
	return ds
}

// testPlugin returns the options for starting the test provider.
func testPlugin(t *testing.T) rpc.Options {
	return rpc.Options{Addr: addr.DefaultProvider("test"), Path: testProvider(t), Dir: t.TempDir(), Env: []string{"TMPDIR=" + os.TempDir(), fmt.Sprint("PATH=", os.Getenv("PATH"))}}
}
