// Package apply carries out a plan: it runs the plan's list of actions, each
// after those that it needs, and makes a new state.
//
// Main types: Input and Result. The one rule: what a provider answered is in
// the journal before it is reported and before anything that needs it starts.
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

// Input is what an apply starts from.
type Input struct {
	Plan         *plan.Plan
	Eval         eval.Options // the workspace is the plan's, the phase the apply's
	Providers    resourceclient.Options
	State        state.Manager   // nil: none. It was started, and is ended by the caller
	Every        time.Duration   // 0: 20 s
	Stop         <-chan struct{} // closed: nothing more is started
	Now          func() time.Time
	Provisioners provision.Types // nil: none
}

// A Result is what came of an apply.
type Result struct {
	State     *state.State
	Counts    plan.Counts
	Stopped   bool                                 // whether a stop left actions undone
	Providers map[addr.ProviderConfig]state.Digest // what they were configured with
}

// applier is one run: the phase that answers with new values.
type applier struct {
	in     Input
	ctx    context.Context
	graph  *demand.Graph
	ev     *eval.Evaluator
	before func() *plannedEvaluation
	client *resourceclient.Client
	ops    *resourceclient.Operations
	runner *provision.Runner
	made   map[addr.Instance]int // change that makes an instance

	ephemeral func() bool // whether there are ephemeral resources

	mu sync.Mutex
	ledger
}

// ledger is what the actions of one run have done. It is held by the lock of the run.
type ledger struct {
	draft   *state.Draft
	frozen  *state.State                // of draft, nil after a change
	values  map[addr.Instance]cty.Value // what actions made, with marks
	tainted map[addr.Instance]cty.Value // what the plan knew of new objects that are not whole
	failed  map[addr.Instance]bool
	unread  map[addr.Instance]string // data sources of checks, and why they could not be read
	deposed map[int]addr.DeposedKey  // change to the key that its old object got
	left    int                      // actions that were never started, though nothing stopped the run
	result  Result
	outcome []checks.Result
	dead    error // the journal cannot be written: nothing more may be started
}

// Run carries out a plan. The state in the result is never nil, and with errors
// tells what is known.
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

// needed drops errors in configuration from the messages of a destroy that carried out its
// whole plan: the plan warned of them. What blocks say of an object that is about to be
// destroyed is looked for, and need not be found.
func (a *applier) needed(ds diag.List) diag.List {
	if a.in.Plan.Mode != plan.Destroy || a.anyFailed() || a.left > 0 || a.dead != nil {
		return ds
	}
	return slices.DeleteFunc(ds, func(m *diag.Message) bool {
		return m.Severity == diag.Error && m.At != nil && m.Address == ""
	})
}

// undone is the error that something was not carried out though nothing was found
// wrong, so that no apply ever ends as if it were complete.
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
	a := &applier{in: in, ctx: ctx, graph: &demand.Graph{}, client: resourceclient.New(ctx, in.Providers), made: map[addr.Instance]int{}}
	a.ledger = ledger{
		draft: in.Plan.Prior.Edit(), values: map[addr.Instance]cty.Value{}, tainted: map[addr.Instance]cty.Value{}, failed: map[addr.Instance]bool{},
		deposed: map[int]addr.DeposedKey{}, unread: map[addr.Instance]string{},
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
	a.runner = provision.New(provisioning, in.Provisioners, in.Providers.Observe, a.ev)
	for _, act := range in.Plan.Actions {
		switch act.Kind {
		case plan.StepCreate, plan.StepUpdate, plan.StepRead, plan.StepNoOp, plan.StepCheck:
			a.made[in.Plan.Changes[act.Change].Addr] = act.Change
		}
	}
	return a
}

// startJournal records what moves and refresh changed, since the journal starts
// from state as it lies in the store.
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
		return diag.Errorf(diag.CodeJournalFiles, nil, "Failed to write the journal", "Nothing was applied, because Terrace could not record what it was about to do: %s. Check that the folder of the state can be written and that the disk is not full.", err)
	}
	return nil
}

// change records what an action did, in the journal and in state.
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

// die notes that the journal cannot be written any more: nothing is started then.
func (a *applier) die(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dead = err
}

// snapshot is state as it is now.
func (a *applier) snapshot() *state.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.frozen == nil {
		a.frozen = a.draft.Freeze()
		a.draft = nil
	}
	return a.frozen
}

// background starts the heartbeat of long operations and the regular writes of
// state; the returned function ends both and waits for them.
func (a *applier) background() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { // owned by Run, which waits for it
		defer wg.Done()
		beat := time.NewTicker(time.Second)
		defer beat.Stop()
		last := a.in.Now()
		for {
			select {
			case <-done:
				return
			case <-beat.C:
			}
			a.ops.Beat()
			if a.in.State != nil && a.in.Now().Sub(last) >= a.in.Every {
				last = a.in.Now()
				a.graph.Report(a.in.State.Write(a.ctx, a.snapshot()))
			}
		}
	}()
	return func() {
		close(done)
		wg.Wait()
	}
}

// finish evaluates what stands at the end: root outputs and checks.
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
			plain = cty.UnknownAsNull(plain) // it reads what is destroyed, or not created yet
		}
		if plain.IsNull() {
			if v.IsKnown() {
				draft.SetOutput(o.Name, nil)
				continue
			}
			plain = cty.NullVal(v.Type()) // stays as that, as in OpenTofu
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

// refused reports, of an output that was computed, whether a precondition of it failed, or
// one of an output that it reads. Of a value that is not known such an output stays as
// it was.
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

// leftBehind tells the outputs that read what a destroy could not destroy: they stay,
// since it may take them to go on.
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

// checked is what came of everything that has conditions besides resources. With
// targets or exclusions nothing is evaluated for that.
func (a *applier) checked(t *demand.Task) []checks.Result {
	if len(a.in.Plan.Targets)+len(a.in.Plan.Excludes) > 0 {
		return checks.Values(a.ev)
	}
	out, ds := checks.Run(t, a.ev, a.checkData)
	a.graph.Report(ds)
	return out
}

// checkData tells what is known of the data source of a check: one that was not
// to be read and is not in state could not be read while planning, and the
// plan's result stands.
func (a *applier) checkData(d *eval.Desired) (failure string, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, planned := a.made[d.Addr()]
	_, _, stored := a.in.Plan.Prior.Object(addr.Object{Instance: d.Addr()})
	return a.unread[d.Addr()], planned || stored
}

// dropData takes the data sources out of state when everything else is destroyed. With
// exclusions, those stay that are excluded, and those that an object that stays depends on.
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

// untilStopped is a context that ends with another, or when stop is closed, or when end is
// called. Provisioners may wait for ever for what they run, so they do not go on after a
// stop as calls of providers do.
func untilStopped(ctx context.Context, stop <-chan struct{}) (within context.Context, end context.CancelFunc) {
	within, end = context.WithCancel(ctx)
	if stop != nil {
		go func() { // until end is called
			defer end()
			select {
			case <-stop:
			case <-within.Done():
			}
		}()
	}
	return within, end
}
