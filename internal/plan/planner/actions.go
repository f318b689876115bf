package planner

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/plan"
)

// An actionList says in what order changes are carried out:
//
//   - What makes an object (create, update, read) needs what makes the objects
//     that it reads, found over recorded reads; a read of many is one join.
//   - A delete needs the deletes of everything that depended on the object, as
//     state has it, and in a plan to destroy as configuration has it now, and a delete of something that configuration dropped needs
//     the updates of what used to depend on it, which let go of it.
//   - Delete-then-create: the create needs the delete.
//   - Create-then-delete: the delete needs the create, and everything that
//     depends on the object, before or after. So does the delete of a deposed object,
//     where that closes no cycle: it may still be in use, until there is a new object
//     and its users have it.
//   - Data sources of checks are read after everything else, but for the deletes of what
//     they read that is replaced by something new.
//   - What a provider's configuration reads is deleted after everything that is
//     deleted with that provider.
//
// Needs grow with instances plus references: whatever many need, or needs many,
// goes through one join.
type actionList struct {
	p      *planner
	plan   *plan.Plan
	out    []plan.Action
	byNode map[*demand.Node]int
	soft   map[int][]int // needs that give way if they close a cycle
}

// actions makes the list of a plan.
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

// halves are the actions of one change.
type halves struct{ forward, delete int }

// forward adds the actions of every change and the needs of what makes objects.
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

// last lets the data sources of checks wait for all the rest: a check judges what is there
// when everything is done. What waits for them, such as the delete of an object that they read
// until there was a new one, comes after them.
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
		case a.Kind == plan.StepJoin: // what it joins is among the rest
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

// open reports whether conditions of the instance are not known yet.
func (ip *instancePlan) open() bool {
	unknown := func(o eval.Outcome) bool { return o.Status == eval.Unknown }
	return slices.ContainsFunc(ip.pre, unknown) || slices.ContainsFunc(ip.post, unknown)
}

// needs lists the distinct actions behind reads.
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

// need is the action behind one node: its own, the only one that it reads, or a
// join of several; -1 for none.
func (b *actionList) need(n *demand.Node) int {
	if i, ok := b.byNode[n]; ok {
		return i
	}
	b.byNode[n] = -1 // ends a cycle, which was reported
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

// backward adds deletes and their needs.
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
	gone := map[addr.ConfigResource]bool{} // blocks of which something is deleted
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

// dependents are the actions on what depends on a resource block.
type dependents struct {
	deletes, makes group
	later          group // deletes of what depends on it by what configuration says now
	users          []int // what makes objects that depend on it now
	all            group // all three, once asked for
}

// every is every action on what depends on the block.
func (d *dependents) every() *group {
	if d.all.of == nil {
		d.all.of = slices.Concat(d.deletes.of, d.makes.of, d.users)
	}
	return &d.all
}

// A group is actions that many others may need.
type group struct {
	of      []int
	settled bool // of is sorted, without doubles, and complete
	join    int  // the action that joins them, 0 until one is needed: a join is never the first
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
	making := map[addr.Instance]int{} // what makes the current object of an instance that something goes of
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

// readAfter lets data sources be read after the end of what they refer to.
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

// needAll makes an action need a group.
func (b *actionList) needAll(action int, g *group) {
	needs := b.through(action, g)
	b.out[action].Needs = append(b.out[action].Needs, needs...)
}

// through is what an action needs to need a group: its members where they are
// few, else one join of them. No action needs itself.
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

// providerReads lists, for each configuration in use, the resources it reads that are going away.
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
