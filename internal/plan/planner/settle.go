package planner

import (
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/plan"
)

// settle decides the order of replacements: create_before_destroy also applies to everything
// that such a resource depends on.
func (p *planner) settle(deps *dependencies) {
	needs := p.written(deps)
	for _, ip := range p.found.plans {
		if ip.d.Addr().Resource.Mode != addr.Managed {
			continue
		}
		life := ip.d.Resource.Config().Lifecycle
		first := life.CreateBeforeDestroy != nil && *life.CreateBeforeDestroy || len(needs.forced) > 0 && needs.forced[deps.config(ip.d.Resource)]
		if p.scope.looksAt(ip.d.Addr()) {
			ip.promise(first, life.Destroy != nil && !*life.Destroy, needs.of)
		}
		c := ip.change
		if c == nil {
			continue
		}
		if first {
			c.ForcedCBD = true
		}
		if c.Op == plan.DeleteThenCreate && c.ForcedCBD {
			c.Op = plan.CreateThenDelete
		}
	}
}

// promise stores in state how the object must be destroyed: its order, dependencies and
// lifecycle as currently configured. The block may no longer exist when the object is
// destroyed.
func (ip *instancePlan) promise(createFirst, skip bool, needs func(*eval.Desired, []addr.ConfigResource) []addr.ConfigResource) {
	o := ip.refreshed
	if o == nil || !ip.looked || ip.deferred { // a deferred object stays as it is
		return
	}
	all := needs(ip.d, o.Dependencies)
	if o.CreateBeforeDestroy == createFirst && o.SkipDestroy == skip && slices.Equal(all, o.Dependencies) {
		return
	}
	kept := *o
	kept.CreateBeforeDestroy, kept.SkipDestroy, kept.Dependencies = createFirst, skip, all
	ip.refreshed, ip.touched = &kept, true
}

// needs is the order of operations according to the configuration.
type needs struct {
	forced map[addr.ConfigResource]bool // blocks to which create_before_destroy applies because of a dependent
	// of returns the dependencies of an instance if they differ from those in state.
	of func(d *eval.Desired, have []addr.ConfigResource) []addr.ConfigResource
}

// written returns the needs according to recorded reads. Where the configuration was not
// evaluated, it uses the configuration's text.
func (p *planner) written(deps *dependencies) needs {
	switch {
	case p.in.Mode == plan.Normal:
		return needs{p.forced(deps), func(d *eval.Desired, _ []addr.ConfigResource) []addr.ConfigResource { return deps.ofInstance(d) }}
	case p.in.Mode == plan.Destroy && p.in.SkipRefresh:
		return needs{nil, func(_ *eval.Desired, have []addr.ConfigResource) []addr.ConfigResource { return have }}
	}
	blocks := eval.StaticDependents(p.in.Eval.Tree)
	reads := blocks.Dependencies()
	there := map[addr.ConfigResource]bool{}
	for _, c := range blocks.Resources() {
		there[c] = true
	}
	gone := func(c addr.ConfigResource) bool { return !there[c] }
	var first []addr.ConfigResource
	for _, ip := range p.found.plans {
		if cbd := ip.d.Resource.Config().Lifecycle.CreateBeforeDestroy; cbd != nil && *cbd {
			first = append(first, ip.d.Addr().Config())
		}
	}
	closed := map[addr.ConfigResource][]addr.ConfigResource{}
	return needs{reach(first, reads), func(d *eval.Desired, have []addr.ConfigResource) []addr.ConfigResource {
		c := d.Addr().Config()
		if covers(have, reads(c)) && !slices.ContainsFunc(have, gone) {
			return have
		}
		all, done := closed[c]
		if !done && deps.total > maxTotal {
			return have
		}
		if !done {
			all = slices.SortedFunc(maps.Keys(reach([]addr.ConfigResource{c}, reads)), compareConfigResources)
			deps.total += len(all)
			closed[c] = all
		}
		return all
	}}
}

// covers reports whether a list contains all elements of another.
func covers(have, all []addr.ConfigResource) bool {
	if len(all) == 0 {
		return true
	}
	missing := make(map[addr.ConfigResource]bool, len(all))
	for _, c := range all {
		missing[c] = true
	}
	for _, c := range have {
		delete(missing, c)
	}
	return len(missing) == 0
}

// forced returns the direct and indirect dependencies of resources with create_before_destroy.
// It follows the resources one by one, because the lists of dependencies may be truncated (see
// maxTotal).
func (p *planner) forced(deps *dependencies) map[addr.ConfigResource]bool {
	var todo []*eval.Resource
	met := map[*eval.Resource]bool{}
	for _, ip := range p.found.plans {
		r := ip.d.Resource
		if cbd := r.Config().Lifecycle.CreateBeforeDestroy; cbd != nil && *cbd && !met[r] {
			met[r] = true
			todo = append(todo, r)
		}
	}
	forced := map[addr.ConfigResource]bool{}
	read := map[*depSet]bool{}
	for len(todo) > 0 {
		s := deps.own(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		if read[s] {
			continue
		}
		read[s] = true
		for _, r := range s.refs {
			forced[deps.config(r)] = true
			if !met[r] {
				met[r] = true
				todo = append(todo, r)
			}
		}
	}
	return forced
}
