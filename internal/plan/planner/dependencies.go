package planner

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
)

// dependencies computes the resources that each resource depends on, directly and indirectly,
// from the recorded reads. Equal sets are shared: most nodes read what another node reads
// already, so each union is computed once.
type dependencies struct {
	ids     map[addr.ConfigResource]int32
	names   []addr.ConfigResource
	direct  map[*demand.Node]*depSet
	all     map[*eval.Resource]*depSet
	configs map[*eval.Resource]addr.ConfigResource
	unions  map[[2]*depSet]*depSet
	static  map[addr.ModuleInstance]addr.Module
	total   int    // number of ids in all closures, counting shared ones once
	met     []bool // by id, used by gather; all false otherwise
	sorted  int32  // ids below this number are in the order of names

	tree    *module.Tree
	written func(addr.ConfigResource) []addr.ConfigResource // dependencies according to the configuration's text; nil until needed
	outputs func(addr.Module, string) []addr.ConfigResource // dependencies of an output according to the text; nil until needed
}

// depSet is an immutable set of resource blocks.
type depSet struct {
	ids    []int32 // sorted
	refs   []*eval.Resource
	list   []addr.ConfigResource // created on demand
	closed *depSet               // closure over dependencies; nil until needed
}

// maxTotal is the maximum number of resource blocks in all dependency lists together. Without
// it, state and journal grow with the square of a chain's length: a chain of 10,000 resources
// has 50 million entries, and a million entries are 40 MB of state. Above the limit a resource
// keeps only its direct dependencies. They order a destroy just as well if all of them are in
// state.
const maxTotal = 1_000_000

// newDependencies returns the dependencies for a plan of about n instances.
func newDependencies(tree *module.Tree, n int) *dependencies {
	return &dependencies{
		tree: tree,
		ids:  make(map[addr.ConfigResource]int32, n), direct: make(map[*demand.Node]*depSet, n), all: make(map[*eval.Resource]*depSet, n),
		configs: make(map[*eval.Resource]addr.ConfigResource, n), unions: map[[2]*depSet]*depSet{},
		static: map[addr.ModuleInstance]addr.Module{},
	}
}

var emptySet = &depSet{}

// know assigns ids to resource blocks in the order of their names, before all others. Sets that
// contain only these need no sorting. The order of the plans does not matter.
func (d *dependencies) know(all []*instancePlan) {
	type named struct {
		text  string
		block addr.ConfigResource
	}
	blocks := make([]named, 0, len(all))
	for _, ip := range all {
		n := len(d.configs)
		if c := d.config(ip.d.Resource); len(d.configs) > n {
			blocks = append(blocks, named{c.String(), c})
		}
	}
	slices.SortFunc(blocks, func(a, b named) int { return strings.Compare(a.text, b.text) })
	for _, b := range blocks {
		d.id(b.block)
	}
	d.sorted = int32(len(d.names))
}

func (d *dependencies) id(c addr.ConfigResource) int32 {
	id, ok := d.ids[c]
	if !ok {
		id = int32(len(d.names))
		d.ids[c] = id
		d.names = append(d.names, c)
	}
	return id
}

func (d *dependencies) config(r *eval.Resource) addr.ConfigResource {
	c, ok := d.configs[r]
	if !ok {
		m := r.Mod.Addr
		path, known := d.static[m]
		if !known {
			path = m.Static()
			d.static[m] = path
		}
		c = path.Resource(r.Config().Addr)
		d.configs[r] = c
	}
	return c
}

func (d *dependencies) single(r *eval.Resource) *depSet {
	id := d.id(d.config(r))
	// Instances of a module share block names, so each resource is a separate reference.
	return &depSet{ids: []int32{id}, refs: []*eval.Resource{r}}
}

func (d *dependencies) union(a, b *depSet) *depSet {
	if a == b || len(b.ids) == 0 {
		return a
	}
	if len(a.ids) == 0 {
		return b
	}
	k := [2]*depSet{a, b}
	if u := d.unions[k]; u != nil {
		return u
	}
	u := &depSet{ids: mergeIDs(a.ids, b.ids)}
	u.refs = joinRefs(a.refs, b.refs)
	if len(u.ids) == len(a.ids) && len(u.refs) == len(a.refs) {
		u = a
	}
	d.unions[k] = u
	return u
}

// joinRefs returns the union of a and b. It returns a itself if that contains all of b.
func joinRefs(a, b []*eval.Resource) []*eval.Resource {
	has := func(r *eval.Resource) bool { return slices.Contains(a, r) }
	if len(a)*len(b) > 64 {
		all := make(map[*eval.Resource]bool, len(a))
		for _, r := range a {
			all[r] = true
		}
		has = func(r *eval.Resource) bool { return all[r] }
	}
	out := a[:len(a):len(a)] // limits the capacity so that append copies
	for _, r := range b {
		if !has(r) {
			out = append(out, r)
		}
	}
	return out
}

func mergeIDs(a, b []int32) []int32 {
	out := make([]int32, 0, len(a)+len(b))
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] < b[j]:
			out, i = append(out, a[i]), i+1
		case a[i] > b[j]:
			out, j = append(out, b[j]), j+1
		default:
			out, i, j = append(out, a[i]), i+1, j+1
		}
	}
	return append(append(out, a[i:]...), b[j:]...)
}

// reads returns the resources that a node reads, directly or through nodes that are not
// resources.
func (d *dependencies) reads(n *demand.Node) *depSet {
	if s, ok := d.direct[n]; ok {
		return s
	}
	d.direct[n] = emptySet // ends the recursion in a cycle, which was reported
	var sets []*depSet
	for _, r := range n.Reads() {
		if res, ok := r.Node.What.(*eval.Resource); ok {
			one, known := d.direct[r.Node]
			if !known {
				one = d.single(res)
				d.direct[r.Node] = one
			}
			sets = append(sets, one)
			continue
		}
		if call := eval.Completed(r.Node); call != nil && call.Node != nil && len(call.Known()) == 0 {
			sets = append(sets, d.ofModuleWithoutInstances(call.Node))
		}
		if n, name := eval.OutputWithoutInstances(r.Node); n != nil {
			sets = append(sets, d.ofOutputWithoutInstances(n, name))
		}
		if more := d.reads(r.Node); len(more.ids) > 0 {
			sets = append(sets, more)
		}
	}
	s := d.join(sets)
	d.direct[n] = s
	return s
}

// ofModuleWithoutInstances returns the resources in a module without instances and their
// dependencies according to the text. They count as dependencies of whatever depends on the
// module.
func (d *dependencies) ofModuleWithoutInstances(n *module.Node) *depSet {
	if d.written == nil {
		d.written = eval.StaticDependents(d.tree).Dependencies()
	}
	var inside []addr.ConfigResource
	var walk func(*module.Node)
	walk = func(n *module.Node) {
		for a, r := range n.Config.Resources {
			if r.Check == "" { // checks come after everything else
				inside = append(inside, n.Path.Resource(a))
			}
		}
		for _, sub := range n.Calls {
			walk(sub)
		}
	}
	walk(n)
	return d.byText(inside)
}

// ofOutputWithoutInstances returns the resources that an output of a module without instances
// refers to, and their dependencies, according to the text.
func (d *dependencies) ofOutputWithoutInstances(n *module.Node, name string) *depSet {
	if d.written == nil {
		d.written = eval.StaticDependents(d.tree).Dependencies()
	}
	if d.outputs == nil {
		d.outputs = eval.StaticModuleOutputs(d.tree)
	}
	return d.byText(d.outputs(n.Path, name))
}

// byText returns a set of blocks with their dependencies according to the text.
func (d *dependencies) byText(blocks []addr.ConfigResource) *depSet {
	all := reach(blocks, d.written)
	for _, c := range blocks {
		all[c] = true
	}
	s := &depSet{}
	for c := range all {
		s.ids = append(s.ids, d.id(c))
	}
	slices.Sort(s.ids)
	return s
}

// join returns the union of sets. Unions of a few sets are cached by pairs.
func (d *dependencies) join(sets []*depSet) *depSet {
	if len(sets) <= 4 {
		s := emptySet
		for _, x := range sets {
			s = d.union(s, x)
		}
		return s
	}
	out := &depSet{}
	seen := map[*eval.Resource]bool{}
	for _, x := range sets {
		out.ids = append(out.ids, x.ids...)
		for _, r := range x.refs {
			if !seen[r] {
				seen[r] = true
				out.refs = append(out.refs, r)
			}
		}
	}
	slices.Sort(out.ids)
	out.ids = slices.Compact(out.ids)
	return out
}

// own returns the direct dependencies of a resource.
func (d *dependencies) own(r *eval.Resource) *depSet {
	var sets []*depSet
	known := map[*depSet]bool{}
	for _, n := range r.Nodes() {
		if s := d.reads(n); len(s.ids) > 0 && !known[s] {
			known[s] = true
			sets = append(sets, s)
		}
	}
	return d.join(sets)
}

// of returns the direct and indirect dependencies of a resource.
func (d *dependencies) of(r *eval.Resource) *depSet {
	if s, ok := d.all[r]; ok {
		return s
	}
	d.all[r] = emptySet
	s := d.closure(d.own(r))
	if id, ok := d.ids[d.config(r)]; ok {
		if i, found := slices.BinarySearch(s.ids, id); found {
			s = &depSet{ids: slices.Delete(slices.Clone(s.ids), i, i+1)}
		}
	}
	d.all[r] = s
	return s
}

// closure returns a set with the dependencies of its resources. The result is computed once for
// each set, since many resources read the same ones.
func (d *dependencies) closure(direct *depSet) *depSet {
	switch {
	case len(direct.refs) == 0:
		return direct // direct may be the shared empty set
	case direct.closed != nil:
		return direct.closed
	}
	direct.closed = direct // ends the recursion in a cycle, which was reported
	used := make([]dependency, 0, len(direct.refs))
	for _, r := range direct.refs {
		if more := d.of(r); len(more.ids) > 0 {
			used = append(used, dependency{d.ids[d.config(r)], more})
		}
	}
	if len(used) == 0 || d.total > maxTotal {
		return direct
	}
	s := &depSet{ids: d.gather(direct, used)}
	direct.closed = s
	d.total += len(s.ids)
	return s
}

// dependency is a resource that is read, with its own dependencies.
type dependency struct {
	id  int32
	all *depSet
}

// gather returns the union of a set with the dependencies of its resources. It starts with the
// largest, so that resources that are contained in it add nothing.
func (d *dependencies) gather(direct *depSet, used []dependency) []int32 {
	if len(d.met) < len(d.names) {
		d.met = make([]bool, 2*len(d.names))
	}
	out := make([]int32, 0, len(direct.ids)+len(used[0].all.ids))
	add := func(ids []int32) {
		for _, id := range ids {
			if !d.met[id] {
				d.met[id] = true
				out = append(out, id)
			}
		}
	}
	slices.SortStableFunc(used, func(a, b dependency) int { return len(b.all.ids) - len(a.all.ids) })
	for _, u := range used {
		if !d.met[u.id] {
			add(u.all.ids)
		}
	}
	add(direct.ids)
	for _, id := range out {
		d.met[id] = false
	}
	slices.Sort(out)
	return out
}

// ofInstance returns the dependencies of an instance as they are stored in state: resource
// blocks, sorted.
func (d *dependencies) ofInstance(w *eval.Desired) []addr.ConfigResource {
	s := d.of(w.Resource)
	if s.list == nil && len(s.ids) > 0 {
		s.list = make([]addr.ConfigResource, len(s.ids))
		for i, id := range s.ids {
			s.list[i] = d.names[id]
		}
		if s.ids[len(s.ids)-1] >= d.sorted {
			slices.SortFunc(s.list, compareConfigResources)
		}
	}
	return s.list
}

func compareConfigResources(a, b addr.ConfigResource) int {
	as, bs := a.String(), b.String()
	switch {
	case as < bs:
		return -1
	case as > bs:
		return 1
	}
	return 0
}
