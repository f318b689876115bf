package plan

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/zclconf/go-cty/cty"
)

// assemble makes the plan from what the tasks found, when all of them are done.
func (p *planner) assemble() (*Plan, diag.List) {
	plan := &Plan{
		Mode: p.in.Mode, PrevRun: p.in.State, Targets: p.in.Targets, Excludes: p.in.Excludes,
		Replace: p.in.Replace, Timestamp: p.in.Timestamp, Workspace: p.in.Workspace,
		Variables: map[string]cty.Value{},
	}
	slices.SortFunc(p.plans, func(a, b *instancePlan) int { return a.d.Addr().Compare(b.d.Addr()) })
	slices.SortFunc(p.orphans, func(a, b *orphanPlan) int { return a.addr.Compare(b.addr) })
	p.variables(plan)
	deps := newDependencies()
	p.settle(deps)
	plan.Prior = p.refreshedState()
	for _, ip := range p.plans {
		if ip.change != nil {
			ip.change.Dependencies = deps.ofInstance(ip.d)
			plan.Changes = append(plan.Changes, ip.change)
		}
		plan.Changes = append(plan.Changes, ip.deposed...)
		if ip.drift != nil {
			plan.Drift = append(plan.Drift, ip.drift)
		}
	}
	for _, op := range p.orphans {
		if op.change != nil {
			plan.Changes = append(plan.Changes, op.change)
		}
		plan.Changes = append(plan.Changes, op.deposed...)
		if op.drift != nil {
			plan.Drift = append(plan.Drift, op.drift)
		}
	}
	for _, g := range p.generated {
		plan.Changes = append(plan.Changes, g.change)
	}
	if p.in.Mode == Destroy {
		plan.Drift = nil // what goes is shown as it is now
	}
	slices.SortFunc(plan.Drift, compareChanges)
	slices.SortStableFunc(plan.Changes, compareChanges)
	var ds diag.List
	plan.Deferred = sortDeferred(p.deferred)
	plan.Outputs = p.outputs()
	plan.Checks = p.checks()
	plan.Actions = p.actions(plan)
	plan.Relevant = p.relevant(plan)
	return plan, ds
}

func compareChanges(a, b *Change) int {
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

// variables records the root variables that were given.
func (p *planner) variables(plan *Plan) {
	for name, in := range p.in.Variables {
		cfg := p.in.Tree.Root.Config.Variables[name]
		if cfg == nil {
			continue
		}
		if cfg.Ephemeral {
			plan.Ephemeral = append(plan.Ephemeral, name)
			continue
		}
		v, _ := in.Value.UnmarkDeep()
		plan.Variables[name] = v
	}
	slices.Sort(plan.Ephemeral)
}

// refreshedState is state after moves and refresh: what apply starts from.
func (p *planner) refreshedState() *state.State {
	d := p.prior.Edit()
	changed := false
	set := func(a addr.Instance, pc addr.ProviderConfig, obj *state.Object) {
		d.Apply(state.Change{Object: addr.Object{Instance: a}, Provider: pc, New: obj})
		changed = true
	}
	for _, ip := range p.plans {
		if ip.touched {
			set(ip.d.Addr(), ip.provider, ip.refreshed)
		}
	}
	for _, g := range p.generated {
		set(g.change.Addr, g.change.Provider, g.stored)
	}
	for _, op := range p.orphans {
		switch {
		case op.addr.Resource.Mode == addr.Data:
			set(op.addr, op.provider, nil)
		case op.touched:
			set(op.addr, op.provider, op.refreshed)
		}
	}
	if !changed {
		return p.prior
	}
	return d.Freeze()
}

// outputs compares the root outputs with those in state.
func (p *planner) outputs() []*OutputChange {
	var out []*OutputChange
	seen := map[string]bool{}
	null := cty.NullVal(cty.DynamicPseudoType)
	t := p.graph.Task(p.ctx)
	for _, name := range p.ev.Root.Outputs() {
		cfg := p.in.Tree.Root.Config.Outputs[name]
		seen[name] = true
		c := &OutputChange{Name: name, Before: null, After: null, AfterSensitive: cfg.Sensitive, Deprecated: cfg.Deprecated}
		if o := p.in.State.Outputs[name]; o != nil {
			c.Before, c.BeforeSensitive = o.Value, o.Sensitive
		}
		if p.in.Mode == Destroy {
			p.lastOutput(t, c)
			if !c.Before.IsNull() && !p.scope.limited() {
				out = append(out, c)
			}
			continue
		}
		if p.scope.limited() && !p.outputInScope(name) {
			c.After, c.AfterSensitive = c.Before, c.BeforeSensitive
			if !c.Before.IsNull() {
				out = append(out, c)
			}
			continue
		}
		v, ok := p.ev.Root.Output(t, name)
		if !ok {
			continue
		}
		if value.ContainsMark(v, value.Sensitive) {
			c.AfterSensitive = true
		}
		c.After, _ = v.UnmarkDeep()
		c.Op = outputOp(c, p.in.State.Outputs[name] != nil)
		out = append(out, c)
	}
	for name, o := range p.in.State.Outputs {
		if !seen[name] && !p.scope.limited() {
			out = append(out, &OutputChange{Name: name, Op: Delete, Before: o.Value, After: null, BeforeSensitive: o.Sensitive})
		}
	}
	slices.SortFunc(out, func(a, b *OutputChange) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// lastOutput tells the end of an output. Shown is what it is worth at last, as
// refresh would have it; where that cannot be said, what state has. What is
// wrong with it is nothing to stop a destroy, so nobody is told: all that is
// read was computed before.
func (p *planner) lastOutput(t *demand.Task, c *OutputChange) {
	c.Op = Delete
	if p.in.SkipRefresh || len(p.in.State.Sorted()) == 0 {
		return
	}
	v, ok := p.ev.Root.Output(t, c.Name)
	if !ok {
		return
	}
	plain, _ := v.UnmarkDeep()
	if plain.IsWhollyKnown() {
		c.Before, c.BeforeSensitive = plain, c.AfterSensitive || value.ContainsMark(v, value.Sensitive)
	}
}

func outputOp(c *OutputChange, existed bool) Op {
	switch {
	case !existed && c.After.IsKnown() && c.After.IsNull():
		return NoOp
	case !existed:
		return Create
	case c.After.RawEquals(c.Before) && c.AfterSensitive == c.BeforeSensitive:
		return NoOp
	case c.After.IsKnown() && c.After.IsNull():
		return Delete
	default:
		return Update
	}
}

// outputInScope reports whether a targeted plan covers all that an output reads.
func (p *planner) outputInScope(name string) bool {
	planned := map[addr.ConfigResource]bool{}
	for _, ip := range p.plans {
		if p.scope.allows(ip.d.Addr()) {
			planned[ip.d.Addr().Config()] = true
		}
	}
	needs := eval.StaticOutput(p.in.Tree, name)
	if len(needs) == 0 {
		return len(p.scope.excludes) > 0
	}
	for _, r := range needs {
		if !planned[r] {
			return false
		}
	}
	return true
}

// runChecks evaluates check blocks, after everything else.
func (p *planner) runChecks() {
	if p.scope.limited() {
		return
	}
	results, ds := RunChecks(p.graph.Task(p.ctx), p.ev, func(d *eval.Desired) (string, bool) {
		ip, _ := d.Memo.(*instancePlan)
		return ip.whyFailed(), true
	})
	p.checkResults = results
	p.graph.Report(ds)
}

func (ip *instancePlan) whyFailed() string {
	if ip == nil {
		return ""
	}
	return ip.failure
}

// checkResult is what came of the conditions of one instance of a block.
type checkResult struct {
	kind     state.CheckKind
	config   string
	object   string
	outcomes []eval.Outcome
}

func checkAddr(m *eval.Module, rest string) string {
	if path := m.Addr.Static(); path != "" {
		return string(path) + "." + rest
	}
	return rest
}

// checks groups the results of conditions by block.
func (p *planner) checks() []state.CheckResult {
	all := p.checkResults
	for _, ip := range p.plans {
		r := ip.d.Resource
		if !ip.checked || !r.HasRules() {
			continue
		}
		all = append(all, checkResult{state.CheckResource, r.Addr().Config().String(), ip.d.Addr().String(), append(slices.Clone(ip.pre), ip.post...)})
	}
	return GroupChecks(all)
}

// GroupChecks makes state's form of results.
func GroupChecks(all []checkResult) []state.CheckResult {
	var out []state.CheckResult
	index := map[string]int{}
	for _, r := range all {
		k := string(r.kind) + " " + r.config
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, state.CheckResult{Kind: r.kind, Addr: r.config, Status: state.CheckStatus(eval.Pass)})
		}
		obj := state.CheckObject{Addr: r.object, Status: state.CheckStatus(eval.Pass)}
		for _, o := range r.outcomes {
			obj.Status = worse(obj.Status, state.CheckStatus(o.Status))
			if o.Status == eval.Fail {
				obj.Failures = append(obj.Failures, o.Message)
			}
		}
		out[i].Status = worse(out[i].Status, obj.Status)
		out[i].Objects = append(out[i].Objects, obj)
	}
	state.SortChecks(out)
	return out
}

// worse is the graver of two statuses.
func worse(a, b state.CheckStatus) state.CheckStatus {
	rank := func(s state.CheckStatus) int {
		return slices.Index([]state.CheckStatus{state.CheckStatus(eval.Pass), state.CheckStatus(eval.Unknown), state.CheckStatus(eval.Fail), state.CheckStatus(eval.Failed)}, s)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// relevant lists the drifted objects that planned changes read.
func (p *planner) relevant(plan *Plan) []RelevantAttr {
	if len(plan.Drift) == 0 {
		return nil
	}
	drifted := map[addr.AbsResource][]addr.Instance{}
	for _, c := range plan.Drift {
		drifted[c.Addr.Abs()] = append(drifted[c.Addr.Abs()], c.Addr)
	}
	var out []RelevantAttr
	seen := map[addr.Instance]bool{}
	add := func(a addr.Instance) {
		if !seen[a] {
			seen[a] = true
			out = append(out, RelevantAttr{Resource: a})
		}
	}
	for _, ip := range p.plans {
		if ip.change == nil || ip.change.Op == NoOp {
			continue
		}
		for _, a := range drifted[ip.d.Resource.Addr()] {
			if a == ip.d.Addr() {
				add(a)
			}
		}
		for _, r := range readResources(ip.d.Node()) {
			for _, a := range drifted[r.Addr()] {
				add(a)
			}
		}
	}
	for _, op := range p.orphans {
		if op.change != nil && op.drift != nil {
			add(op.addr)
		}
	}
	slices.SortFunc(out, func(a, b RelevantAttr) int { return a.Resource.Compare(b.Resource) })
	return out
}

// readResources lists the resources that a node reads, directly or through
// nodes that are no resources.
func readResources(n *demand.Node) []*eval.Resource {
	var out []*eval.Resource
	seen := map[*demand.Node]bool{n: true}
	stack := []*demand.Node{n}
	for len(stack) > 0 {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, r := range x.Reads() {
			if seen[r.Node] {
				continue
			}
			seen[r.Node] = true
			if res, ok := r.Node.What.(*eval.Resource); ok {
				out = append(out, res)
				continue
			}
			stack = append(stack, r.Node)
		}
	}
	return out
}
