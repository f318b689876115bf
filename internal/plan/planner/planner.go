// Package planner makes plans: it compares configuration with state and real objects, and
// computes the necessary changes.
//
// Main types: Input, and Make, which turns it into a plan.Plan. The one rule: only the driver
// starts tasks and makes decisions about the whole plan. It demands everything that the
// configuration declares and every orphan in state, so that every change and every error is
// reported.
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

// Input is the input of a plan.
type Input struct {
	plan.Options              // Time must be set
	Eval         eval.Options // the planner sets the phase
	Providers    resourceclient.Options
	// Validated reports whether the provider has already validated a block's configuration
	// without messages. nil means that none was validated.
	Validated func(*config.Resource, cty.Value) bool
	State     *state.State // state as read from the store; nil means none
	Readings  plan.Readings
	// IgnorePreventDestroy plans deletes that prevent_destroy forbids.
	IgnorePreventDestroy bool
	KeepHosts            bool // keep registry.terraform.io in state instead of translating it to registry.opentofu.org
}

// driver runs one plan: it starts the tasks that demand values. When they are done, it makes
// the decisions about the whole plan.
type driver struct {
	*planner
	ctx   context.Context
	graph *demand.Graph
}

// planner is the part of a run that cells use. As the phase it returns planned values. It has
// no access to the graph and the context of the run: a cell that started a task with them would
// hide a cycle and wait forever.
type planner struct {
	in      Input
	ev      *eval.Evaluator
	prior   *state.State                    // state after moves
	moved   map[addr.Instance]addr.Instance // new address to old address
	moves   []refactoring.Open              // errors in moved blocks that only count if a module has instances
	entered sync.Map                        // addr.Module of the modules that have an instance that was walked
	scope   scopeFilter
	client  *resourceclient.Client
	imports *imports.Set
	removed refactoring.Removals
	// replace contains the instances that -replace names, or that an earlier apply left to be replaced.
	replace   map[addr.Instance]plan.Reason
	walked    bool     // everything that is planned was demanded
	unwanted  sync.Map // addr.Instance to *demand.Cell[*orphanPlan]; in a refresh-only plan
	destroyed destroyedByModule
	found     findings
	changes   bool                        // the plan has changes other than reads by checks; set before checks run
	ready     sync.Map                    // *demand.Node that depend on no deferred object
	listing   *resourceclient.ListOptions // nil unless list blocks run
	unplanned atomic.Bool                 // in a plan to destroy: an object in state could not be planned
}

// Make makes a plan. With errors the plan contains everything that could be planned, and is
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
	if in.Mode == plan.Destroy || in.Mode == plan.RefreshOnly && in.Eval.Deferring == eval.DeferInputs {
		in.Eval.Deferring = eval.DeferNothing
	}
	in.Providers.MayDefer = in.Eval.Deferring == eval.DeferUnknown && in.Mode == plan.Normal
	p := &driver{
		&planner{in: in, client: resourceclient.New(ctx, in.Providers), replace: map[addr.Instance]plan.Reason{}, prior: in.State},
		ctx, &demand.Graph{Stop: ctx.Done()},
	}
	for _, a := range in.Replace {
		p.replace[a] = plan.ReplaceByRequest
	}
	switch {
	case in.Mode == plan.Destroy && (len(in.State.Resources) == 0 || in.MinimalRefresh):
		p.in.SkipRefresh = true // reading is disabled, or no destroy depends on the values of data sources
	case in.Mode == plan.RefreshOnly: // a refresh-only plan reads everything
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

// prepare handles moves, imports and targets before the first value is demanded.
func (p *driver) prepare() diag.List {
	tree := p.in.Eval.Tree
	ds := module.CheckProviders(tree)
	if ds.HasErrors() {
		return ds // continuing would repeat the errors for each resource
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
	ds = append(ds, p.matchReplace()...)
	ds = append(ds, p.checkReplace()...)
	p.takeReplacements()
	if p.in.Mode == plan.Normal {
		p.imports = imports.New(p.ev, p.in.GenerateTo != "", p.scope.wantsBlock)
		ds = append(ds, p.imports.Read(p.graph.Task(p.ctx))...)
	}
	return ds
}

// walk demands everything that the configuration declares and every orphan in state. It is the
// only function that starts tasks.
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

// shares divides the instances of one resource into jobs. Provider calls take time and should
// run concurrently up to the limit. A job therefore has more than one instance only if there
// are very many.
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
				p.postpone(&plan.Deferred{Addr: c.Addr(), Reason: plan.InstancesUnknown}, ch.Deferred)
				if ch.Placeholder != nil && p.in.Eval.Deferring == eval.DeferUnknown && p.in.Mode == plan.Normal {
					p.deferModule(t, ch.Placeholder, ch.Deferred)
				}
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
		p.deferInstances(t, r, in)
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
			first = part // the first part is processed by this task, below
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

// value returns the value of an instance during planning. It records the result of planning the
// instance.
func (p *planner) value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	if p.walked { // an output reads an instance that was not demanded and is no longer planned
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
	case addr.List:
		ip = newInstancePlan(d)
		v, ds = p.client.List(t, d, *p.listing)
		return ip, v, ds
	default:
		ip, v, ds = p.managed(t, d)
	}
	ds = ds.About(a.String())
	if d.Resource.Config().Check != "" && ds.HasErrors() {
		ip.failure = checks.Soften(ds)
		ip.refreshed, ip.touched = nil, true // the stored object is outdated
	}
	return ip, v, ds
}

func newInstancePlan(d *eval.Desired) *instancePlan { return &instancePlan{d: d, order: -1} }

// here reports whether an output may read an instance. With targets or exclusions the instance
// must be planned or in state.
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

// messages returns the messages of the graph and those in end. If an interrupt ended planning,
// the messages report it, even if only waits between tasks were cancelled.
func (p *driver) messages(end diag.List) diag.List {
	ds := append(p.unneeded(p.graph.Diags()), end...).Sort()
	if p.graph.Stopped() {
		ds = append(ds, &diag.Message{Severity: diag.Error, Code: resourceclient.CodeInterrupted, Summary: "Not planned", Detail: "Planning was interrupted."})
	}
	return Halted(p.ctx, ds)
}

// Halted replaces the messages about each cancelled instance and call by one message that the
// plan was cancelled.
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

// fromState returns the stored value of an instance that is not in the plan.
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
