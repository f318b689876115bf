// Package estatetest runs tests of an estate. It plans or applies units in one process, with
// mocks of all providers and states in memory, and evaluates assertions about the results.
//
// Main types: Test, one test file, and Result. The one rule: nothing outside of the process
// changes except snapshot files, and these only on request.
package estatetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/textdiff"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/mock"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A Test is a test file. All fields are set before Run.
type Test struct {
	File *testfile.Estate
	// Functions contains the functions of the configuration language.
	Functions map[string]function.Function
	Program   Program
	Keep      bool // write snapshots; otherwise plans are compared with stored snapshots
	Now       func() time.Time
	Stop      <-chan struct{}
}

// A Program is the program that runs a Test.
type Program interface {
	// Options returns the options of the estate for a command and filters, with a directory for
	// Throwaway. The test replaces providers by mocks and skips hooks in any case.
	Options(command string, filters []string) (estate.Options, diag.List)
	// Render returns the text of a unit's plan for snapshots.
	Render(ctx context.Context, e *engine.Engine, p *plan.Plan) string
	// Snapshot returns the stored snapshot with a name; ok is false if there is none.
	Snapshot(name string) (text string, ok bool)
	// Write writes a snapshot.
	Write(name, text string) error
}

// A Result is the result of a run.
type Result struct {
	Run     *testfile.EstateRun
	Status  testrun.Status
	Diags   diag.List
	Of      []*estate.Result // results of units; some contain messages with their own source text
	Estate  *estate.Estate
	Elapsed time.Duration
}

// Run executes the runs of the file, which share their states. tell is called with each result
// while its estate is open.
func (x *Test) Run(ctx context.Context, tell func(*Result)) []*Result {
	shared := &mocks{made: map[string]*mock.Objects{}}
	defer shared.Close()
	rules, ds := x.rules()
	var out []*Result
	broken := false
	for _, r := range x.File.Runs {
		res := &Result{Run: r, Status: testrun.Skip}
		out = append(out, res)
		if !broken {
			begin := x.Now()
			res.Status, res.Diags = testrun.Pass, ds
			if !ds.HasErrors() {
				x.one(ctx, res, shared, rules)
			}
			res.Elapsed = x.Now().Sub(begin)
			if res.Status == testrun.Pass && res.Diags.HasErrors() {
				res.Status = testrun.Error
			}
			broken = res.Status == testrun.Error
		}
		tell(res)
		if res.Estate != nil {
			res.Estate.Close(ctx)
		}
	}
	return out
}

// mocks contains the mocks that all units share, and the mocked objects in the state of each
// unit, by its working directory.
type mocks struct {
	mock.Shared
	mu   sync.Mutex
	made map[string]*mock.Objects
}

// ruledMocks are the mocks of a run.
type ruledMocks struct {
	*mocks
	rules *mock.Rules
}

// Decorate implements run.Mocks.
func (m ruledMocks) Decorate(dir string) func(addr.Provider, provider.Factory) provider.Factory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made[dir] == nil {
		m.made[dir] = &mock.Objects{}
	}
	of := *m.rules
	of.Objects = m.made[dir]
	return m.Shared.Decorate(&of)
}

// Provisioners implements run.Mocks.
func (ruledMocks) Provisioners(p engine.Provisioners) engine.Provisioners { return silent{p} }

// rules returns the rules of the mocks: every provider is mocked, with the values in the file.
func (x *Test) rules() (*mock.Rules, diag.List) {
	var ds diag.List
	values := func(v testfile.Values, later bool) mock.Values {
		out := mock.Values{At: &v.At, AtApply: later}
		if v.AtApply != nil {
			out.AtApply = *v.AtApply
		}
		if v.Value != nil {
			got, diags := v.Value.Value(&hcl.EvalContext{Functions: x.Functions})
			ds = append(ds, diag.FromHCL(diags)...)
			out.Value = got
		}
		return out
	}
	rules := &mock.Rules{Named: map[string]*mock.Config{"": {AtApply: true}}}
	for _, key := range slices.Sorted(maps.Keys(x.File.Providers)) {
		m := x.File.Providers[key].Mock
		later := m.AtApply == nil || *m.AtApply // outputs are unknown until apply, as in a real run
		c := &mock.Config{Resources: map[string]mock.Values{}, Data: map[string]mock.Values{}, AtApply: later}
		for typ, v := range m.Resources {
			c.Resources[typ] = values(*v, later)
		}
		for typ, v := range m.Data {
			c.Data[typ] = values(*v, later)
		}
		for _, o := range m.Overrides {
			c.Overrides = append(c.Overrides, mock.Override{Target: o.Target, Values: values(o.Values, later)})
		}
		rules.Named[key] = c
	}
	for _, o := range x.File.Overrides {
		rules.Overrides = append(rules.Overrides, mock.Override{Target: o.Target, Values: values(o.Values, true)})
	}
	return rules, ds
}

// A recorder records the results to which the assertions of a run refer.
type recorder struct {
	estate.Silent
	ctx      context.Context
	x        *Test
	snapshot bool
	seen     *seen
}

func (r recorder) Planned(u *estate.Unit, eng *engine.Engine, p *plan.Plan) {
	f := &found{inputs: p.Variables, changes: changes(p), outputs: map[string]cty.Value{}, counts: p.Counts()}
	for _, c := range p.Outputs {
		f.outputs[c.Name] = secret(c.After, c.AfterSensitive)
	}
	if r.snapshot {
		f.text = r.x.Program.Render(r.ctx, eng, p)
	}
	r.seen.put(u.Name, f)
}

func (r recorder) Applied(res *estate.Result, st *state.State) {
	if st != nil {
		r.seen.applied(res.Unit.Name, st)
	}
}

// one executes one run.
func (x *Test) one(ctx context.Context, res *Result, shared *mocks, rules *mock.Rules) {
	command, op := "plan", estate.Plan
	if res.Run.Command == testfile.Apply {
		command, op = "apply", estate.Apply
	}
	o, ds := x.Program.Options(command, res.Run.Filters)
	if res.Diags = append(res.Diags, ds.Errors()...); ds.HasErrors() {
		return
	}
	o.Skip.Hooks = true
	o.Host.Mocks = ruledMocks{shared, rules}
	e, ds := estate.Open(ctx, o)
	res.Estate = e
	if res.Diags = append(res.Diags, ds.Errors()...); ds.HasErrors() {
		return
	}
	seen := &seen{units: map[string]*found{}}
	res.Of = e.Run(ctx, estate.RunOptions{Op: op, Stop: x.Stop, DropPlans: true, Observe: recorder{ctx: ctx, x: x, snapshot: res.Run.Snapshot, seen: seen}})
	for _, r := range res.Of {
		if r.Status == estate.Failed && r.Diags.HasErrors() {
			res.Status = testrun.Error
		}
	}
	if res.Status == testrun.Error {
		return
	}
	x.assert(ctx, res, seen)
	if res.Run.Snapshot {
		x.compare(res, seen)
	}
}

// seen contains the results of all units.
type seen struct {
	mu    sync.Mutex
	units map[string]*found
}

// found is the result of one unit.
type found struct {
	inputs  map[string]cty.Value
	outputs map[string]cty.Value
	changes map[string]cty.Value
	counts  plan.Counts
	text    string
}

func (s *seen) put(name string, f *found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units[name] = f
}

// applied replaces planned outputs by those of the state after the apply.
func (s *seen) applied(name string, st *state.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.units[name]
	if f == nil {
		return
	}
	f.outputs = map[string]cty.Value{}
	for name, o := range st.Outputs {
		f.outputs[name] = secret(o.Value, o.Sensitive)
	}
}

func secret(v cty.Value, sensitive bool) cty.Value {
	if v == cty.NilVal {
		v = cty.NullVal(cty.DynamicPseudoType)
	}
	if sensitive {
		return v.Mark(value.Sensitive)
	}
	return v
}

// changes returns the changes of a plan by address, without no-ops.
func changes(p *plan.Plan) map[string]cty.Value {
	out := map[string]cty.Value{}
	for _, c := range p.Changes {
		if c.Op == plan.NoOp {
			continue
		}
		out[c.Addr.String()] = cty.ObjectVal(map[string]cty.Value{
			"action": cty.StringVal(opName(c.Op)),
			"reason": cty.StringVal(string(c.Reason)),
			"before": value.MarkPaths(c.Before, value.Sensitive, c.BeforeSensitive...),
			"after":  value.MarkPaths(c.After, value.Sensitive, c.AfterSensitive...),
		})
	}
	return out
}

// opName returns the name of an operation.
func opName(o plan.Op) string {
	switch o {
	case plan.Create:
		return "create"
	case plan.Read:
		return "read"
	case plan.Update:
		return "update"
	case plan.Delete:
		return "delete"
	case plan.Forget:
		return "forget"
	default:
		return "replace"
	}
}

// assert evaluates the assertions of a run.
func (x *Test) assert(ctx context.Context, res *Result, s *seen) {
	all := map[string]cty.Value{}
	var order []cty.Value
	for _, u := range res.Estate.Found.Order(false) {
		order = append(order, cty.StringVal(u.Name))
		f := s.units[u.Name]
		if f == nil {
			f = &found{}
		}
		all[u.Name] = cty.ObjectVal(map[string]cty.Value{
			"inputs": object(f.inputs), "outputs": object(f.outputs), "changes": object(f.changes), "depends_on": texts(res.Estate.Found.NeedNames(u)),
			"excluded": cty.BoolVal(u.Excluded != ""), "add": number(f.counts.Add), "change": number(f.counts.Change), "destroy": number(f.counts.Destroy),
		})
	}
	fns := maps.Clone(x.Functions)
	fns["explain"] = x.explain(ctx, res.Estate)
	ec := &hcl.EvalContext{Functions: fns, Variables: map[string]cty.Value{"unit": cty.ObjectVal(all), "order": list(order)}}
	for _, a := range res.Run.Asserts {
		at := a.Condition.Range()
		v, diags := a.Condition.Value(ec)
		if diags.HasErrors() {
			res.Diags = append(res.Diags, diag.FromHCL(diags)...)
			res.Status = testrun.Error
			continue
		}
		v, _ = v.Unmark()
		switch {
		case !v.IsKnown():
			res.Status = testrun.Error
			res.Diags = append(res.Diags, &diag.Message{Code: diag.CodeTestAssertion, Summary: "Unknown condition run", Detail: "Condition expression could not be evaluated at this time: it depends on values that are known after apply.", At: &at, Values: diag.Explain(a.Condition, ec, true)})
		case v.IsNull() || v.Type() != cty.Bool:
			res.Status = testrun.Error
			res.Diags = append(res.Diags, diag.Errorf(diag.CodeTestCondition, &at, "Invalid condition result", "Condition expression must return either true or false.")...)
		case v.False():
			res.Status = res.Status.Worse(testrun.Fail)
			text, _ := a.ErrorMessage.Value(ec)
			m := &diag.Message{Code: diag.CodeTestAssertion, Summary: "Test assertion failed", At: &at, Values: diag.Explain(a.Condition, ec, true)}
			switch {
			case value.ContainsSecret(text):
				m.Detail = "The error message included a sensitive value, so it will not be displayed."
			case text.Type() == cty.String && text.IsKnown() && !text.IsNull():
				m.Detail = text.AsString()
			default:
				m.Detail = "The error message is no string, or not known."
			}
			res.Diags = append(res.Diags, m)
		}
	}
}

// explain returns the function explain(UNIT, ADDRESS). It returns the source locations that
// contribute to a value; the one that sets it is last.
func (x *Test) explain(ctx context.Context, e *estate.Estate) function.Function {
	step := cty.Object(map[string]cty.Type{"file": cty.String, "line": cty.Number, "text": cty.String})
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "unit", Type: cty.String}, {Name: "address", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Object(map[string]cty.Type{"file": cty.String, "line": cty.Number, "steps": cty.List(step)})),
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			i := slices.IndexFunc(e.Found.Units, func(u *estate.Unit) bool { return u.Name == name })
			if i < 0 {
				return cty.NullVal(ret), function.NewArgErrorf(0, "there is no unit %q in this run", name)
			}
			got, ds := e.Evaluate(e.Found.Units[i], estate.StoredOutputs).ExplainUnit(ctx, args[1].AsString(), nil)
			if ds.HasErrors() {
				return cty.NullVal(ret), function.NewArgErrorf(1, "%s", ds.Err())
			}
			var steps []cty.Value
			last := map[string]cty.Value{"file": cty.StringVal(""), "line": cty.Zero}
			for _, s := range got.Steps {
				if s.At == nil {
					continue
				}
				file := strings.TrimPrefix(strings.TrimPrefix(s.At.File, e.Found.Root()), "/")
				last["file"], last["line"] = cty.StringVal(file), number(s.At.Line)
				steps = append(steps, cty.ObjectVal(map[string]cty.Value{"file": last["file"], "line": last["line"], "text": cty.StringVal(s.Text)}))
			}
			last["steps"] = cty.ListValEmpty(step)
			if len(steps) > 0 {
				last["steps"] = cty.ListVal(steps)
			}
			return cty.ObjectVal(last), nil
		},
	})
}

// compare compares the plan with the snapshot.
func (x *Test) compare(res *Result, s *seen) {
	var b strings.Builder
	for _, u := range res.Estate.Found.Order(false) {
		if f := s.units[u.Name]; f != nil {
			b.WriteString("# " + u.Name + "\n" + strings.TrimRight(f.text, "\n") + "\n\n")
		}
	}
	name := strings.TrimSuffix(x.File.Name, testfile.EstateSuffix) + "." + res.Run.Name + ".snapshot"
	text := strings.TrimRight(b.String(), "\n") + "\n"
	at := res.Run.At
	if x.Keep {
		if err := x.Program.Write(name, text); err != nil {
			res.Diags = append(res.Diags, diag.Errorf(diag.CodeFilesWrite, &at, "Failed to write snapshot", "The snapshot %s cannot be written: %s.", name, err)...)
		}
		return
	}
	kept, ok := x.Program.Snapshot(name)
	switch {
	case !ok:
		res.Status = res.Status.Worse(testrun.Fail)
		res.Diags = append(res.Diags, diag.Errorf(diag.CodeTestSnapshotMissing, &at, "Missing snapshot", "There is no file %s. Run the test with -update-snapshots to write it, and review it.", name)...)
	case kept != text:
		res.Status = res.Status.Worse(testrun.Fail)
		res.Diags = append(res.Diags, diag.Errorf(diag.CodeTestSnapshot, &at, "Plan differs from its snapshot", "The plan is not the one that %s keeps. If it is as it should be, run the test with -update-snapshots and review the file.\n\n%s", name, textdiff.Unified(name, name, []byte(kept), []byte(text)))...)
	}
}

func object(m map[string]cty.Value) cty.Value {
	if len(m) == 0 {
		return cty.EmptyObjectVal
	}
	return cty.ObjectVal(m)
}

func number(n int) cty.Value { return cty.NumberIntVal(int64(n)) }

func texts(names []string) cty.Value {
	out := make([]cty.Value, 0, len(names))
	for _, n := range names {
		out = append(out, cty.StringVal(n))
	}
	return list(out)
}

func list(vals []cty.Value) cty.Value {
	if len(vals) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(vals)
}

// silent is a set of provisioners that run nothing.
type silent struct{ engine.Provisioners }

// Run implements engine.Provisioners.
func (silent) Run(context.Context, string, cty.Value, cty.Value, func(string)) diag.List { return nil }
