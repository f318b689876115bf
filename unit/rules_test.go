package unit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"golang.org/x/tools/txtar"
)

// TestScenarios runs the archives in testdata/scenarios. Each contains a tree and the expected
// results. $ROOT is the directory into which the tree is written. A unit is named by its
// directory or file, followed by :MODULE for a module of an environment file.
//
//	want/UNIT.json    parts of the unit as rendered; "absent" keys are checked by null
//	want/UNIT.inputs  all inputs, as JSON
//	want/UNIT.edges   the units that it depends on
//	want/UNIT.files   the files that were read
//	want/UNIT.errors  FILE:LINE TEXT for each error; want/UNIT.warnings likewise
//	want/UNIT.failed  the errors of computing the inputs with outputs
//	want/UNIT.notes   FILE:LINE TEXT for each note of its messages
//	want/UNIT.hcl     the unit as rendered in HCL
//	want/UNIT.stack   what is generated from a stack file
//	want/runs         how often run_cmd ran, by its arguments
//	want/fetched      the targets whose outputs were fetched
//	outputs.json      outputs by target; other targets have none
//	config.json       {"command", "features", "env", "tolerant"}
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenarios found")
	}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(p)
			if err != nil {
				t.Fatal(err)
			}
			runScenario(t, a)
		})
	}
}

// scenario is one tree with its configuration.
type scenario struct {
	t    *testing.T
	root string
	l    *unit.Loader
	task *demand.Task

	mu      sync.Mutex
	runs    map[string]int
	fetched []string
	outputs map[string]json.RawMessage
}

type scenarioConfig struct {
	Command  string
	Features map[string]string
	Env      map[string]string
	Tolerant bool
	Shared   bool // whether each unit has its own credentials
}

func newScenario(t *testing.T, files []txtar.File) *scenario {
	t.Helper()
	s := &scenario{t: t, root: tempRoot(t), runs: map[string]int{}}
	var cfg scenarioConfig
	for _, f := range files {
		switch {
		case strings.HasPrefix(f.Name, "want/"):
		case f.Name == "outputs.json":
			decode(t, f.Data, &s.outputs)
		case f.Name == "config.json":
			decode(t, f.Data, &cfg)
		default:
			writeFile(t, filepath.Join(s.root, f.Name), []byte(strings.ReplaceAll(string(f.Data), "$ROOT", s.root)))
		}
	}
	var environ sys.Env
	for k, v := range cfg.Env {
		environ = append(environ, k+"="+v)
	}
	s.l = unit.NewLoader(unit.Env{
		WorkingDir: s.root, Machine: unit.Machine{Environ: environ, Run: s.run}, Tolerant: cfg.Tolerant, Outputs: s.output,
		Request: unit.Request{Command: cfg.Command, Args: strings.Fields(cfg.Command), Features: cfg.Features},
	})
	s.task = s.l.Task(context.Background())
	return s
}

func tempRoot(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func decode(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if target, ok := strings.CutPrefix(string(data), "LINK "); ok {
		if err := os.Symlink(strings.TrimSpace(target), path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// run replaces all programs. It prints its directory and arguments.
func (s *scenario) run(_ context.Context, c sys.Command) error {
	words := strings.Join(append([]string{c.Path}, c.Args...), " ")
	s.mu.Lock()
	s.runs[s.rel(c.Dir)+": "+words]++
	s.mu.Unlock()
	if c.Path == "false" {
		return fmt.Errorf("exit status 1")
	}
	_, err := io.WriteString(c.Stdout, words+"\n")
	return err
}

func (s *scenario) output(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	s.mu.Lock()
	s.fetched = append(s.fetched, s.rel(target))
	raw, ok := s.outputs[s.rel(target)]
	s.mu.Unlock()
	if !ok {
		return cty.NilVal, false, nil
	}
	ty, err := ctyjson.ImpliedType(raw)
	if err != nil {
		s.t.Error(err)
		return cty.NilVal, false, nil
	}
	v, err := ctyjson.Unmarshal(raw, ty)
	if err != nil {
		s.t.Error(err)
	}
	return v, true, nil
}

func (s *scenario) rel(path string) string {
	rel, err := filepath.Rel(s.root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

func (s *scenario) short(text string) string { return strings.ReplaceAll(text, s.root, "$ROOT") }

func runScenario(t *testing.T, a *txtar.Archive) {
	s := newScenario(t, a.Files)
	loaded := map[string]*loadedUnit{}
	for _, f := range a.Files {
		name, ok := strings.CutPrefix(f.Name, "want/")
		if !ok {
			continue
		}
		want := strings.TrimSpace(string(f.Data))
		switch name {
		case "runs":
			var lines []string
			for k, n := range s.runs {
				lines = append(lines, fmt.Sprintf("%d %s", n, k))
			}
			s.same(f.Name, want, lines)
			continue
		case "fetched":
			s.same(f.Name, want, s.fetched)
			continue
		case "deprecated":
			s.match(f.Name, want, messages(s, s.l.Deprecated()))
			continue
		}
		i := strings.LastIndexByte(name, '.')
		path, kind := name[:i], name[i+1:]
		if kind == "stack" {
			s.same(f.Name, want, s.stack(path))
			continue
		}
		u := loaded[path]
		if u == nil {
			u = s.load(path)
			loaded[path] = u
		}
		u.check(f.Name, kind, want)
	}
	for path, u := range loaded {
		if u.ds.HasErrors() && !u.errorsSeen {
			t.Errorf("%s: errors that were not expected:\n%s", path, strings.Join(messages(s, u.ds.Errors()), "\n"))
		}
	}
}

type loadedUnit struct {
	s          *scenario
	u          *unit.Unit
	ds         diag.List
	errorsSeen bool
}

func (s *scenario) load(path string) *loadedUnit {
	path, module, _ := strings.Cut(path, ":")
	u, ds := s.l.Unit(s.task, filepath.Join(s.root, filepath.FromSlash(path)), module)
	return &loadedUnit{s: s, u: u, ds: ds}
}

func (u *loadedUnit) note(ds diag.List) {
	for _, m := range ds {
		if !slices.Contains(u.ds, m) {
			u.ds = append(u.ds, m)
		}
	}
}

func (u *loadedUnit) check(name, kind, want string) {
	s := u.s
	s.t.Helper()
	if u.u == nil {
		if kind != "errors" && kind != "notes" {
			s.t.Fatalf("%s: the unit could not be loaded:\n%s", name, strings.Join(messages(s, u.ds), "\n"))
		}
	}
	switch kind {
	case "json":
		got, ds := u.u.RenderJSON(s.task)
		u.note(ds)
		var g, w any
		decode(s.t, got, &g)
		decode(s.t, []byte(strings.ReplaceAll(want, "$ROOT", s.root)), &w)
		if d := cmp.Diff(w, restrict(g, w)); d != "" {
			s.t.Errorf("%s (-want +got):\n%s", name, d)
		}
	case "meta":
		got, ds := u.u.RenderMetadata(s.task)
		u.note(ds)
		var g, w any
		decode(s.t, got, &g)
		decode(s.t, []byte(strings.ReplaceAll(want, "$ROOT", s.root)), &w)
		if d := cmp.Diff(w, restrict(g, w)); d != "" {
			s.t.Errorf("%s (-want +got):\n%s", name, d)
		}
	case "inputs":
		in, ds := u.u.Inputs(s.task, nil)
		u.note(ds)
		vals := map[string]cty.Value{}
		for _, i := range in {
			vals[i.Name] = i.Value
		}
		u.compareValue(name, want, cty.ObjectVal(vals))
	case "hcl":
		got, ds := u.u.RenderHCL(s.task)
		u.note(ds)
		if d := cmp.Diff(want, strings.TrimSpace(s.short(string(got)))); d != "" {
			s.t.Errorf("%s (-want +got):\n%s", name, d)
		}
	case "edges":
		edges, ds := u.u.Dependencies(s.task, nil)
		u.note(ds)
		var lines []string
		for _, e := range edges {
			lines = append(lines, s.rel(e.ID))
		}
		s.same(name, want, lines)
	case "files":
		files, ds := u.u.Files(s.task)
		u.note(ds)
		var lines []string
		for _, f := range files {
			lines = append(lines, s.rel(f))
		}
		s.same(name, want, lines)
	case "explain":
		for _, line := range strings.Split(want, "\n") {
			if path, ok := strings.CutPrefix(line, "# "); ok {
				x, ds := u.u.Explain(s.task, path)
				u.note(ds)
				var lines []string
				for _, st := range x.Steps {
					where := ""
					if st.At != nil && st.At.File != "" {
						where = fmt.Sprintf("%s:%d ", s.rel(st.At.File), st.At.Line)
					}
					lines = append(lines, where+s.short(st.Text))
					for _, p := range st.Replaces {
						lines = append(lines, fmt.Sprintf("  replaces %s:%d", s.rel(p.File), p.Line))
					}
					for _, p := range st.With {
						lines = append(lines, fmt.Sprintf("  merged with %s:%d", s.rel(p.File), p.Line))
					}
				}
				section := want[strings.Index(want, line)+len(line):]
				if i := strings.Index(section, "\n# "); i >= 0 {
					section = section[:i]
				}
				if d := cmp.Diff(strings.TrimSpace(section), strings.Join(lines, "\n")); d != "" {
					s.t.Errorf("%s: %s (-want +got):\n%s", name, path, d)
				}
			}
		}
	case "errors":
		if u.u != nil {
			u.note(u.u.Check(s.task))
		}
		u.errorsSeen = true
		s.match(name, want, messages(s, u.ds.Errors()))
	case "failed":
		_, ds := u.u.Inputs(s.task, nil)
		u.note(ds)
		u.errorsSeen = true
		s.match(name, want, messages(s, u.ds.Errors()))
	case "warnings":
		u.note(u.u.Check(s.task))
		s.match(name, want, messages(s, u.ds.Warnings()))
	case "notes":
		if u.u != nil {
			u.note(u.u.Check(s.task))
		}
		u.errorsSeen = true
		var lines []string
		for _, m := range u.ds {
			for _, n := range m.Notes {
				lines = append(lines, fmt.Sprintf("%s:%d %s", s.rel(n.At.Filename), n.At.Start.Line, s.short(n.Text)))
			}
		}
		s.match(name, want, lines)
	default:
		s.t.Fatalf("%s: unknown kind of expectation", name)
	}
}

// stack returns the files that a stack file generates, one string per line of text.
func (s *scenario) stack(path string) []string {
	st, ds := s.l.Stack(s.task, filepath.Join(s.root, path))
	var lines []string
	if st != nil {
		items, more := st.Items(s.task)
		ds = append(ds, more...)
		for _, it := range items {
			lines = append(lines, fmt.Sprintf("%s %s from %s in %s", it.Kind, it.Name, s.short(it.Source), s.rel(it.Dir)))
			for _, text := range [][]byte{it.Values, it.AutoInclude} {
				for line := range bytes.Lines(text) {
					if trimmed := strings.TrimSpace(s.short(string(line))); trimmed != "" && trimmed[0] != '#' {
						lines = append(lines, it.Name+": "+trimmed)
					}
				}
			}
		}
	}
	for _, m := range messages(s, ds) {
		lines = append(lines, "error "+m)
	}
	return lines
}
