package plan

import (
	"context"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/par"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Providers is what planning asks of the running providers.
type Providers interface {
	Schema(context.Context, addr.Provider) (*schema.Provider, diag.List)
	Any(context.Context, addr.Provider) (provider.Provider, diag.List)
	Configured(context.Context, addr.ProviderConfig, cty.Value) (provider.Provider, diag.List)
}

// Input is what a plan is made from.
type Input struct {
	Tree        *module.Tree
	Variables   map[string]eval.Input
	State       *state.State // as found in the store; nil: none
	Providers   Providers
	Functions   map[string]function.Function
	Mode        Mode
	SkipRefresh bool
	Targets     []addr.Target
	Excludes    []addr.Target
	Replace     []addr.Instance
	Generate    bool // write configuration for import blocks that name a resource without any
	Defer       bool // put off what hangs on unknown variables; else that is an error
	KeepHosts   bool // providers of the other peer's registry in state are not taken for those of ours
	Workspace   string
	RootDir     string
	Cwd         string
	Parallelism int
	Timestamp   time.Time
	Observe     event.Sink
}

// planner is one run of planning: the phase that answers with planned values.
type planner struct {
	in      Input
	ctx     context.Context
	graph   *demand.Graph
	ev      *eval.Evaluator
	prior   *state.State                    // after moves
	moved   map[addr.Instance]addr.Instance // new address to old
	slots   chan struct{}                   // bounds provider calls
	scope   scopeFilter
	shell   *Shell
	imports *importSet
	removed []*removedStatement
	replace map[addr.Instance]bool

	mu           sync.Mutex
	live         map[*eval.ProviderConfig]*demand.Cell[provider.Provider]
	orphans      []*orphanPlan
	opened       []*openEphemeral
	plans        []*instancePlan
	checkResults []checkResult
	generated    []*generatedPlan
	deferred     []*Deferred
}

// instancePlan is what planning found out about one wanted instance. One task
// writes it while it computes the instance; it is read when all tasks are done.
type instancePlan struct {
	d         *eval.Desired
	change    *Change
	drift     *Change
	refreshed *state.Object // what state holds after refresh; nil if nothing
	touched   bool          // whether refreshed differs from what state held
	provider  addr.ProviderConfig
	deposed   []*Change
	pre, post []eval.Outcome
	checked   bool
	deferred  bool   // it cannot be planned yet
	failure   string // of a check's data source: why it could not be read
	order     int    // index of the action that makes the new object, -1 without one
}

// Make makes a plan. With errors the plan holds what could be planned and is
// marked as errored.
func Make(ctx context.Context, in Input) (*Plan, diag.List) {
	p := newPlanner(ctx, in)
	ds := p.prepare()
	if ds.HasErrors() {
		return &Plan{Mode: in.Mode, Prior: p.prior, PrevRun: in.State, Timestamp: in.Timestamp, Errored: true, Workspace: in.Workspace}, ds
	}
	p.walk()
	p.closeEphemeral()
	ds = append(ds, p.graph.Diags()...)
	plan, more := p.assemble()
	ds = append(ds, more...)
	plan.Errored = ds.HasErrors()
	return plan, ds
}

func newPlanner(ctx context.Context, in Input) *planner {
	if in.State == nil {
		in.State = state.New()
	}
	if in.Parallelism < 1 {
		in.Parallelism = 10
	}
	p := &planner{
		in: in, ctx: ctx, graph: &demand.Graph{}, slots: make(chan struct{}, in.Parallelism),
		live: map[*eval.ProviderConfig]*demand.Cell[provider.Provider]{}, replace: map[addr.Instance]bool{},
		prior: in.State,
	}
	p.shell = &Shell{Providers: in.Providers, Context: ctx}
	for _, a := range in.Replace {
		p.replace[a] = true
	}
	p.ev = eval.New(p.graph, eval.Options{
		Tree: in.Tree, Phase: p, Variables: in.Variables, Workspace: in.Workspace,
		RootDir: in.RootDir, Cwd: in.Cwd, Functions: in.Functions, Deferring: in.Defer && in.Mode == Normal,
	})
	return p
}

// prepare does what comes before the first value is demanded: moves, imports, targets.
func (p *planner) prepare() diag.List {
	ds := CheckProviders(p.in.Tree)
	if ds.HasErrors() {
		return ds // the rest would only say the same of each resource
	}
	p.prior = p.in.State.TranslateProviders(providersOf(p.in.Tree), !p.in.KeepHosts)
	moved, more := applyMoves(p.in.Tree, p.early(), p.prior)
	ds = append(ds, more...)
	p.prior, p.moved = moved.state, moved.from
	p.removed, more = readRemoved(p.in.Tree, p.early())
	ds = append(ds, more...)
	p.scope = newScopeFilter(p.in.Tree, p.in.Targets, p.in.Excludes)
	if p.in.Mode == Destroy && p.scope.limited() {
		p.scope.forDestroy(p.prior)
	}
	ds = append(ds, p.scope.check(p)...)
	ds = append(ds, p.checkReplace()...)
	p.imports, more = p.readImports()
	return append(ds, more...)
}

// early is what for_each of moved and removed blocks is evaluated with.
func (p *planner) early() module.Options {
	return EarlyOptions(p.in.Functions, p.in.Variables, p.in.Workspace)
}

// EarlyOptions are the options of early evaluation with the given values.
func EarlyOptions(fns map[string]function.Function, vars map[string]eval.Input, workspace string) module.Options {
	return module.Options{
		Functions: func() map[string]function.Function { return fns },
		Variables: func(v *config.Variable) cty.Value {
			if in, ok := vars[v.Name]; ok {
				return in.Value
			}
			return cty.NilVal
		},
		Workspace: workspace,
	}
}

// providersOf lists the providers that configuration names explicitly.
func providersOf(tree *module.Tree) map[addr.Provider]bool {
	out := map[addr.Provider]bool{}
	tree.Walk(func(n *module.Node) {
		for _, rp := range n.Config.RequiredProviders {
			if !rp.Source.IsZero() {
				out[rp.Source] = true
			}
		}
	})
	return out
}

// walk demands everything that configuration declares and every orphan in
// state. Tasks are started here and nowhere else.
func (p *planner) walk() {
	var w par.Work[job]
	work := func(do job) { do(p.graph.Task(p.ctx)) }
	p.walkModule(&w, p.ev.Root)
	w.Do(p.in.Parallelism, work)
	p.walkOrphans(&w)
	w.Do(p.in.Parallelism, work)
	p.generateImports()
	if p.in.Mode != Destroy {
		p.runChecks()
	}
}

type job func(*demand.Task)

// batch is how many instances of one resource a job takes.
const batch = 64

func (p *planner) walkModule(w *par.Work[job], m *eval.Module) {
	var all []job
	defer func() { w.Add(all...) }()
	for _, r := range m.Resources() {
		if !p.scope.wants(r) || r.Config().Check != "" && p.in.Mode != Destroy {
			continue
		}
		all = append(all, func(t *demand.Task) { p.walkResource(w, t, r) })
	}
	for _, c := range m.Calls() {
		all = append(all, func(t *demand.Task) {
			ch, ok := c.Children(t)
			if !ok {
				return
			}
			if ch.Deferred != nil {
				p.putOff(c.Addr(), InstancesUnknown, ch.Deferred)
			}
			for _, child := range ch.All {
				w.Add(func(*demand.Task) { p.walkModule(w, child) })
			}
		})
	}
	if p.in.Mode == Destroy || p.scope.limited() {
		return
	}
	all = append(all, func(t *demand.Task) {
		for _, f := range m.Demands() {
			f(t)
		}
		p.graph.Report(m.CheckReferences())
	})
}

func (p *planner) walkResource(w *par.Work[job], t *demand.Task, r *eval.Resource) {
	in, ok := r.Instances(t)
	if !ok {
		return
	}
	if in.Deferred != nil {
		p.putOff(r.Addr().String(), InstancesUnknown, in.Deferred)
	}
	if p.in.Mode != Destroy && !p.scope.limited() {
		defer r.Whole(t)
	}
	for i := 0; i < len(in.All); i += batch {
		part := in.All[i:min(i+batch, len(in.All))]
		if i == 0 {
			continue // the first batch is done here, below
		}
		w.Add(func(t *demand.Task) { p.walkInstances(t, part) })
	}
	p.walkInstances(t, in.All[:min(batch, len(in.All))])
}

func (p *planner) walkInstances(t *demand.Task, all []*eval.Desired) {
	for _, d := range all {
		if p.scope.wantsInstance(d.Addr()) {
			d.Value(t, nil)
		}
	}
}

// Schema implements eval.Phase.
func (p *planner) Schema(_ *demand.Task, a addr.Provider) (*schema.Provider, diag.List) {
	return p.shell.Schema(a)
}

// Value implements eval.Phase.
func (p *planner) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	ip := &instancePlan{d: d, order: -1}
	d.Memo = ip
	p.mu.Lock()
	p.plans = append(p.plans, ip)
	p.mu.Unlock()
	if err := p.ctx.Err(); err != nil {
		return cty.DynamicVal, diag.List{{Severity: diag.Error, Code: "plan/interrupted", Summary: "Execution halted", Detail: "Planning was interrupted before everything was looked at."}}
	}
	a := d.Addr()
	if !p.scope.allows(a) {
		return p.fromState(t, d, ip)
	}
	var v cty.Value
	var ds diag.List
	switch a.Resource.Mode {
	case addr.Data:
		v, ds = p.data(t, d, ip)
	case addr.Ephemeral:
		v, ds = p.ephemeral(t, d, ip)
	default:
		v, ds = p.managed(t, d, ip)
	}
	ds = ds.About(a.String())
	if d.Resource.Config().Check != "" && ds.HasErrors() {
		ip.failure = SoftenCheck(ds)
		ip.refreshed, ip.touched = nil, true // what was read before says nothing any more
	}
	return v, ds
}

// SoftenCheck makes the errors of a check's data source warnings, since what a
// check finds wrong never stops anything, and returns the first of them.
func SoftenCheck(ds diag.List) (failure string) {
	for _, m := range ds {
		if m.Severity == diag.Error && failure == "" {
			failure = m.Summary + ": " + m.Detail
		}
		m.Severity = diag.Warning
	}
	return failure
}

// fromState answers for an instance that is left out of the plan: what state has.
func (p *planner) fromState(t *demand.Task, d *eval.Desired, ip *instancePlan) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	obj, pc, ok := p.prior.Object(addr.Object{Instance: d.Addr()})
	if !ok {
		return cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	ip.refreshed, ip.provider = obj, pc
	v, more := p.shell.Decode(d.Addr(), obj, s, d.Resource.Provider(), p.call)
	ds = append(ds, more...)
	return withSensitive(v, obj.Sensitive, s), ds
}

// configured returns the provider that an instance uses, started and
// configured. A failure is reported once, by the configuration's own cell.
func (p *planner) configured(t *demand.Task, pc *eval.ProviderConfig, at *source.Range) (provider.Provider, diag.List) {
	p.mu.Lock()
	c := p.live[pc]
	if c == nil {
		c = demand.NewCell[provider.Provider](demand.Subject(pc), nil, func(t *demand.Task) (provider.Provider, diag.List) {
			return p.shell.Configure(t, pc)
		})
		p.live[pc] = c
	}
	p.mu.Unlock()
	prov, ok := c.Get(t, at)
	if !ok {
		return nil, demand.Fail()
	}
	return prov, nil
}

// call takes a slot for one provider call.
func (p *planner) call() (done func()) {
	p.slots <- struct{}{}
	return func() { <-p.slots }
}

// calls are the provider calls of this plan.
func (p *planner) calls() calls { return calls{p.shell, p.call} }

// Function implements eval.Phase.
func (p *planner) Function(t *demand.Task, a addr.Provider, pc *eval.ProviderConfig, name string) (function.Function, diag.List) {
	var prov provider.Provider
	var ds diag.List
	if pc != nil {
		if v, ok := pc.Value(t); ok && !v.IsWhollyKnown() {
			return unknownFunction(), nil
		}
		prov, ds = p.configured(t, pc, nil)
	} else {
		prov, ds = p.in.Providers.Any(p.ctx, a)
	}
	if ds.HasErrors() {
		return function.Function{}, ds
	}
	return ProviderFunction(p.ctx, prov, a, name, pc != nil)
}
