// Package apply carries out a plan: it runs the plan's actions in the order of their needs, and
// computes the new state.
//
// Main types: Input and Result. The one rule: a provider's response is written to the journal
// before it is reported, and before any action that depends on it starts.
package apply

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/apply/provision"
	"github.com/terrace-iac/terrace/internal/plan/checks"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Input contains everything that an apply needs.
type Input struct {
	Plan         *plan.Plan
	Eval         eval.Options // the workspace is that of the plan; apply sets the phase
	Providers    resourceclient.Options
	State        state.Manager   // nil means none; the caller starts and ends it
	Every        time.Duration   // shortest interval between writes of the whole state; 0 means 20 s
	Stop         <-chan struct{} // when closed, no further action starts
	Now          func() time.Time
	Provisioners provision.Types // nil means that provisioners are errors
	// ShowSensitive shows the output of provisioners whose configuration contains secrets.
	ShowSensitive bool
}

// A Result is the result of an apply.
type Result struct {
	State     *state.State
	Counts    plan.Counts
	Stopped   bool                                 // some actions were not carried out because of Stop
	Providers map[addr.ProviderConfig]state.Digest // digests of the provider configurations
}

// applier is one run. As the phase it returns new values.
type applier struct {
	in      Input
	ctx     context.Context
	graph   *demand.Graph
	ev      *eval.Evaluator
	before  func() *plannedEvaluation
	client  *resourceclient.Client
	ops     *resourceclient.Operations
	runner  *provision.Runner
	made    map[addr.Instance]int    // index of the change that produces an instance
	later   func(addr.Instance) bool // reports whether the plan defers an instance
	certain map[addr.Instance]bool   // instances that a plan with deferred objects contains

	ephemeral func() bool // whether the configuration has ephemeral resources

	mu sync.Mutex
	ledger
}

// ledger records the results of a run's actions. The lock of the run protects it.
type ledger struct {
	draft   *state.Draft
	frozen  *state.State                // snapshot of draft; nil after a change
	values  map[addr.Instance]cty.Value // new values of instances, with marks
	tainted map[addr.Instance]cty.Value // planned values of incomplete new objects
	failed  map[addr.Instance]bool
	unread  map[addr.Instance]string // data sources of checks that could not be read, with the reason
	deposed map[int]addr.DeposedKey  // index of a change to the key of its deposed object
	left    int                      // number of actions that were never started although the run was not stopped
	result  Result
	outcome []checks.Result
	dead    error // the journal cannot be written, so that no further action may start
}

// Run carries out a plan. The state in the result is never nil. With errors, it contains all changes
// that are known to have happened.
func Run(ctx context.Context, in Input) (Result, diag.List) {
	provisioning, end := untilStopped(ctx, in.Stop)
	defer end()
	a := newApplier(ctx, provisioning, in)
	if ds := a.startJournal(); ds.HasErrors() {
		a.result.State = in.Plan.Prior
		return a.result, ds
	}
	stop := a.background()
	a.schedule()
	stop()
	a.finish()
	closing := a.client.Close()
	a.result.Providers = a.client.Digests()
	a.result.State = a.snapshot()
	ds := append(a.needed(a.graph.Diags()), closing...).Sort()
	if !ds.HasErrors() && !a.result.Stopped && a.dead == nil {
		ds = append(ds, a.undone()...)
	}
	if a.dead != nil {
		ds = append(ds, diag.Errorf(diag.CodeJournalFiles, nil, "Failed to write the journal", "Terrace stopped starting operations because it could not record what it was about to do: %s.", a.dead)...)
	}
	return a.result, ds
}

// needed removes configuration errors from the messages of a destroy that carried out its whole
// plan, since the plan reported them as warnings. A destroy uses the block of an object if
// there is one, but does not require it.
func (a *applier) needed(ds diag.List) diag.List {
	if a.in.Plan.Mode != plan.Destroy || a.anyFailed() || a.left > 0 || a.dead != nil {
		return ds
	}
	return slices.DeleteFunc(ds, func(m *diag.Message) bool {
		return m.Severity == diag.Error && m.At != nil && m.Address == ""
	})
}

// undone returns an error if an action was not carried out without any other error, so that an
// incomplete apply never ends successfully.
func (a *applier) undone() diag.List {
	if len(a.failed) == 0 && a.left == 0 {
		return nil
	}
	names := make([]string, 0, len(a.failed))
	for i := range a.failed {
		names = append(names, i.String())
	}
	slices.Sort(names)
	what := "operations of the plan"
	if len(names) > 0 {
		what = strings.Join(names[:min(len(names), 20)], ", ")
	}
	return diag.Errorf(diag.CodeApplyNotDone, nil, "Operations were not carried out", "The plan was not carried out as a whole, and nothing says why: %s. What was done is in state. This is a bug in Terrace; plan again to see what is left.", what)
}

func newApplier(ctx, provisioning context.Context, in Input) *applier {
	if in.Providers.Parallelism < 1 {
		in.Providers.Parallelism = 10
	}
	if in.Every == 0 {
		in.Every = 20 * time.Second
	}
	a := &applier{in: in, ctx: ctx, graph: &demand.Graph{}, client: resourceclient.New(ctx, in.Providers), made: map[addr.Instance]int{}, later: plan.DeferredInstances(in.Plan.Deferred)}
	a.ledger = ledger{
		draft: in.Plan.Prior.Edit(), values: map[addr.Instance]cty.Value{}, tainted: map[addr.Instance]cty.Value{}, failed: map[addr.Instance]bool{},
		deposed: map[int]addr.DeposedKey{}, unread: map[addr.Instance]string{},
	}
	if len(in.Plan.Deferred) > 0 {
		a.certain = make(map[addr.Instance]bool, len(in.Plan.Changes))
		for _, c := range in.Plan.Changes {
			a.certain[c.Addr] = true
		}
		in.Eval.Postponed = postponed(in.Plan)
		a.in = in
	}
	a.ops = a.client.Operations(in.Now)
	o := in.Eval
	o.Phase, o.Workspace, o.Applying = phase{a.client, a.value}, in.Plan.Workspace, true
	switch {
	case in.Plan.Mode == plan.RefreshOnly:
		o.Exists, o.Kept, o.Lenient = a.inState, a.notWanted, true
	case len(in.Plan.Targets)+len(in.Plan.Excludes) > 0 && in.Plan.Mode == plan.Normal:
		o.Exists = a.here
	}
	a.ev = eval.New(a.graph, o)
	a.before = a.newPlannedEvaluation(o)
	a.ephemeral = sync.OnceValue(func() bool { return hasEphemeral(o.Tree) })
	a.runner = provision.New(provisioning, in.Provisioners, in.Providers.Observe, a.ev, in.ShowSensitive)
	for _, act := range in.Plan.Actions {
		switch act.Kind {
		case plan.StepCreate, plan.StepUpdate, plan.StepRead, plan.StepNoOp, plan.StepCheck:
			a.made[in.Plan.Changes[act.Change].Addr] = act.Change
		}
	}
	return a
}

// postponed returns the function Postponed of the evaluation for a plan with deferred objects.
func postponed(p *plan.Plan) func(string) func(string) bool {
	blocks, instances := map[string]bool{}, map[string]bool{}
	for _, d := range p.Deferred {
		if d.Reason == plan.InstancesUnknown {
			blocks[d.Addr] = true
		}
	}
	for _, c := range p.Changes {
		instances[c.Addr.String()] = true
	}
	for _, m := range p.Modules {
		instances[string(m.Addr)] = true
	}
	planned := func(instance string) bool { return instances[instance] }
	return func(block string) func(string) bool {
		if blocks[block] {
			return planned
		}
		return nil
	}
}

// startJournal records the changes of moves and refresh, because the journal starts from the
// state in the store.
func (a *applier) startJournal() diag.List {
	if a.in.State == nil {
		return nil
	}
	prev := a.in.Plan.PrevRun
	if prev == nil {
		prev = state.New()
	}
	changes := state.Diff(prev, a.in.Plan.Prior)
	if len(changes) == 0 {
		return nil
	}
	if err := a.in.State.Answer(-1, changes); err != nil {
		return diag.Errorf(diag.CodeJournalFiles, nil, "Failed to write the journal", "Nothing was applied, because Terrace could not record what it was about to do: %s. Check that the directory of the state can be written and that the disk is not full.", err)
	}
	return nil
}

// change records the result of an action in the journal and in state.
func (a *applier) change(id int, changes ...state.Change) {
	if a.in.State != nil {
		if err := a.in.State.Answer(id, changes); err != nil {
			a.die(err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draft == nil {
		a.draft = a.frozen.Edit()
	}
	for _, c := range changes {
		a.draft.Apply(c)
	}
	a.frozen = nil
}

// die records that the journal cannot be written. No further action starts.
func (a *applier) die(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dead = err
}

// snapshot returns the current state.
func (a *applier) snapshot() *state.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.frozen == nil {
		a.frozen = a.draft.Freeze()
		a.draft = nil
	}
	return a.frozen
}

// background starts the progress reports of long operations and the periodic writes of state.
// The returned function ends both and waits for them.
func (a *applier) background() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { // owned by Run, which waits for it
		defer wg.Done()
		beat := time.NewTicker(time.Second)
		defer beat.Stop()
		last, pause := a.in.Now(), a.in.Every
		for {
			select {
			case <-done:
				return
			case <-beat.C:
			}
			a.ops.Beat()
			if begun := a.in.Now(); a.in.State != nil && begun.Sub(last) >= pause {
				a.graph.Report(a.in.State.Write(a.ctx, a.snapshot()))
				last = a.in.Now()
				pause = pauseAfter(a.in.Every, last.Sub(begun))
			}
		}
	}()
	return func() {
		close(done)
		wg.Wait()
	}
}

// pauseAfter returns the time until the next write of the whole state, after a write that took
// the given time. At most a twentieth of an apply is spent on writes: without this limit their
// total time would grow with the square of the number of objects, because both the size of the
// state and the duration of the apply grow with it.
func pauseAfter(every, took time.Duration) time.Duration { return max(every, 20*took) }

// finish evaluates the root outputs and checks at the end.
func (a *applier) finish() {
	t := a.graph.Task(a.ctx)
	a.mu.Lock()
	if a.draft == nil {
		a.draft = a.frozen.Edit()
		a.frozen = nil
	}
	draft := a.draft
	a.mu.Unlock()
	left := a.leftBehind(draft)
	for _, o := range a.in.Plan.Outputs {
		if o.Op == plan.NoOp {
			continue
		}
		if o.Op == plan.Delete {
			if a.in.Plan.Mode != plan.Destroy || !left(o.Name) {
				draft.SetOutput(o.Name, nil)
			}
			continue
		}
		v, ok := a.ev.Root.Output(t, o.Name)
		if !ok || !v.IsWhollyKnown() && a.in.Plan.Mode != plan.RefreshOnly {
			continue
		}
		plain, sensitive := resourceclient.Plain(v)
		if a.in.Plan.Mode == plan.RefreshOnly {
			if !plain.IsWhollyKnown() && a.refused(o.Name) {
				continue
			}
			plain = cty.UnknownAsNull(plain) // it reads objects that were destroyed or not created
		}
		if plain.IsNull() {
			if v.IsKnown() {
				draft.SetOutput(o.Name, nil)
				continue
			}
			plain = cty.NullVal(v.Type()) // a null of this type is kept, as in OpenTofu
		}
		draft.SetOutput(o.Name, &state.Output{Value: plain, Sensitive: o.AfterSensitive || sensitive, Deprecated: o.Deprecated})
	}
	if a.in.Plan.Mode == plan.Destroy {
		draft.SetChecks(a.in.Plan.Checks)
		a.dropData(draft)
		return
	}
	results := a.in.Plan.Checks
	if a.in.Plan.Mode == plan.Normal {
		results = checks.Merge(results, append(a.outcome, a.checked(t)...))
	}
	draft.SetChecks(results)
}

// refused reports whether a precondition failed for an output, or for an output that it reads.
// Such an output keeps its old value if its value is unknown.
func (a *applier) refused(output string) bool {
	failed := a.ev.RefusedOutputs()
	seen := map[*demand.Node]bool{}
	for stack := []*demand.Node{a.ev.Root.OutputNode(output)}; len(failed) > 0 && len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[n] {
			continue
		}
		if seen[n] = true; failed[n] {
			return true
		}
		for _, r := range n.Reads() {
			stack = append(stack, r.Node)
		}
	}
	return false
}

// leftBehind returns a test whether an output reads objects that a destroy could not destroy.
// Such outputs are kept, since the rest of the destroy may need them.
func (a *applier) leftBehind(draft *state.Draft) func(output string) bool {
	if a.in.Plan.Mode != plan.Destroy || !a.anyFailed() {
		return func(string) bool { return false }
	}
	there := map[addr.ConfigResource]bool{}
	for i := range a.in.Plan.Prior.Instances() {
		if _, _, ok := draft.Object(addr.Object{Instance: i}); ok && i.Resource.Mode == addr.Managed {
			there[i.Config()] = true
		}
	}
	reads := eval.StaticOutputs(a.in.Eval.Tree)
	return func(output string) bool {
		return slices.ContainsFunc(reads(output), func(r addr.ConfigResource) bool { return there[r] })
	}
}

// checked returns the results of all conditions that are not part of resources. With targets or
// exclusions nothing is evaluated for that.
func (a *applier) checked(t *demand.Task) []checks.Result {
	if len(a.in.Plan.Targets)+len(a.in.Plan.Excludes) > 0 {
		return checks.Values(a.ev)
	}
	out, ds := checks.Run(t, a.ev, a.checkData)
	a.graph.Report(ds)
	return out
}

// checkData returns the result of reading the data source of a check. If the data source was
// not part of the apply and is not in state, it could not be read while planning, and the
// plan's result is used.
func (a *applier) checkData(d *eval.Desired) (failure string, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, planned := a.made[d.Addr()]
	_, _, stored := a.in.Plan.Prior.Object(addr.Object{Instance: d.Addr()})
	return a.unread[d.Addr()], planned || stored
}

// dropData removes data sources from state when everything else is destroyed. It keeps excluded
// data sources, and those that a remaining object depends on.
func (a *applier) dropData(draft *state.Draft) {
	if a.anyFailed() {
		return
	}
	p := a.in.Plan
	read := map[addr.ConfigResource]bool{}
	if len(p.Excludes) > 0 {
		for o, obj := range p.Prior.Objects() {
			if _, _, stays := draft.Object(o); stays {
				for _, dep := range obj.Dependencies {
					read[dep] = true
				}
			}
		}
	}
	for _, r := range p.Prior.Sorted() {
		if r.Addr.Resource.Mode != addr.Data {
			continue
		}
		for _, k := range r.Keys() {
			i := r.Addr.Instance(k)
			named := func(t addr.Target) bool { return t.Contains(i) }
			if read[i.Config()] || slices.ContainsFunc(p.Excludes, named) || len(p.Targets) > 0 && !slices.ContainsFunc(p.Targets, named) {
				continue
			}
			draft.Apply(state.Change{Object: addr.Object{Instance: i}, Provider: r.Config(r.Instances[k])})
		}
	}
}

func (a *applier) anyFailed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.failed) > 0 || a.result.Stopped
}

// untilStopped returns a context that is cancelled with ctx, when stop is closed, or when end
// is called. Provisioners use it, because unlike provider calls they may wait forever for their
// command.
func untilStopped(ctx context.Context, stop <-chan struct{}) (within context.Context, end context.CancelFunc) {
	within, end = context.WithCancel(ctx)
	if stop != nil {
		go func() { // runs until end is called
			defer end()
			select {
			case <-stop:
			case <-within.Done():
			}
		}()
	}
	return within, end
}
