package planner

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/plan"
)

// An actionList computes the order in which changes are carried out. An action needs another
// one if that must come first:
//
//   - An action that produces an object (create, update, read) needs the actions that produce
//     the objects it reads, found in the recorded reads. If it reads many, it needs one join of
//     them.
//   - A delete needs the deletes of everything that depended on the object according to state.
//     In a plan to destroy it also needs the deletes of everything that depends on it in the
//     configuration.
//   - A delete of an object without a resource block needs the updates of the objects that
//     depended on it, which stop using it.
//   - In delete-then-create, the create needs the delete.
//   - In create-then-delete, the delete needs the create and the actions on everything that
//     depends on the object, before or after. So does the delete of a deposed object, unless that
//     closes a cycle: the object may be in use until its users have switched to the new object.
//   - Data sources of checks are read after everything else, except the deletes of replaced
//     objects that they read.
//   - Resources that a provider configuration reads are deleted after everything that is
//     deleted with that provider.
//
// The number of needs is proportional to instances plus references. Where many actions need
// many others, there is a join in between.
type actionList struct {
	p      *planner
	plan   *plan.Plan
	out    []plan.Action
	byNode map[*demand.Node]int
	soft   map[int][]int // needs that are dropped if they close a cycle
}

// actions returns the actions of a plan.
func (p *planner) actions(of *plan.Plan) []plan.Action {
	if p.in.Mode == plan.RefreshOnly {
		return nil
	}
	b := &actionList{p: p, plan: of, byNode: map[*demand.Node]int{}, soft: map[int][]int{}}
	b.forward()
	b.backward()
	b.last()
	b.finish()
	return b.out
}

func (b *actionList) add(k plan.Kind, change int, needs ...int) int {
	b.out = append(b.out, plan.Action{Kind: k, Change: change, Needs: needs})
	return len(b.out) - 1
}

// halves are the indexes of the actions of one change.
type halves struct{ forward, delete int }

// forward adds the actions that produce objects, with their needs.
func (b *actionList) forward() {
	index := make(map[*plan.Change]int, len(b.plan.Changes))
	for i, c := range b.plan.Changes {
		index[c] = i
	}
	var made []*instancePlan
	for _, ip := range b.p.found.plans {
		ip.order = -1
		c := ip.change
		if c == nil {
			continue
		}
		kind := plan.StepCreate
		switch c.Op {
		case plan.Update:
			kind = plan.StepUpdate
		case plan.Read:
			kind = plan.StepRead
		case plan.NoOp:
			switch {
			case c.Import != nil:
				kind = plan.StepNoOp
			case ip.open():
				kind = plan.StepCheck
			default:
				continue
			}
		case plan.Create, plan.DeleteThenCreate, plan.CreateThenDelete, plan.ForgetThenCreate:
		default:
			continue
		}
		ip.order = b.add(kind, index[c])
		made = append(made, ip)
	}
	for _, g := range b.p.found.generated {
		kind := plan.StepCreate
		switch g.change.Op {
		case plan.NoOp:
			kind = plan.StepNoOp
		case plan.Update:
			kind = plan.StepUpdate
		}
		b.add(kind, index[g.change])
	}
	for _, ip := range made {
		b.out[ip.order].Needs = b.needs(ip.d.Node().Reads(), ip.order)
	}
}

// last makes the data sources of checks wait for all other actions, because a check evaluates
// the final state. Actions that need such a data source come after it, for example the delete
// of an object that it reads.
func (b *actionList) last() {
	var reads, rest []int
	of := make(map[*plan.Change]bool)
	for _, ip := range b.p.found.plans {
		if ip.change != nil && ip.change.Op == plan.Read && ip.d.Resource.Config().Check != "" {
			of[ip.change] = true
		}
	}
	for i, a := range b.out {
		switch {
		case a.Kind == plan.StepJoin: // the actions that it joins are waited for
		case of[b.plan.Changes[a.Change]]:
			reads = append(reads, i)
		default:
			rest = append(rest, i)
		}
	}
	if len(reads) == 0 {
		return
	}
	users := make([][]int, len(b.out))
	for i, a := range b.out {
		for _, n := range a.Needs {
			users[n] = append(users[n], i)
		}
	}
	after := make([]bool, len(b.out))
	for todo := slices.Clone(reads); len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, u := range users[i] {
			if !after[u] {
				after[u] = true
				todo = append(todo, u)
			}
		}
	}
	if rest = slices.DeleteFunc(rest, func(i int) bool { return after[i] }); len(rest) == 0 {
		return
	}
	all := b.add(plan.StepJoin, -1, rest...)
	for _, i := range reads {
		b.out[i].Needs = append(b.out[i].Needs, all)
	}
}

// open reports whether conditions of the instance are still unknown.
func (ip *instancePlan) open() bool {
	unknown := func(o eval.Outcome) bool { return o.Status == eval.Unknown }
	return slices.ContainsFunc(ip.pre, unknown) || slices.ContainsFunc(ip.post, unknown)
}

// needs returns the distinct actions behind the nodes that were read.
func (b *actionList) needs(reads []demand.Read, self int) []int {
	var out []int
	for _, r := range reads {
		if i := b.need(r.Node); i >= 0 && i != self {
			out = append(out, i)
		}
	}
	if len(out) > 1 {
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}

// need returns the action behind one node: the node's own action, the only action that it
// reads, or a join of several. It returns -1 if there is none.
func (b *actionList) need(n *demand.Node) int {
	if i, ok := b.byNode[n]; ok {
		return i
	}
	b.byNode[n] = -1 // ends the recursion in a cycle, which was reported
	i := -1
	if d, ok := n.What.(*eval.Desired); ok && n == d.Node() {
		if ip := b.p.found.instance(d); ip != nil {
			i = ip.order
		}
	}
	if i < 0 {
		switch list := b.needs(n.Reads(), -1); len(list) {
		case 0:
		case 1:
			i = list[0]
		default:
			i = b.add(plan.StepJoin, -1, list...)
		}
	}
	b.byNode[n] = i
	return i
}

// backward adds the deletes and their needs.
func (b *actionList) backward() {
	forward := make([]int, len(b.plan.Changes))
	for i := range forward {
		forward[i] = -1
	}
	for i, a := range b.out {
		if a.Change >= 0 {
			forward[a.Change] = i
		}
	}
	hs := make([]halves, len(b.plan.Changes))
	gone := map[addr.ConfigResource]bool{} // blocks with an object that is deleted
	for i, c := range b.plan.Changes {
		hs[i] = halves{forward[i], -1}
		if c.Addr.Resource.Mode != addr.Managed {
			continue
		}
		switch {
		case c.Op == plan.Delete && c.Deposed != "":
			hs[i].delete = b.add(plan.StepDeleteDeposed, i)
		case c.Op == plan.Delete:
			hs[i].delete = b.add(plan.StepDelete, i)
		case c.Op == plan.Forget:
			hs[i].delete = b.add(plan.StepForget, i)
		case c.Op == plan.DeleteThenCreate:
			hs[i].delete = b.add(plan.StepDelete, i)
			b.addNeed(hs[i].forward, hs[i].delete)
		case c.Op == plan.ForgetThenCreate:
			hs[i].delete = b.add(plan.StepForget, i)
			b.addNeed(hs[i].forward, hs[i].delete)
		case b.p.found.keepOld[c]:
			continue
		case c.Op == plan.CreateThenDelete:
			hs[i].delete = b.add(plan.StepDeleteDeposed, i, hs[i].forward)
		default:
			continue
		}
		gone[c.Addr.Config()] = true
	}
	if len(gone) > 0 {
		b.order(hs, gone)
	}
}

func (b *actionList) addNeed(action, on int) {
	if action >= 0 && on >= 0 {
		b.out[action].Needs = append(b.out[action].Needs, on)
	}
}

// dependents are the actions on everything that depends on a resource block.
type dependents struct {
	deletes, makes group
	later          group // deletes of dependents according to the current configuration
	users          []int // actions that produce current dependents
	all            group // the union of the three; computed on demand
}

// every returns all actions on dependents of the block.
func (d *dependents) every() *group {
	if d.all.of == nil {
		d.all.of = slices.Concat(d.deletes.of, d.makes.of, d.users)
	}
	return &d.all
}

// A group is a set of actions that many other actions may need.
type group struct {
	of      []int
	settled bool // of is complete, sorted and without duplicates
	join    int  // the action that joins the group; 0 until it is needed, since a join is never the first action
}

// order adds the needs of deletes.
func (b *actionList) order(hs []halves, gone map[addr.ConfigResource]bool) {
	by := make(map[addr.ConfigResource]*dependents, len(gone))
	for r := range gone {
		by[r] = &dependents{}
	}
	providers := b.providerReads(gone)
	for i, c := range b.plan.Changes {
		prior := b.priorDependencies(c)
		for _, r := range b.laterDependencies(c, prior) {
			if d := by[r]; d != nil && hs[i].delete >= 0 {
				d.later.of = append(d.later.of, hs[i].delete)
			}
		}
		for _, r := range prior {
			d := by[r]
			if d == nil {
				continue
			}
			if hs[i].delete >= 0 {
				d.deletes.of = append(d.deletes.of, hs[i].delete)
			}
			if hs[i].forward >= 0 {
				d.makes.of = append(d.makes.of, hs[i].forward)
			}
		}
		if hs[i].forward >= 0 {
			for _, r := range c.Dependencies {
				if d := by[r]; d != nil {
					d.users = append(d.users, hs[i].forward)
				}
			}
		}
		if hs[i].delete >= 0 {
			for _, r := range providers[c.Provider] {
				by[r].deletes.of = append(by[r].deletes.of, hs[i].delete)
			}
		}
	}
	b.readAfter(hs)
	making := map[addr.Instance]int{} // the action that produces the current object of an instance that loses an object
	for i, c := range b.plan.Changes {
		if hs[i].forward >= 0 && by[c.Addr.Config()] != nil {
			making[c.Addr] = hs[i].forward
		}
	}
	for i, c := range b.plan.Changes {
		if hs[i].delete < 0 {
			continue
		}
		d := by[c.Addr.Config()]
		if c.Op == plan.CreateThenDelete {
			b.needAll(hs[i].delete, d.every())
			continue
		}
		b.needAll(hs[i].delete, &d.deletes)
		if len(d.later.of) > 0 {
			b.soft[hs[i].delete] = b.through(hs[i].delete, &d.later)
		}
		if c.Op == plan.Delete && c.Deposed != "" {
			later := b.through(hs[i].delete, d.every())
			if f, ok := making[c.Addr]; ok {
				later = append(later, f)
			}
			b.soft[hs[i].delete] = append(b.soft[hs[i].delete], later...)
		} else if c.Op == plan.Delete && hs[i].forward < 0 {
			b.soft[hs[i].delete] = append(b.soft[hs[i].delete], b.through(hs[i].delete, &d.makes)...)
		}
	}
}

// readAfter makes data sources wait for the deletes of objects that they refer to.
func (b *actionList) readAfter(hs []halves) {
	var ends map[addr.ConfigResource]*group
	for _, ip := range b.p.found.plans {
		if len(ip.ends) == 0 || ip.order < 0 {
			continue
		}
		if ends == nil {
			ends = map[addr.ConfigResource]*group{}
			for i, c := range b.plan.Changes {
				if hs[i].delete < 0 || hs[i].forward >= 0 {
					continue
				}
				r := c.Addr.Config()
				if ends[r] == nil {
					ends[r] = &group{}
				}
				ends[r].of = append(ends[r].of, hs[i].delete)
			}
		}
		for _, r := range ip.ends {
			if g := ends[r]; g != nil {
				b.soft[ip.order] = append(b.soft[ip.order], b.through(ip.order, g)...)
			}
		}
	}
}

// needAll makes an action need all actions of a group.
func (b *actionList) needAll(action int, g *group) {
	needs := b.through(action, g)
	b.out[action].Needs = append(b.out[action].Needs, needs...)
}

// through returns the needs that make an action wait for a group: its members if they are few,
// otherwise one join. No action needs itself.
func (b *actionList) through(action int, g *group) []int {
	if !g.settled {
		slices.Sort(g.of)
		g.of, g.settled = slices.Compact(g.of), true
	}
	if _, self := slices.BinarySearch(g.of, action); self || len(g.of) <= 2 {
		return slices.DeleteFunc(slices.Clone(g.of), func(i int) bool { return i == action })
	}
	if g.join == 0 {
		g.join = b.add(plan.StepJoin, -1, g.of...)
	}
	return []int{g.join}
}

// providerReads returns, for each provider configuration in use, the resources that it reads
// and that are deleted.
func (b *actionList) providerReads(gone map[addr.ConfigResource]bool) map[addr.ProviderConfig][]addr.ConfigResource {
	out := map[addr.ProviderConfig][]addr.ConfigResource{}
	for pc, node := range b.p.client.Live() {
		for _, r := range readResources(node) {
			if c := r.Addr().Config(); gone[c] {
				out[pc.Addr] = append(out[pc.Addr], c)
			}
		}
	}
	return out
}
