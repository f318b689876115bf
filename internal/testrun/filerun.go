package testrun

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/testrun/mock"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"

	"sync"
)

// A fileRun is the execution of one test file.
type fileRun struct {
	*Suite
	file   *testfile.File
	result *Result

	mu      sync.Mutex
	states  map[string]*testState
	order   []string             // keys of states in the order of their last use
	outputs map[string]cty.Value // outputs of finished runs, by name

	cleaning bool // only the states of earlier tests are cleaned up; see Suite.Cleanup
	only     bool // kept objects are not destroyed when cleaning
}

// A testState is a state that runs share.
type testState struct {
	now     *state.State
	last    *step             // last run that used the state
	objects mock.Objects      // mocked objects in the state
	held    Held              // stores the state; nil as long as the state is only in memory
	backend *testfile.Backend // contains the state; nil if there is none
}

// run executes the runs of the file in their order, and then destroys their objects.
func (f *fileRun) run(ctx context.Context) {
	res := f.result
	for _, r := range f.file.Runs {
		res.Runs = append(res.Runs, &RunResult{Run: r, Status: Pending})
	}
	broken := false
	for at := 0; at < len(res.Runs); {
		n := f.together(at)
		group := res.Runs[at : at+n]
		at += n
		if broken || f.stopped() {
			for _, r := range group {
				r.Status = Skip
			}
			continue
		}
		parallel.Each(n, n, func(i int) { f.step(ctx, group[i]) })
		for _, r := range group {
			broken = broken || r.Status == Error
		}
	}
	for _, r := range res.Runs {
		res.Status = res.Status.Worse(r.Status)
	}
	f.cleanup(ctx)
}

func (f *fileRun) stopped() bool {
	select {
	case <-f.Stop:
		return true
	default:
		return false
	}
}

// together returns the number of consecutive runs that may be executed concurrently, starting at
// an index: runs that are parallel, use different states, and do not refer to each other.
func (f *fileRun) together(at int) int {
	runs := f.file.Runs[at:]
	if !f.parallel(runs[0]) {
		return 1
	}
	keys, names := map[string]bool{}, map[string]bool{}
	for n, r := range runs {
		key := r.State()
		if !f.parallel(r) || keys[key] || f.refersTo(r, names) {
			return n
		}
		keys[key], names[r.Name] = true, true
	}
	return len(runs)
}

func (f *fileRun) parallel(r *testfile.Run) bool {
	if r.Parallel != nil {
		return *r.Parallel
	}
	return f.file.Parallel
}

// refersTo reports whether a run refers to any of the named runs.
func (f *fileRun) refersTo(r *testfile.Run, names map[string]bool) bool {
	refers := func(x hcl.Expression) bool {
		return x != nil && slices.ContainsFunc(x.Variables(), func(ref hcl.Traversal) bool {
			return ref.RootName() == "run" && len(ref) > 1 && names[addr.StepName(ref[1])]
		})
	}
	for _, vars := range []testfile.Variables{r.Variables, f.file.Variables} {
		for _, a := range vars {
			if refers(a.Expr) {
				return true
			}
		}
	}
	for _, a := range r.Asserts {
		if refers(a.Condition) || refers(a.ErrorMessage) {
			return true
		}
	}
	bodies := []hcl.Body{}
	if r.Backend != nil {
		bodies = append(bodies, r.Backend.Body)
	}
	for _, p := range f.file.Providers {
		bodies = append(bodies, p.Body)
	}
	for _, b := range bodies {
		found := false
		config.Expressions(b, func(x hcl.Expression) { found = found || refers(x) })
		if found {
			return true
		}
	}
	return false
}

// A step is the execution of one run.
type step struct {
	*fileRun
	run   *testfile.Run
	res   *RunResult
	e     *engine.Engine
	given map[string]engine.InputValue // values of the variables that the module declares
	scope *scope
	rules *mock.Rules
}

// step executes one run.
func (f *fileRun) step(ctx context.Context, res *RunResult) {
	begin := f.Engine.Now()
	s := &step{fileRun: f, run: res.Run, res: res}
	res.Diags = s.do(ctx)
	res.Elapsed = f.Engine.Now().Sub(begin)
	if res.Status == Pending {
		res.Status = Pass
		if res.Diags.HasErrors() {
			res.Status = Error
		}
	}
	if s.e != nil {
		f.use(s)
	}
}

// use records that a run was the last that used its state.
func (f *fileRun) use(s *step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := s.run.State()
	st := f.states[key]
	if st == nil {
		s.e.Close()
		return
	}
	if st.last != nil && !f.Keep {
		st.last.e.Close()
	}
	st.last = s
	f.order = append(slices.DeleteFunc(f.order, func(k string) bool { return k == key }), key)
}

// state returns the state with which the run begins.
func (f *fileRun) state(r *testfile.Run) *testState {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := r.State()
	if f.states[key] == nil {
		f.states[key] = &testState{now: state.New()}
	}
	return f.states[key]
}

// do plans, applies and evaluates assertions.
func (s *step) do(ctx context.Context) diag.List {
	expected, ds := readExpected(s.run)
	if ds.HasErrors() {
		return ds
	}
	more := s.prepare(ctx)
	if ds = append(ds, more...); more.HasErrors() {
		return expected.judge(s, ds)
	}
	o := engine.PlanOptions{Options: plan.Options{SkipRefresh: s.run.NoRefresh}, Variables: s.given, Stop: s.Stop}
	if s.run.RefreshOnly {
		o.Mode = plan.RefreshOnly
	}
	for _, t := range s.run.Targets {
		target, err := addr.TargetFromTraversal(t)
		if err != nil {
			at := t.SourceRange()
			return append(ds, diag.Errorf(diag.CodeTestFile, &at, "Invalid target", "%s.", err)...)
		}
		o.Targets = append(o.Targets, target)
	}
	for _, t := range s.run.Replace {
		target, err := addr.TargetFromTraversal(t)
		if err != nil || target.IsModule() {
			at := t.SourceRange()
			return append(ds, diag.Errorf(diag.CodeTestFile, &at, "Invalid replace address", "A resource instance is needed here.")...)
		}
		o.Replace = append(o.Replace, target.Instance())
	}
	st := s.state(s.run)
	if s.run.Backend != nil && st.held == nil {
		st.backend = s.run.Backend
		if more := s.take(ctx, st); more.HasErrors() {
			return append(ds, more...)
		}
	}
	p, more := s.e.Plan(ctx, st.now, o)
	ds = append(ds, more...)
	s.res.Plan = p
	if s.run.Command == testfile.Plan || !ds.HasErrors() { // failures that prevent the apply cannot be expected of it
		ds = expected.filter(ds)
	}
	if p.Errored || ds.HasErrors() {
		return expected.judge(s, ds)
	}
	in := engine.InspectOptions{Variables: s.given, Plan: p, Names: s.scope.resolve}
	if s.run.Command == testfile.Apply {
		expected.reopen() // only failures of the apply count
		if st.held == nil && s.lasting() {
			if more := s.take(ctx, st); more.HasErrors() {
				return append(ds, more...)
			}
		}
		got, more := s.e.Apply(ctx, p, engine.ApplyOptions{Variables: s.given, Stop: s.Stop, State: st.manager()})
		st.now, s.res.State, s.res.Plan = got.State, got.State, nil
		more = expected.filter(more)
		ds = append(slices.DeleteFunc(ds, func(m *diag.Message) bool { return isCheck(m) || m.Code == engine.CodeCheckOpen }), more...)
		if more.HasErrors() || expected.stopped {
			return expected.judge(s, ds)
		}
		ds = append(ds, engine.Incomplete(p)...)
		in.Plan, in.State = nil, got.State
	}
	ds = unexpectedChecks(ds)
	look, more := s.e.Inspect(ctx, in)
	if ds = append(ds, more...); more.HasErrors() || look == nil {
		return ds
	}
	s.keepOutputs(look)
	ds = s.assert(look, ds)
	return expected.judge(s, ds)
}

// manager returns the manager that stores the state during an apply; nil if the state is only in
// memory.
func (st *testState) manager() state.Manager {
	if st.held == nil {
		return nil
	}
	return st.held
}

// take opens the stored state of the run.
func (s *step) take(ctx context.Context, st *testState) diag.List {
	look, ds := s.plain[rootOf(s.file, s.run)].e.Inspect(ctx, engine.InspectOptions{Variables: s.given, Names: s.scope.resolve})
	if look == nil || ds.HasErrors() {
		return ds
	}
	held, more := s.Program.Take(ctx, s.file, s.run, look.Value)
	if ds = append(ds, more...); held == nil {
		return ds
	}
	st.held = held
	if now := held.Current(); now != nil {
		st.now = now
	}
	return ds
}

// lasting reports whether an apply of the run can create objects outside of this process: with a
// provider that is not mocked, or with provisioners.
func (s *step) lasting() bool {
	for a := range s.e.Requirements() {
		if !a.IsBuiltIn() && !s.mockedProvider(a) {
			return true
		}
	}
	found := false
	s.e.Tree().Walk(func(n *config.Node) {
		for _, r := range n.Config.Resources {
			found = found || len(r.Provisioners) > 0 && !s.mockedProvider(n.Config.Source(r.LocalProvider()))
		}
	})
	return found
}

// mockedProvider reports whether the run mocks a provider.
func (s *step) mockedProvider(a addr.Provider) bool {
	for c := range s.rules.Configs {
		if c.Provider == a {
			return true
		}
	}
	return false
}

// keepOutputs stores the outputs for later runs. Unknown outputs are unknown there too.
func (s *step) keepOutputs(look *engine.Inspection) {
	vals := map[string]cty.Value{}
	for name := range s.e.Root().Outputs {
		v, _ := look.Output(name)
		vals[name] = v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outputs[s.run.Name] = cty.ObjectVal(vals)
}

// assert evaluates the assertions.
func (s *step) assert(look *engine.Inspection, ds diag.List) diag.List {
	for _, a := range s.run.Asserts {
		verdict, more := look.Condition("Test assertion", a)
		at := a.Condition.Range()
		switch {
		case verdict == engine.Undecided:
			s.res.Status = Error
			more = append(more, diag.Errorf(diag.CodeTestAssertion, &at, "Unknown condition run", "Condition expression could not be evaluated at this time.")...)
		case verdict == engine.Broken:
			s.res.Status = s.res.Status.Worse(Fail)
		case verdict == engine.Invalid || more.HasErrors():
			s.res.Status = Error
		}
		ds = append(ds, more...)
	}
	return ds
}

// cleanup destroys the objects of the runs, starting with the state that was used last.
func (f *fileRun) cleanup(ctx context.Context) {
	for _, key := range slices.Backward(f.order) {
		st := f.states[key]
		s := st.last
		if st.now == nil || len(st.now.Resources) == 0 {
			continue
		}
		c := &Cleanup{Run: s.run, Backend: st.backend, Stored: st.held != nil}
		if st.held != nil {
			if stored := st.held.Current(); stored != nil {
				c.Lineage = stored.Lineage // states of applies have none
			}
		}
		f.result.Cleanup = append(f.result.Cleanup, c)
		keep := f.file.SkipCleanup || st.backend != nil
		if s.run.SkipCleanup != nil {
			keep = *s.run.SkipCleanup
		}
		if keep && (!f.cleaning || f.only) {
			c.Left, c.Kept = st.now, true
			continue
		}
		p, ds := s.e.Plan(ctx, st.now, engine.PlanOptions{Options: plan.Options{Mode: plan.Destroy}, Variables: s.given, IgnorePreventDestroy: true})
		c.Diags = ds
		if !ds.HasErrors() {
			got, more := s.e.Apply(ctx, p, engine.ApplyOptions{Variables: s.given, State: st.manager()})
			st.now, c.Destroyed = got.State, got.Counts.Destroy
			c.Diags = append(c.Diags, more...)
		}
		if len(st.now.Resources) > 0 {
			c.Left = st.now.WithMeta(c.Lineage, st.now.Serial, st.now.TerraformVersion)
		}
		c.Diags = c.Diags.Errors()
	}
}

// close closes the engines of the runs, and releases their states.
func (f *fileRun) close() (ds diag.List) {
	for _, key := range slices.Sorted(maps.Keys(f.states)) {
		if st := f.states[key]; st.held != nil {
			ds = append(ds, st.held.Release(st.now == nil || len(st.now.Resources) == 0)...)
		}
	}
	for _, st := range f.states {
		if st.last != nil {
			st.last.e.Close()
		}
	}
	for _, r := range f.result.Runs {
		if r.Engine != nil {
			r.Engine.Close()
		}
	}
	return ds
}

// sortedVariables returns the names of variables in the order of their evaluation.
func sortedVariables(v testfile.Variables) []string { return slices.Sorted(maps.Keys(v)) }
