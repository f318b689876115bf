package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/state"
)

// scopeFilter implements -target and -exclude. With targets, the plan contains the targets and
// everything that they refer to in the configuration's text, whether the value is read or not,
// as in OpenTofu. With exclusions, the excluded resources and everything that depends on them
// keep their state.
//
// In a plan to destroy the direction is reversed: the targets are destroyed with everything
// that depends on them, and the excluded resources are kept with everything that they depend
// on, both according to state. As in OpenTofu, the refresh before covers the objects that a
// normal plan would cover. Some destroyed objects are therefore not refreshed, and some kept
// ones are.
type scopeFilter struct {
	targets, excludes []addr.Target
	dropped           map[addr.ConfigResource]bool // blocks that depend on excluded ones
	destroy           bool

	needed map[addr.ConfigResource]bool // blocks that the targets depend on in the configuration

	// The following fields are only set in a plan to destroy.
	also       map[placed]bool              // destroyed with the targets because they depend on them
	alsoConfig map[addr.ConfigResource]bool // the blocks of also
	kept       map[placed]bool              // kept because excluded objects depend on them
}

func newScopeFilter(o eval.Options, targets, excludes []addr.Target) scopeFilter {
	f := scopeFilter{targets: targets, excludes: excludes}
	if len(targets)+len(excludes) == 0 {
		return f
	}
	deps := eval.StaticDependents(o.Tree)
	if len(targets) > 0 {
		f.needed = needed(deps, targets)
	}
	if len(excludes) > 0 {
		f.dropped = reach(named(deps, excludes), deps.Dependents)
	}
	return f
}

// Selects returns a test whether a plan with targets and exclusions demands a resource block.
// It is for plans other than plans to destroy. It returns nil if there are no targets and
// exclusions.
func Selects(o eval.Options, targets, excludes []addr.Target) func(addr.ConfigResource) bool {
	if len(targets)+len(excludes) == 0 {
		return nil
	}
	f := newScopeFilter(o, targets, excludes)
	return f.wantsBlock
}

// named returns the resource blocks that any of the targets covers.
func named(deps *eval.Dependents, by []addr.Target) []addr.ConfigResource {
	var out []addr.ConfigResource
	for _, r := range deps.Resources() {
		if slices.ContainsFunc(by, func(t addr.Target) bool { return t.ContainsConfig(r) }) {
			out = append(out, r)
		}
	}
	return out
}

// needed returns the blocks that the targets depend on. References within a targeted module
// instance lead to objects of the same instance, which the target covers. They do not include
// the other instances of the module.
func needed(deps *eval.Dependents, targets []addr.Target) map[addr.ConfigResource]bool {
	dependencies := deps.Dependencies()
	direct := map[addr.ConfigResource]bool{}
	for _, r := range deps.Resources() {
		var covering []addr.Target
		for _, t := range targets {
			if t.ContainsConfig(r) {
				covering = append(covering, t)
			}
		}
		if len(covering) == 0 {
			continue
		}
		for _, dep := range dependencies(r) {
			if slices.ContainsFunc(covering, func(t addr.Target) bool { return !t.IsModule() || !t.ContainsConfig(dep) }) {
				direct[dep] = true
			}
		}
	}
	all := reach(slices.Collect(maps.Keys(direct)), dependencies)
	maps.Copy(all, direct)
	return all
}

// reach returns the blocks that can be reached from others in any number of steps.
func reach(from []addr.ConfigResource, step func(addr.ConfigResource) []addr.ConfigResource) map[addr.ConfigResource]bool {
	seen := map[addr.ConfigResource]bool{}
	for queue := slices.Clone(from); len(queue) > 0; {
		r := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, next := range step(r) {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}

// limited reports whether the plan does not cover everything.
func (f *scopeFilter) limited() bool { return len(f.targets)+len(f.excludes) > 0 }

// wants reports whether the driver demands a resource. It is false for a resource that is
// excluded with all its instances. The instances of such a resource are not evaluated and need
// not be known.
func (f *scopeFilter) wants(r *eval.Resource) bool { return f.wantsBlock(r.Addr().Config()) }

func (f *scopeFilter) wantsBlock(c addr.ConfigResource) bool {
	if !f.destroy && len(f.excludes) > 0 && (f.dropped[c] || slices.ContainsFunc(f.excludes, func(t addr.Target) bool { return coversAll(t, c) })) {
		return false
	}
	if len(f.targets) == 0 {
		return true
	}
	return f.alsoConfig[c] || f.needed[c] || slices.ContainsFunc(f.targets, func(t addr.Target) bool { return t.ContainsConfig(c) })
}

// wantsCall reports whether the driver demands anything in a called module.
func (f *scopeFilter) wantsCall(n *module.Node) bool {
	if !f.limited() || n == nil {
		return true
	}
	for a := range n.Config.Resources {
		if f.wantsBlock(n.Path.Resource(a)) {
			return true
		}
	}
	for _, sub := range n.Calls {
		if f.wantsCall(sub) {
			return true
		}
	}
	return false
}

// coversAll reports whether a target covers a resource block with all its instances.
func coversAll(t addr.Target, c addr.ConfigResource) bool {
	return !t.HasKey && t.ContainsConfig(c) && !slices.ContainsFunc(t.Module.Steps(), func(s addr.Step) bool { return s.Key != addr.Key{} })
}

// wantsInstance reports whether the driver demands an instance.
func (f *scopeFilter) wantsInstance(a addr.Instance) bool {
	return f.needed[a.Config()] || f.target(a)
}

// wantsOrphan reports whether an instance that is not in the configuration is planned. With
// targets this includes instances of blocks that the targets refer to.
func (f *scopeFilter) wantsOrphan(a addr.Instance) bool {
	return f.target(a) || !f.destroy && f.needed[a.Config()]
}

// target reports whether an instance is targeted, or is destroyed with a target.
func (f *scopeFilter) target(a addr.Instance) bool {
	return len(f.targets) == 0 || f.also[placed{a.Config(), a.Module}] || slices.ContainsFunc(f.targets, func(t addr.Target) bool { return t.Contains(a) })
}

// forDestroy reverses the filter for a plan to destroy. read reports whether a data source is
// read before the destroy, even if it is not in state.
func (f *scopeFilter) forDestroy(s *state.State, read func(addr.ConfigResource) bool) {
	f.destroy = true
	uses := make(map[addr.ConfigResource][]addr.ConfigResource)
	users := make(map[addr.ConfigResource][]addr.ConfigResource)
	var targeted, excluded []placed
	last := make(map[addr.ConfigResource]addr.ConfigResource) // the last user of the block that was added
	for x, obj := range s.Objects() {
		c := x.Instance.Config()
		if slices.ContainsFunc(f.targets, func(t addr.Target) bool { return t.Contains(x.Instance) }) {
			targeted = append(targeted, placed{c, x.Instance.Module})
		}
		if slices.ContainsFunc(f.excludes, func(t addr.Target) bool { return t.Contains(x.Instance) }) {
			excluded = append(excluded, placed{c, x.Instance.Module})
		}
		for _, dep := range obj.Dependencies {
			if last[dep] != c { // instances of one block are adjacent
				last[dep] = c
				uses[c], users[dep] = append(uses[c], dep), append(users[dep], c)
			}
		}
	}
	for c := range users {
		for _, t := range f.targets {
			if c.Resource.Mode == addr.Data && !t.HasKey && t.ContainsConfig(c) && t.Module.Static() == c.Module && read(c) {
				targeted = append(targeted, placed{c, t.Module})
			}
		}
	}
	where := placesOf(s)
	f.kept = where.reach(excluded, uses)
	if len(f.targets) == 0 {
		return
	}
	f.also = where.reach(targeted, users)
	f.alsoConfig = map[addr.ConfigResource]bool{}
	for at := range f.also {
		f.alsoConfig[at.block] = true
	}
}

// allows reports whether a demanded instance is planned. In a plan to destroy the instance must
// be destroyed or refreshed.
func (f *scopeFilter) allows(a addr.Instance) bool {
	if f.destroy {
		return f.goes(a) || f.looksAt(a)
	}
	return !f.left(a)
}

// left reports whether an instance is excluded in a plan that does not destroy.
func (f *scopeFilter) left(a addr.Instance) bool {
	return len(f.excludes) > 0 && (f.dropped[a.Config()] || slices.ContainsFunc(f.excludes, func(t addr.Target) bool { return t.Contains(a) }))
}

// goes reports whether a plan to destroy destroys an instance.
func (f *scopeFilter) goes(a addr.Instance) bool {
	return f.target(a) && !f.kept[placed{a.Config(), a.Module}] && !slices.ContainsFunc(f.excludes, func(t addr.Target) bool { return t.Contains(a) })
}

// looksAt reports whether an instance is refreshed. A plan to destroy refreshes the instances
// that a normal plan would refresh.
func (f *scopeFilter) looksAt(a addr.Instance) bool {
	if !f.destroy {
		return true
	}
	if f.left(a) {
		return false
	}
	return len(f.targets) == 0 || f.needed[a.Config()] || slices.ContainsFunc(f.targets, func(t addr.Target) bool { return t.Contains(a) })
}

// check warns that the plan does not cover everything.
func (f *scopeFilter) check() diag.List {
	if !f.limited() {
		return nil
	}
	return diag.Warnf(diag.CodePlanTargeting, nil, "Resource targeting is in effect", "You are creating a plan with either the -target option or the -exclude option, which means that the result of this plan may not represent all of the changes requested by the current configuration.\n\nThe -target and -exclude options are not for routine use, and are provided only for exceptional situations such as recovering from errors or mistakes, or when Terrace specifically suggests to use it as part of an error message.")
}

// checkMoved checks that targets and exclusions cover both addresses of a moved instance: the
// instance moves in state whether it is planned or not.
func (f *scopeFilter) checkMoved(from map[addr.Instance]addr.Instance) diag.List {
	if !f.limited() || len(from) == 0 {
		return nil
	}
	covers := func(a addr.Instance) func(addr.Target) bool { return func(t addr.Target) bool { return t.Contains(a) } }
	need, drop := map[string]bool{}, map[string]bool{}
	for to, was := range from {
		for _, a := range []addr.Instance{to, was} {
			if len(f.targets) > 0 && !slices.ContainsFunc(f.targets, covers(a)) {
				need[a.String()] = true
			}
			for _, t := range f.excludes {
				if t.Contains(a) {
					drop[t.String()] = true
				}
			}
		}
	}
	options := func(name string, of map[string]bool) string {
		var b strings.Builder
		for _, a := range slices.Sorted(maps.Keys(of)) {
			fmt.Fprintf(&b, "\n  %s=%q", name, a)
		}
		return b.String()
	}
	const moved = "Resource instances in your current state have moved to new addresses in the latest configuration. Terrace must include those resource instances while planning in order to ensure a correct result, but "
	switch {
	case len(need) > 0:
		return diag.Errorf(diag.CodePlanMovedExcluded, nil, "Moved resource instances excluded by targeting", moved+"your -target=... options do not fully cover all of those resource instances.\n\nTo create a valid plan, either remove your -target=... options altogether or add the following additional target options:%s\n\nNote that adding these options may include further additional resource instances in your plan, in order to respect object dependencies.", options("-target", need))
	case len(drop) > 0:
		return diag.Errorf(diag.CodePlanMovedExcluded, nil, "Moved resource instances excluded by targeting", moved+"your -exclude=... options exclude some of those resource instances.\n\nTo create a valid plan, either remove your -exclude=... options altogether or just specifically remove the following options:%s\n\nNote that removing these options may include further additional resource instances in your plan, in order to respect object dependencies.", options("-exclude", drop))
	}
	return nil
}

// checkReplace returns errors for -replace addresses of instances that neither exist nor will
// exist.
func (p *planner) checkReplace() diag.List {
	var ds diag.List
	for _, a := range p.in.Replace {
		if a.Resource.Mode != addr.Managed {
			ds = append(ds, diag.Errorf(diag.CodePlanReplaceAddress, nil, "Invalid force-replace address", "The -replace option can only be used with managed resources, and %s is not one.", a)...)
			continue
		}
		if p.prior.Instance(a) != nil {
			continue
		}
		if near := p.instancesOf(a); len(near) > 0 {
			ds = append(ds, diag.Warnf(diag.CodePlanReplaceKey, nil, "Incompletely-matched force-replace resource instance", "Your force-replace request for %s doesn't match any resource instance. To force replacement of particular instances, use one or more of the following options instead:\n%s", a, strings.Join(near, "\n"))...)
			continue
		}
		if node := p.in.Eval.Tree.Node(a.Module); node == nil || node.Config.Resources[a.Resource] == nil {
			ds = append(ds, diag.Warnf(diag.CodePlanReplaceNotFound, nil, "Resource to replace not found", "No resource instance in configuration or state has the address %s.", a)...)
		}
	}
	return ds
}

// mostNear is the maximum number of instances in a message.
const mostNear = 20

// instancesOf returns, as options, the instances in state that match an address without keys.
// If there are none, it returns those of the resource in all instances of its module.
func (p *planner) instancesOf(a addr.Instance) []string {
	var covered, others []string
	if p.prior == nil {
		return nil
	}
	t := addr.Target{Module: a.Module, Resource: a.Resource, Key: a.Key, HasKey: a.Key != addr.Key{}}
	for i := range p.prior.Instances() {
		if i.Resource != a.Resource || i.Module.Static() != a.Module.Static() {
			continue
		}
		list := &others
		if t.Contains(i) {
			list = &covered
		}
		if *list = append(*list, fmt.Sprintf("  -replace=%q", i.String())); len(*list) > mostNear {
			(*list)[mostNear] = "  and more"
			*list = (*list)[:mostNear+1]
		}
	}
	if len(covered) > 0 {
		return covered
	}
	return others
}
