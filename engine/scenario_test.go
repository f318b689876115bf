package engine_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what was found into the archives")

// Each archive in testdata contains files, a list of steps and their expected results. A step
// is a mode (plan, apply, destroy, refresh) with options and variables; `with DIR` first
// copies the files of that directory. The value ? is unknown, and -defer allows deferring
// objects that depend on it.
func TestScenarios(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s := newScenario(t, ar)
			for _, line := range strings.Split(strings.TrimSpace(s.steps), "\n") {
				s.step(strings.Fields(line))
			}
			if *update {
				s.write(name, ar)
				return
			}
			if d := cmp.Diff(s.want, s.out.String()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

type scenario struct {
	t           *testing.T
	dir         string
	files       map[string]map[string][]byte // directory to files
	steps, want string
	out         bytes.Buffer
	state       *state.State
}

func newScenario(t *testing.T, ar *txtar.Archive) *scenario {
	s := &scenario{t: t, dir: t.TempDir(), files: map[string]map[string][]byte{}}
	for _, f := range ar.Files {
		switch f.Name {
		case "steps":
			s.steps = string(f.Data)
			continue
		case "want":
			s.want = string(f.Data)
			continue
		}
		folder, name, ok := strings.Cut(f.Name, "/")
		if !ok {
			folder, name = "1", f.Name
		}
		if s.files[folder] == nil {
			s.files[folder] = map[string][]byte{}
		}
		s.files[folder][name] = f.Data
	}
	s.put("1")
	return s
}

func (s *scenario) put(folder string) {
	s.t.Helper()
	if s.files[folder] == nil {
		s.t.Fatalf("there is no directory %q", folder)
	}
	_ = filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, _ error) error {
		if !d.IsDir() {
			return os.Remove(p)
		}
		return nil
	})
	for name, data := range s.files[folder] {
		p := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scenario) step(words []string) {
	s.t.Helper()
	fmt.Fprintf(&s.out, "> %s\n", strings.Join(words, " "))
	if words[0] == "with" {
		s.put(words[1])
		return
	}
	ctx := context.Background()
	e, ds := engine.Open(ctx, engine.Options{Dir: s.dir})
	if s.tell(ds); ds.HasErrors() {
		return
	}
	defer e.Close()
	if words[0] == "validate" {
		s.tell(e.Validate(ctx))
		return
	}
	o := s.options(words[1:])
	o.Mode = map[string]plan.Mode{"destroy": plan.Destroy, "refresh": plan.RefreshOnly}[words[0]]
	p, ds := e.Plan(ctx, s.state, o)
	s.tell(ds)
	s.changes(p)
	if !ds.HasErrors() {
		checkCauses(s.t, e, p, engine.ExplainOptions{Variables: o.Variables, State: p.Prior})
	}
	if ds.HasErrors() || words[0] == "plan" {
		return
	}
	s.actions(p)
	r, ds := e.Apply(ctx, p, engine.ApplyOptions{})
	s.tell(ds)
	s.state = r.State
	fmt.Fprintf(&s.out, "added %d, changed %d, destroyed %d\n", r.Counts.Add, r.Counts.Change, r.Counts.Destroy)
}

func (s *scenario) options(words []string) engine.PlanOptions {
	o := engine.PlanOptions{Variables: map[string]engine.InputValue{}}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "-target", "-exclude":
			t, err := addr.ParseTarget(v)
			if err != nil {
				s.t.Fatal(err)
			}
			if k == "-target" {
				o.Targets = append(o.Targets, t)
			} else {
				o.Excludes = append(o.Excludes, t)
			}
		case "-replace":
			a, err := addr.ParseInstance(v)
			if err != nil {
				s.t.Fatal(err)
			}
			o.Replace = append(o.Replace, a)
		case "-defer":
			o.DeferInputs = true
		default:
			if v == "?" {
				o.Variables[k] = engine.InputValue{Value: cty.DynamicVal}
				continue
			}
			o.Variables[k] = engine.InputValue{Text: &v, From: source.Layer{Kind: source.Flag}}
		}
	}
	return o
}

func (s *scenario) tell(ds diag.List) {
	for _, m := range ds {
		fmt.Fprintf(&s.out, "%s: %s", m.Severity, m.Summary)
		if m.At != nil {
			fmt.Fprintf(&s.out, " at %s:%d", m.At.Filename, m.At.Start.Line)
		}
		fmt.Fprintf(&s.out, ": %s\n", strings.Join(strings.Fields(m.Detail), " "))
		for _, n := range m.Notes {
			fmt.Fprintf(&s.out, "  %s", n.Text)
			if n.At != nil {
				fmt.Fprintf(&s.out, " at %s:%d", n.At.Filename, n.At.Start.Line)
			}
			s.out.WriteByte('\n')
		}
	}
}

func (s *scenario) changes(p *plan.Plan) {
	for _, c := range p.Changes {
		if c.Op == plan.NoOp && !c.Moved() && c.Import == nil {
			continue
		}
		fmt.Fprintf(&s.out, "%s %s", c.Op, c.Addr)
		if c.Moved() {
			fmt.Fprintf(&s.out, " from %s", c.Prev)
		}
		if c.Reason != "" {
			fmt.Fprintf(&s.out, " (%s)", c.Reason)
		}
		s.out.WriteByte('\n')
	}
	for _, d := range p.Deferred {
		fmt.Fprintf(&s.out, "deferred %s (%s) at %s:%d for %s\n", d.Addr, d.Reason, d.At.Filename, d.At.Start.Line, strings.Join(d.Variables, ", "))
	}
	for _, o := range p.Outputs {
		if o.Op != plan.NoOp {
			fmt.Fprintf(&s.out, "%s output %s\n", o.Op, o.Name)
		}
	}
}

var stepNames = map[plan.Kind]string{
	plan.StepJoin: "join", plan.StepCreate: "create", plan.StepUpdate: "update", plan.StepRead: "read",
	plan.StepDelete: "delete", plan.StepDeleteDeposed: "delete deposed", plan.StepForget: "forget", plan.StepNoOp: "store", plan.StepCheck: "check",
}

func (s *scenario) actions(p *plan.Plan) {
	for i, a := range p.Actions {
		fmt.Fprintf(&s.out, "  %d: %s", i, stepNames[a.Kind])
		if a.Change >= 0 {
			fmt.Fprintf(&s.out, " %s", p.Changes[a.Change].Addr)
		}
		if len(a.Needs) > 0 {
			fmt.Fprintf(&s.out, " after %v", a.Needs)
		}
		s.out.WriteByte('\n')
	}
}

var deposedKey = regexp.MustCompile(`deposed object [0-9a-f]{8}`)

func (s *scenario) write(name string, ar *txtar.Archive) {
	out := deposedKey.ReplaceAll(s.out.Bytes(), []byte("deposed object KEY"))
	for i := range ar.Files {
		if ar.Files[i].Name == "want" {
			ar.Files = append(ar.Files[:i], ar.Files[i+1:]...)
			break
		}
	}
	ar.Files = append(ar.Files, txtar.File{Name: "want", Data: out})
	if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
		s.t.Fatal(err)
	}
}
