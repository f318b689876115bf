package unit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// memory returns an environment whose file system is a map from paths below /w.
func memory(files map[string]string) unit.Env {
	m := fstest.MapFS{}
	for p, text := range files {
		m["w/"+p] = &fstest.MapFile{Data: []byte(text)}
	}
	name := func(p string) string { return strings.TrimPrefix(filepath.Clean(p), "/") }
	return unit.Env{
		WorkingDir: "/w",
		ReadFile: func(p string) ([]byte, error) {
			if !strings.HasPrefix(p, "/w") {
				return nil, fs.ErrNotExist
			}
			return m.ReadFile(name(p))
		},
		Stat: func(p string) (fs.FileInfo, error) {
			if !strings.HasPrefix(p, "/w") {
				return nil, fs.ErrNotExist
			}
			return m.Stat(name(p))
		},
		Machine: unit.Machine{
			Run: func(context.Context, sys.Command) error { return errors.New("no programs here") },
			Now: func() time.Time { return time.Unix(0, 0) },
		},
		Outputs: func(*demand.Task, string, source.Range) (cty.Value, bool, diag.List) {
			return cty.NilVal, false, nil
		},
	}
}

// everything computes all parts of a unit.
func everything(t *demand.Task, u *unit.Unit) (string, diag.List) {
	var all diag.List
	note := func(ds diag.List) { all = append(all, ds...) }
	out, ds := u.RenderJSON(t)
	note(ds)
	meta, ds := u.RenderMetadata(t)
	note(ds)
	text, ds := u.RenderHCL(t)
	note(ds)
	note(u.Check(t))
	_, ds = u.Inputs(t, nil)
	note(ds)
	_, ds = u.Files(t)
	note(ds)
	_, ds = u.Explain(t, "inputs.a.b")
	note(ds)
	return string(out) + "\n" + string(meta) + "\n" + string(text), all
}

// FuzzFile parses and evaluates arbitrary unit files. The reader must end without panic,
// and each error about the text must have a range.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"", "inputs = {}", `import "a" { config_path = "a.hcl" }`, "locals {\n a = local.b\n b = local.a\n}",
		"include \"r\" {\n path = \"r.hcl\"\n expose = true\n}\ninputs = { a = { b = include.r.inputs.x } }",
		"dependency \"d\" {\n config_path = \"../d\"\n}\ninputs = merge({ a = dependency.d.outputs }, null)",
		"inputs = deep_merge({ a = [1] }, { a = 1 })", "module \"m\" {\n source = \"x\"\n for_each = toset([\"a\"])\n}",
		"remote_state = { backend = 1 }", "generate = 3", "inputs = read_terragrunt_config(\"terragrunt.hcl\")",
		"inputs = { (null) = 1 }", "inputs = \"x\"", "terraform {\n source = get_working_dir()\n}", "locals {\n a = [for x in local.a : x]\n}",
		"feature \"f\" {\n default = feature.f.value\n}\ninputs = { a = feature.f.value }", "exclude = null",
		"inputs = { a = path_relative_to_include(), b = path_relative_to_import(\"x\") }",
	} {
		f.Add(text, "inputs = { x = 1 }", false)
	}
	f.Add(`{"import": {"a": {"config_path": "a.hcl"}}, "inputs": {"a": {"b": "${local.x}"}}}`, "", true)
	f.Add(`{"include": [{"path": "a.hcl"}], "locals": [], "dependency": "${local.x}"}`, "", true)
	f.Fuzz(func(t *testing.T, text, other string, asJSON bool) {
		if len(text) > 4096 || len(other) > 4096 || strings.Contains(text+other, "fileset") || strings.Contains(text+other, "glob") {
			return // these two search the real file system
		}
		name := "u/terragrunt.hcl"
		if asJSON {
			name += ".json"
		}
		l := unit.NewLoader(memory(map[string]string{name: text, "u/a.hcl": other, "u/r.hcl": other, "d/terragrunt.hcl": other}))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		task := l.Task(ctx)
		units, _ := l.Load(task, "u/"+filepath.Base(name))
		for _, u := range units {
			everything(task, u)
		}
		if u := l.Part("u/" + filepath.Base(name)); u != nil {
			_, _ = u.Dependencies(task, nil)
			_, _ = u.Files(task)
		}
	})
}

// TestPart truncates a file at each offset. Everything complete before that must be read.
func TestPart(t *testing.T) {
	const text = "dependency \"a\" {\n  config_path = \"../a\"\n}\n" +
		"include \"r\" {\n  path   = \"r.hcl\"\n  expose = true\n}\n" +
		"dependencies {\n  paths = [\"../b\"]\n}\n" +
		"inputs = {\n  x = include.r.inputs.x\n}\n"
	for i := range text {
		l := unit.NewLoader(memory(map[string]string{
			"u/terragrunt.hcl": text[:i], "u/r.hcl": "inputs = { x = 1 }", "a/terragrunt.hcl": "", "b/terragrunt.hcl": "",
		}))
		task := l.Task(context.Background())
		u := l.Part("u")
		if units, _ := l.Load(task, "u"); len(units) > 0 {
			u = units[0]
		}
		if u == nil {
			t.Fatalf("nothing of %q", text[:i])
		}
		if i%2 == 0 {
			u.ForgetFile()
		}
		edges, _ := u.Dependencies(task, nil)
		var got []string
		for _, e := range edges {
			got = append(got, e.ID)
		}
		for _, want := range []struct{ text, id string }{{"../a\"\n}\n", "/w/a"}, {"../b\"]\n}\n", "/w/b"}} {
			if strings.Contains(text[:i], want.text) && !slices.Contains(got, want.id) {
				t.Errorf("of %q only %q", text[:i], got)
			}
		}
	}
}

// FuzzStack parses arbitrary stack files.
func FuzzStack(f *testing.F) {
	f.Add("unit \"a\" {\n source = \"x\"\n path = \"p\"\n values = { a = unit.a.path }\n}")
	f.Add("unit \"a\" {\n source = unit.a.path\n path = unit.a.path\n autoinclude {\n inputs = { a = dependency.x.outputs.y }\n }\n}")
	f.Add("include \"a\" {\n path = \"terragrunt.stack.hcl\"\n}\nlocals {\n a = stack.b.path\n}")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || strings.Contains(text, "fileset") || strings.Contains(text, "glob") {
			return
		}
		l := unit.NewLoader(memory(map[string]string{"s/terragrunt.stack.hcl": text}))
		task := l.Task(context.Background())
		if s, _ := l.Stack(task, "s"); s != nil {
			items, _ := s.Items(task)
			for _, it := range items {
				if !strings.HasPrefix(it.Dir, "/w/s/") {
					t.Errorf("%s goes to %s, outside of the stack", it.Name, it.Dir)
				}
			}
		}
	})
}

// FuzzDeepMerge checks the laws of deep merging: an empty layer is neutral, the last layer
// wins, and merging is associative if there are neither nulls nor conflicting types.
func FuzzDeepMerge(f *testing.F) {
	f.Add(`{"a": 1, "l": [1], "m": {"x": {"y": 1}}}`, `{"a": 2, "l": [2], "m": {"x": {"z": 2}}}`, `{"l": [], "m": {"x": {}}}`)
	f.Add(`{}`, `{"a": false}`, `{"a": ""}`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		docs := []string{a, b, c}
		var vals [3]map[string]any
		for i, d := range docs {
			if len(d) > 2000 || json.Unmarshal([]byte(d), &vals[i]) != nil || vals[i] == nil || strings.ContainsAny(d, "$%") || oddKeys(vals[i]) {
				return
			}
		}
		files := map[string]string{"empty.hcl": "", "none.hcl": "inputs = {}"}
		for i := range vals {
			text, _ := json.Marshal(map[string]any{"inputs": vals[i]})
			files[fmt.Sprintf("%d.hcl.json", i)] = string(text)
		}
		use := func(paths ...string) string {
			var s strings.Builder
			for i, p := range paths {
				fmt.Fprintf(&s, "import \"i%d\" {\n config_path = \"/w/%s\"\n deep_merge = true\n}\n", i, p)
			}
			return s.String()
		}
		files["left.hcl"] = use("0.hcl.json", "1.hcl.json")
		files["right.hcl"] = use("1.hcl.json", "2.hcl.json")
		files["alone/terragrunt.hcl"] = use("0.hcl.json")
		files["neutral/terragrunt.hcl"] = use("empty.hcl", "0.hcl.json", "none.hcl") + "inputs = {}"
		files["lr/terragrunt.hcl"] = use("left.hcl", "2.hcl.json")
		files["rl/terragrunt.hcl"] = use("0.hcl.json", "right.hcl")
		l := unit.NewLoader(memory(files))
		task := l.Task(context.Background())
		inputs := func(name string) (any, bool) {
			u, ds := l.Unit(task, name, "")
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			out, ds := u.RenderJSON(task)
			var m map[string]any
			if err := json.Unmarshal(out, &m); err != nil {
				t.Fatal(err)
			}
			return m["inputs"], !ds.HasErrors()
		}
		alone, _ := inputs("alone")
		neutral, _ := inputs("neutral")
		if d := cmp.Diff(alone, neutral); d != "" {
			t.Errorf("an empty layer is not neutral:\n%s", d)
		}
		lr, lok := inputs("lr")
		rl, rok := inputs("rl")
		if !lok || !rok || hasNull(vals[0]) || hasNull(vals[1]) || hasNull(vals[2]) {
			return
		}
		if d := cmp.Diff(lr, rl); d != "" {
			t.Errorf("not associative:\n%s", d)
		}
		wins(t, "", lr, vals[2])
	})
}

// oddKeys reports whether a JSON value has keys that are not valid text in HCL.
func oddKeys(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, in := range v {
			if strings.ContainsRune(k, '\ufffd') || k == "//" || oddKeys(in) {
				return true
			}
		}
	case []any:
		for _, in := range v {
			if oddKeys(in) {
				return true
			}
		}
	case float64:
		return v != float64(int64(v)) || v > 1e15 || v < -1e15
	case string:
		return strings.ContainsRune(v, '\ufffd') || strings.IndexFunc(v, func(r rune) bool { return r > 0x7e || r < 0x20 }) >= 0
	}
	return false
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, in := range v {
			if hasNull(in) {
				return true
			}
		}
	case []any:
		for _, in := range v {
			if hasNull(in) {
				return true
			}
		}
	}
	return false
}

// wins checks that every leaf value of the last layer is in the result.
func wins(t *testing.T, path string, got, last any) {
	t.Helper()
	switch l := last.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: no map any more", path)
			return
		}
		for k, v := range l {
			wins(t, path+"."+k, g[k], v)
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) < len(l) {
			t.Errorf("%s: elements are gone", path)
			return
		}
		if d := cmp.Diff(l, g[len(g)-len(l):]); d != "" {
			t.Errorf("%s: the last layer's elements do not stand last:\n%s", path, d)
		}
	default:
		if !cmp.Equal(got, last) {
			t.Errorf("%s is %v, want the later %v", path, got, last)
		}
	}
}
