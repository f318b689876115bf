// Package planner makes plans: it compares what configuration wants with what is
// there, and says what has to be done.
//
// Main types: Input, and Make, which turns it into a plan.Plan. The one rule:
// only the driver starts tasks and asks about the plan as a whole, and it demands
// everything that configuration declares and every orphan in state, so that nothing
// goes unreported.
package planner

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/checks"
	"github.com/terrace-iac/terrace/internal/plan/imports"
	"github.com/terrace-iac/terrace/internal/plan/refactoring"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Input is what a plan is made from.
type Input struct {
	plan.Options              // Time is set
	Eval         eval.Options // the phase is the planner's
	Providers    resourceclient.Options
	// Validated reports whether the provider has nothing to say of a block's configuration,
	// as it was asked before; nil: it was not.
	Validated func(*config.Resource, cty.Value) bool
	State     *state.State // as found in the store; nil: none
	Readings  plan.Readings
	KeepHosts bool // providers of the other peer's registry in state are not taken for those of ours
}

// driver is one run of planning: it starts the tasks that demand things, and asks what
// concerns the plan as a whole when they are done.
type driver struct {
	*planner
	ctx   context.Context
	graph *demand.Graph
}

// planner is what cells use of a run of planning: the phase that answers with planned
// values. It has neither the graph nor the context of the run. A cell that started a task
// with them would hide a cycle, and wait for ever.
type planner struct {
	in        Input
	ev        *eval.Evaluator
	prior     *state.State                    // after moves
	moved     map[addr.Instance]addr.Instance // new address to old
	moves     []refactoring.Open              // errors of moved blocks that count if a module has instances
	entered   sync.Map                        // addr.Module of those that have an instance which was walked
	scope     scopeFilter
	client    *resourceclient.Client
	imports   *imports.Set
	removed   refactoring.Removals
	replace   map[addr.Instance]bool
	walked    bool     // everything that is planned was demanded
	unwanted  sync.Map // addr.Instance to *demand.Cell[*orphanPlan], of a refresh-only plan
	destroyed destroyedByModule
	found     findings
	changes   bool        // the plan has changes, reads of data sources in checks aside; known when checks begin
	unplanned atomic.Bool // a plan to destroy: what is to become of an object in state could not be planned
}

// Make makes a plan. With errors the plan holds what could be planned and is
// marked as errored.
func Make(ctx context.Context, in Input) (*plan.Plan, diag.List) {
	p := newDriver(ctx, in)
	ds := p.prepare()
	if ds.HasErrors() {
		return &plan.Plan{Mode: in.Mode, Prior: p.prior, PrevRun: in.State, Timestamp: in.Time, Errored: true, Refused: true, Workspace: in.Eval.Workspace}, ds
	}
	p.walk()
	p.walked = true
	p.readOutputs()
	ds = append(ds, p.messages(p.client.Close())...)
	out := p.assemble()
	out.Errored = ds.HasErrors()
	return out, ds
}

func newDriver(ctx context.Context, in Input) *driver {
	if in.State == nil {
		in.State = state.New()
	}
	if in.Providers.Parallelism < 1 {
		in.Providers.Parallelism = 10
	}
	in.Eval.Deferring = in.Eval.Deferring && in.Mode == plan.Normal
	p := &driver{
		&planner{in: in, client: resourceclient.New(ctx, in.Providers), replace: map[addr.Instance]bool{}, prior: in.State},
		ctx, &demand.Graph{Stop: ctx.Done()},
	}
	for _, a := range in.Replace {
		p.replace[a] = true
	}
	switch {
	case in.Mode == plan.Destroy && (len(in.State.Resources) == 0 || in.MinimalRefresh):
		p.in.SkipRefresh = true // nothing is destroyed with what data sources say; or nothing is to be read before
	case in.Mode == plan.RefreshOnly: // it is there to read everything
		p.in.MinimalRefresh, p.in.MinimalData, p.in.Readings = false, false, plan.Readings{Note: in.Readings.Note}
	}
	o := in.Eval
	o.Phase = phase{p.planner}
	switch {
	case in.Mode == plan.RefreshOnly:
		o.Exists, o.Kept, o.Lenient = p.inState, p.notWanted, true
	case len(in.Targets)+len(in.Excludes) > 0 && in.Mode == plan.Normal:
		o.Exists = p.here
	}
	o.Narrow = len(in.Targets) > 0
	p.ev = eval.New(p.graph, o)
	return p
}

// prepare does what comes before the first value is demanded: moves, imports, targets.
func (p *driver) prepare() diag.List {
	tree := p.in.Eval.Tree
	ds := module.CheckProviders(tree)
	if ds.HasErrors() {
		return ds // the rest would only say the same of each resource
	}
	p.prior = p.in.State.TranslateProviders(tree.RequiredProviders(), !p.in.KeepHosts)
	moved, more := refactoring.Apply(tree, p.in.Eval.Early(), p.prior)
	ds = append(ds, more...)
	p.prior, p.moved, p.moves = moved.State, moved.From, moved.Open
	p.removed, more = refactoring.ReadRemovals(tree, p.in.Eval.Early())
	ds = append(ds, more...)
	p.scope = newScopeFilter(p.in.Eval, p.in.Targets, p.in.Excludes)
	if p.in.Mode == plan.Destroy && p.scope.limited() {
		p.scope.forDestroy(p.prior, func(c addr.ConfigResource) bool {
			n := tree.Node(addr.ModuleInstance(c.Module))
			return !p.in.SkipRefresh && n != nil && n.Config.Resources[c.Resource] != nil
		})
	}
	ds = append(ds, p.scope.check()...)
	ds = append(ds, p.scope.checkMoved(p.moved)...)
	ds = append(ds, p.checkReplace()...)
	if p.in.Mode == plan.Normal {
		p.imports, more = imports.Read(p.graph.Task(p.ctx), p.ev, p.in.GenerateTo != "", p.scope.wantsBlock)
		ds = append(ds, more...)
	}
	return ds
}

// walk demands everything that configuration declares and every orphan in
// state. Tasks are started here and nowhere else.
func (p *driver) walk() {
	var w parallel.Work[job]
	work := func(do job) { do(p.graph.Task(p.ctx)) }
	p.graph.Rest = w.Break
	defer func() { p.graph.Rest = nil }()
	p.walkModule(&w, p.ev.Root)
	w.Do(p.in.Providers.Parallelism, work)
	p.walkOrphans(&w)
	w.Do(p.in.Providers.Parallelism, work)
	for _, o := range p.moves {
		if _, ok := p.entered.Load(o.In); ok {
			p.graph.Report(o.Err)
		}
	}
	p.generateImports()
	p.unmetImports()
	if p.in.Mode != plan.Destroy {
		p.runChecks()
	}
}

type job func(*demand.Task)

// shares cuts the instances of one resource into jobs. Calls of providers take time,
// and as many of them run at once as may, so that a job has more than one of them
// only where there are very many.
func shares[T any](all []T, parallelism int) iter.Seq[[]T] {
	return slices.Chunk(all, min(max(1, len(all)/(16*parallelism)), 64))
}

func (p *driver) walkModule(w *parallel.Work[job], m *eval.Module) {
	p.entered.Store(m.Node.Path, true)
	var all []job
	defer func() { w.Add(all...) }()
	for _, r := range m.Resources() {
		if !p.scope.wants(r) || r.Config().Check != "" && p.in.Mode != plan.Destroy {
			continue
		}
		all = append(all, func(t *demand.Task) { p.walkResource(w, t, r) })
	}
	for _, c := range m.Calls() {
		if !p.scope.wantsCall(c.Node) {
			continue
		}
		all = append(all, func(t *demand.Task) {
			ch, ok := c.Children(t)
			if !ok {
				return
			}
			if ch.Deferred != nil {
				p.postpone(c.Addr(), plan.InstancesUnknown, ch.Deferred)
			}
			for _, child := range ch.All {
				w.Add(func(*demand.Task) { p.walkModule(w, child) })
			}
		})
	}
	if p.in.Mode == plan.Destroy || p.scope.limited() {
		return
	}
	all = append(all, func(t *demand.Task) {
		for _, f := range m.Demands() {
			f(t)
		}
		p.graph.Report(m.CheckReferences())
	})
}

func (p *driver) walkResource(w *parallel.Work[job], t *demand.Task, r *eval.Resource) {
	in, ok := r.Instances(t)
	if !ok {
		return
	}
	if in.Deferred != nil {
		p.postpone(r.Addr().String(), plan.InstancesUnknown, in.Deferred)
	}
	if p.in.Mode != plan.Destroy && !p.scope.limited() {
		defer r.Value(t)
	}
	if c := r.Addr().Config(); len(in.All) == 0 && p.scope.limited() && !p.scope.dropped[c] && !slices.ContainsFunc(p.scope.excludes, func(t addr.Target) bool { return t.ContainsConfig(c) }) {
		add(&p.found, &p.found.none, c)
	}
	var rest []job
	var first []*eval.Desired
	for part := range shares(in.All, p.in.Providers.Parallelism) {
		if first == nil {
			first = part // is done here, below
			continue
		}
		rest = append(rest, func(t *demand.Task) { p.walkInstances(t, part) })
	}
	w.Add(rest...)
	p.walkInstances(t, first)
}

func (p *planner) walkInstances(t *demand.Task, all []*eval.Desired) {
	for _, d := range all {
		if !p.scope.wantsInstance(d.Addr()) {
			continue
		}
		if _, ok := d.Value(t, nil); !ok && d.Addr().Resource.Mode == addr.Managed && p.prior.Instance(d.Addr()) != nil {
			p.unplanned.Store(true)
		}
	}
}

// value is the value of an instance while planning. What is found on the way is handed in.
func (p *planner) value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	if p.walked { // an output reads what nothing else asked for, and that is not planned any more
		_, v, ds := p.fromState(t, d)
		return v, ds
	}
	ip, v, ds := p.plan(t, d)
	p.found.addInstance(ip)
	return v, ds
}

// plan plans one instance.
func (p *planner) plan(t *demand.Task, d *eval.Desired) (ip *instancePlan, v cty.Value, ds diag.List) {
	if err := t.Context().Err(); err != nil {
		return newInstancePlan(d), cty.DynamicVal, diag.List{{Severity: diag.Error, Code: resourceclient.CodeInterrupted, Summary: "Not planned", Detail: "Planning was interrupted."}}
	}
	a := d.Addr()
	if !p.scope.allows(a) {
		return p.fromState(t, d)
	}
	switch a.Resource.Mode {
	case addr.Data:
		ip, v, ds = p.data(t, d)
	case addr.Ephemeral:
		ip, v, ds = p.ephemeral(t, d)
	default:
		ip, v, ds = p.managed(t, d)
	}
	ds = ds.About(a.String())
	if d.Resource.Config().Check != "" && ds.HasErrors() {
		ip.failure = checks.Soften(ds)
		ip.refreshed, ip.touched = nil, true // what was read before says nothing any more
	}
	return ip, v, ds
}

func newInstancePlan(d *eval.Desired) *instancePlan { return &instancePlan{d: d, order: -1} }

// here reports whether an output may read an instance: with targets or exclusions
// only if it is planned or in state.
func (p *planner) here(_ *demand.Task, d *eval.Desired) bool {
	if !p.walked {
		return true
	}
	a := d.Addr()
	if p.found.instance(d) != nil && p.scope.allows(a) {
		return true
	}
	_, _, ok := p.prior.Object(addr.Object{Instance: a})
	return ok
}

// messages are those of the graph, and those about the end. Where an interrupt ended planning they say so, also if
// nothing but waits of tasks for one another was given up.
func (p *driver) messages(end diag.List) diag.List {
	ds := append(p.unneeded(p.graph.Diags()), end...).Sort()
	if p.graph.Stopped() {
		ds = append(ds, &diag.Message{Severity: diag.Error, Code: resourceclient.CodeInterrupted, Summary: "Not planned", Detail: "Planning was interrupted."})
	}
	return Halted(p.ctx, ds)
}

// Halted takes the messages out about each instance and call that was given up, and
// says once that the plan was.
func Halted(ctx context.Context, ds diag.List) diag.List {
	if ctx.Err() == nil {
		return ds
	}
	left := slices.DeleteFunc(slices.Clone(ds), func(m *diag.Message) bool { return m.Code == resourceclient.CodeInterrupted })
	if len(left) == len(ds) {
		return ds
	}
	return append(left, &diag.Message{Severity: diag.Error, Code: diag.CodePlanInterrupted, Summary: "Execution halted", Detail: "Planning was interrupted before everything was looked at."})
}

// fromState answers for an instance that is left out of the plan: what state has.
func (p *planner) fromState(t *demand.Task, d *eval.Desired) (*instancePlan, cty.Value, diag.List) {
	ip := newInstancePlan(d)
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return ip, cty.DynamicVal, ds
	}
	obj, pc, ok := p.prior.Object(addr.Object{Instance: d.Addr()})
	if !ok {
		return ip, cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	ip.refreshed, ip.provider = obj, pc
	v, more := p.client.Decode(d.Addr(), obj, s, d.Resource.Provider())
	ds = append(ds, more...)
	return ip, resourceclient.WithSensitive(v, obj.Sensitive, s), ds
}
