package planner

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/checks"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// assemble returns the plan with the findings of all tasks. It must be called after all tasks
// are done.
func (p *driver) assemble() *plan.Plan {
	out := &plan.Plan{
		Mode: p.in.Mode, PrevRun: p.in.State, Timestamp: p.in.Time, Workspace: p.in.Eval.Workspace,
		Request: plan.Request{Variables: map[string]cty.Value{}, Targets: p.in.Targets, Excludes: p.in.Excludes, Replace: p.in.Replace},
	}
	deps := newDependencies(p.in.Eval.Tree, len(p.found.plans))
	sorted := make([]addressed, len(p.found.plans))
	parallel.Each(2, 2, func(i int) {
		if i == 0 {
			deps.know(p.found.plans)
			return
		}
		for i, ip := range p.found.plans {
			sorted[i] = addressed{ip.d.Addr(), ip}
		}
		slices.SortFunc(sorted, func(a, b addressed) int { return a.addr.Compare(b.addr) })
	})
	for i, a := range sorted {
		p.found.plans[i] = a.plan
	}
	slices.SortFunc(p.found.orphans, func(a, b *orphanPlan) int { return a.addr.Compare(b.addr) })
	p.variables(out)
	p.settle(deps)
	p.holdBack()
	out.Prior = p.refreshedState()
	for _, ip := range p.found.plans {
		if ip.change != nil {
			ip.change.Dependencies = deps.ofInstance(ip.d)
		}
	}
	p.found.gather(out)
	if p.in.Mode == plan.Destroy {
		out.Drift = nil // a plan to destroy shows the objects as they are now
	}
	slices.SortFunc(out.Drift, compareChanges)
	slices.SortStableFunc(out.Changes, compareChanges)
	out.Deferred = sortDeferred(p.found.deferred)
	p.keepReplacements(out)
	out.Outputs = p.outputs()
	out.Checks = p.checks()
	out.Actions = p.actions(out)
	out.Reads, out.Readings = p.reads(), p.readings()
	out.Modules = calledModules(nil, p.ev.Root)
	return out
}

// addressed is the plan of an instance with its address, which is computed once to be sorted by.
type addressed struct {
	addr addr.Instance
	plan *instancePlan
}

func compareChanges(a, b *plan.Change) int {
	if c := a.Addr.Compare(b.Addr); c != 0 {
		return c
	}
	switch {
	case a.Deposed < b.Deposed:
		return -1
	case a.Deposed > b.Deposed:
		return 1
	}
	return 0
}

// calledModules appends the instances of all modules that a module calls, at any depth.
func calledModules(out []plan.CalledModule, m *eval.Module) []plan.CalledModule {
	for _, call := range m.Calls() {
		for _, child := range call.Known() {
			out = calledModules(append(out, plan.CalledModule{Addr: child.Addr, Null: child.NullOutputs()}), child)
		}
	}
	return out
}

// variables records the given root variables.
func (p *planner) variables(out *plan.Plan) {
	for name, in := range p.in.Eval.Variables {
		cfg := p.in.Eval.Tree.Root.Config.Variables[name]
		if cfg == nil {
			continue
		}
		if cfg.Ephemeral {
			out.Ephemeral = append(out.Ephemeral, name)
			continue
		}
		v, _ := in.Value.UnmarkDeep()
		out.Variables[name] = v
	}
	slices.Sort(out.Ephemeral)
}

// refreshedState returns the state after moves and refresh, from which an apply starts.
func (p *planner) refreshedState() *state.State {
	d := p.prior.Edit()
	changed := false
	set := func(a addr.Instance, pc addr.ProviderConfig, obj *state.Object) {
		d.Apply(state.Change{Object: addr.Object{Instance: a}, Provider: pc, New: obj})
		changed = true
	}
	for _, ip := range p.found.plans {
		if ip.touched {
			set(ip.d.Addr(), ip.provider, ip.refreshed)
		}
	}
	for _, g := range p.found.generated {
		set(g.change.Addr, g.change.Provider, g.stored)
	}
	for _, op := range p.found.orphans {
		switch {
		case op.addr.Resource.Mode == addr.Data:
			set(op.addr, op.provider, nil)
		case op.touched:
			set(op.addr, op.provider, op.refreshed)
		}
	}
	for _, o := range p.found.vanished {
		d.Apply(state.Change{Object: o})
		changed = true
	}
	if !changed {
		return p.prior
	}
	return d.Freeze()
}

// outputs compares the root outputs with those in state.
func (p *driver) outputs() []*plan.OutputChange {
	var out []*plan.OutputChange
	seen := map[string]bool{}
	null := cty.NullVal(cty.DynamicPseudoType)
	t := p.graph.Task(p.ctx)
	inScope := p.outputScope()
	for _, name := range p.ev.Root.Outputs() {
		cfg := p.in.Eval.Tree.Root.Config.Outputs[name]
		seen[name] = true
		c := &plan.OutputChange{Name: name, Before: null, After: null, AfterSensitive: cfg.Sensitive, Deprecated: cfg.Deprecated}
		o := p.in.State.Outputs[name]
		if o != nil {
			c.Before, c.BeforeSensitive = o.Value, o.Sensitive
		}
		if p.in.Mode == plan.Destroy {
			p.lastOutput(t, c)
			c.Left = c.Before.IsNull() // removed without being shown
			if o != nil && !p.scope.limited() {
				out = append(out, c)
			}
			continue
		}
		if !inScope(name) {
			c.After, c.AfterSensitive, c.Left = c.Before, c.BeforeSensitive, true
			if !c.Before.IsNull() {
				out = append(out, c)
			}
			continue
		}
		v, ok := p.ev.Root.Output(t, name)
		if ok && p.deferredBefore(p.ev.Root.OutputNode(name).Reads(), nil) != nil {
			continue // it keeps its value in state
		}
		if !ok {
			if p.scope.limited() && !c.Before.IsNull() { // it reads objects that are not in the plan
				c.After, c.AfterSensitive, c.Left = c.Before, c.BeforeSensitive, true
				out = append(out, c)
			}
			continue
		}
		plain, sensitive := resourceclient.Plain(v)
		c.After, c.AfterSensitive = plain, c.AfterSensitive || sensitive
		c.Op = outputOp(c, o != nil)
		out = append(out, c)
	}
	for name, o := range p.in.State.Outputs {
		if !seen[name] && !p.scope.limited() {
			out = append(out, &plan.OutputChange{Name: name, Op: plan.Delete, Before: o.Value, After: null, BeforeSensitive: o.Sensitive})
		}
	}
	slices.SortFunc(out, func(a, b *plan.OutputChange) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// lastOutput evaluates an output of a plan to destroy everything. It ignores errors, which must
// not prevent a destroy.
func (p *planner) lastOutput(t *demand.Task, c *plan.OutputChange) {
	c.Op = plan.Delete
	if p.in.SkipRefresh || p.scope.limited() || len(p.in.State.Sorted()) == 0 {
		return
	}
	v, ok := p.ev.Root.Output(t, c.Name)
	if !ok {
		return
	}
	if plain, sensitive := resourceclient.Plain(v); plain.IsWhollyKnown() {
		c.Before, c.BeforeSensitive = plain, c.AfterSensitive || sensitive
	}
}

func outputOp(c *plan.OutputChange, existed bool) plan.Op {
	switch {
	case !existed && c.After.IsKnown() && c.After.IsNull():
		return plan.NoOp
	case !existed:
		return plan.Create
	case c.After.RawEquals(c.Before) && c.AfterSensitive == c.BeforeSensitive:
		return plan.NoOp
	default:
		return plan.Update // also for null: the output is still declared
	}
}

// outputScope returns a test whether an output is planned. With targets or exclusions an output
// is planned if it reads something and everything that it reads is planned.
func (p *planner) outputScope() func(name string) bool {
	if !p.scope.limited() {
		return func(string) bool { return true }
	}
	planned := map[addr.ConfigResource]bool{}
	for _, ip := range p.found.plans {
		if p.scope.allows(ip.d.Addr()) {
			planned[ip.d.Addr().Config()] = true
		}
	}
	for _, c := range p.found.none {
		planned[c] = true
	}
	for n := range p.modulesWithoutInstances() {
		for a := range n.Config.Resources {
			if c := n.Path.Resource(a); p.scope.wantsBlock(c) {
				planned[c] = true
			}
		}
	}
	left := func(r addr.ConfigResource) bool { return !planned[r] }
	reads := eval.StaticOutputs(p.in.Eval.Tree)
	return func(name string) bool {
		needs := reads(name)
		return len(needs) > 0 && !slices.ContainsFunc(needs, left)
	}
}

// readOutputs evaluates the planned root outputs that were not evaluated yet, so that their
// errors are reported.
func (p *driver) readOutputs() {
	if !p.scope.limited() || p.in.Mode == plan.Destroy {
		return
	}
	t := p.graph.Task(p.ctx)
	inScope := p.outputScope()
	for _, name := range p.ev.Root.Outputs() {
		if inScope(name) {
			p.ev.Root.Output(t, name)
		}
	}
}

// runChecks evaluates check blocks after everything else. It first records whether the plan has
// changes. If there are none, the data sources of checks are read now, and these reads do not
// count as changes.
func (p *driver) runChecks() {
	if p.scope.limited() {
		return
	}
	rest := &plan.Plan{Mode: p.in.Mode, Outputs: p.outputs(), Deferred: p.found.deferred}
	p.found.gather(rest)
	p.changes = rest.HasChanges()
	results, ds := checks.Run(p.graph.Task(p.ctx), p.ev, func(d *eval.Desired) (string, bool) {
		ip := p.found.instance(d)
		return ip.whyFailed(), true
	})
	p.found.checkResults = results
	p.graph.Report(ds)
}

func (ip *instancePlan) whyFailed() string {
	if ip == nil {
		return ""
	}
	return ip.failure
}

// checks returns the results of conditions, grouped by block.
func (p *driver) checks() []state.CheckResult {
	root := p.in.Eval.Tree.Root
	if p.in.Mode == plan.Destroy {
		return checks.Unevaluated(root, !p.scope.limited())
	}
	all := p.found.checkResults
	if p.scope.limited() {
		all = checks.Values(p.ev)
	}
	var last *eval.Resource
	for _, ip := range p.found.plans { // sorted by address
		r := ip.d.Resource
		if !ip.checked || !r.HasRules() {
			continue
		}
		all = append(all, checks.Of(ip.d, append(slices.Clone(ip.pre), ip.post...)))
		if r != last && p.scope.limited() {
			last = r
			all = append(all, p.unseen(r)...)
		}
	}
	return checks.Complete(checks.Group(all), root, p.empty())
}

// empty returns a test whether a block is known to have no instances. Blocks without results
// have none, unless targets or exclusions omit them.
func (p *planner) empty() func(*module.Node, state.CheckKind, string) bool {
	if !p.scope.limited() {
		return func(*module.Node, state.CheckKind, string) bool { return true }
	}
	none := map[string]bool{}
	for _, c := range p.found.none {
		none[c.String()] = true
	}
	unmade := p.modulesWithoutInstances()
	return func(n *module.Node, kind state.CheckKind, address string) bool {
		return unmade[n] && (kind == state.CheckResource || kind == state.CheckVariable) || none[address]
	}
}

// unseen returns results for the instances of a resource that are not in the plan.
func (p *driver) unseen(r *eval.Resource) []checks.Result {
	in, ok := r.Instances(p.graph.Task(p.ctx))
	if !ok {
		return nil
	}
	var out []checks.Result
	for _, d := range in.All {
		if ip := p.found.instance(d); ip == nil || !ip.checked {
			out = append(out, checks.Unseen(r, d.Addr()))
		}
	}
	return out
}

// modulesWithoutInstances returns the modules that are known to have no instances.
func (p *planner) modulesWithoutInstances() map[*module.Node]bool {
	out := map[*module.Node]bool{}
	var walk func(*eval.Module)
	walk = func(m *eval.Module) {
		for _, call := range m.Calls() {
			if call.Node != nil && call.Empty() {
				call.Node.Walk(func(n *module.Node) { out[n] = true })
			}
			for _, child := range call.Known() {
				walk(child)
			}
		}
	}
	walk(p.ev.Root)
	return out
}
