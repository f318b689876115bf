package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/state"
)

// scopeFilter is what -target and -exclude leave in a plan. With targets, only
// what they name is demanded, and what that needs is planned because it is
// read. With excludes, what they name and everything that depends on it is left
// as state has it.
type scopeFilter struct {
	targets, excludes []addr.Target
	dropped           map[addr.ConfigResource]bool // what depends on something excluded
	also              map[addr.Instance]bool       // destroyed with the targets, since they depend on them
	alsoConfig        map[addr.ConfigResource]bool
}

func newScopeFilter(o eval.Options, targets, excludes []addr.Target) scopeFilter {
	f := scopeFilter{targets: targets, excludes: excludes}
	if len(excludes) == 0 {
		return f
	}
	deps := eval.StaticDependents(o.Tree)
	f.dropped = map[addr.ConfigResource]bool{}
	var queue []addr.ConfigResource
	for _, r := range deps.Resources() {
		for _, x := range excludes {
			if x.ContainsConfig(r) {
				queue = append(queue, deps.Dependents(r)...)
			}
		}
	}
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		if !f.dropped[r] {
			f.dropped[r] = true
			queue = append(queue, deps.Dependents(r)...)
		}
	}
	return f
}

// limited reports whether anything is left out.
func (f *scopeFilter) limited() bool { return len(f.targets)+len(f.excludes) > 0 }

// wants reports whether the driver demands a resource.
func (f *scopeFilter) wants(r *eval.Resource) bool {
	if len(f.targets) == 0 {
		return true
	}
	return f.alsoConfig[r.Addr().Config()] || slices.ContainsFunc(f.targets, func(t addr.Target) bool { return t.ContainsConfig(r.Addr().Config()) })
}

// wantsInstance reports whether the driver demands an instance.
func (f *scopeFilter) wantsInstance(a addr.Instance) bool {
	if len(f.targets) == 0 {
		return true
	}
	return f.also[a] || slices.ContainsFunc(f.targets, func(t addr.Target) bool { return t.Contains(a) })
}

// forDestroy turns the filter round: with a target goes what depends on it, and
// with an exclude stays what it depends on, both as state has it.
func (f *scopeFilter) forDestroy(s *state.State) {
	if len(f.targets) > 0 {
		f.also, f.alsoConfig = map[addr.Instance]bool{}, map[addr.ConfigResource]bool{}
	}
	f.dropped = map[addr.ConfigResource]bool{}
	named := map[addr.ConfigResource]bool{}
	for i := range s.Instances() {
		if slices.ContainsFunc(f.targets, func(t addr.Target) bool { return t.Contains(i) }) {
			named[i.Config()] = true
		}
	}
	for o, obj := range s.Objects() {
		i := o.Instance
		for _, dep := range obj.Dependencies {
			if named[dep] {
				f.also[i] = true
				f.alsoConfig[i.Config()] = true
			}
			if slices.ContainsFunc(f.excludes, func(t addr.Target) bool { return t.Contains(i) }) {
				f.dropped[dep] = true
			}
		}
	}
}

// allows reports whether an instance that was demanded is planned.
func (f *scopeFilter) allows(a addr.Instance) bool {
	if len(f.excludes) == 0 {
		return true
	}
	if f.dropped[a.Config()] {
		return false
	}
	return !slices.ContainsFunc(f.excludes, func(t addr.Target) bool { return t.Contains(a) })
}

// check warns that the plan is not the whole.
func (f *scopeFilter) check() diag.List {
	if !f.limited() {
		return nil
	}
	option := "-target"
	if len(f.excludes) > 0 {
		option = "-exclude"
	}
	return diag.Warnf(nil, "Resource targeting is in effect", "You are creating a plan with the %s option, which means that the result of this plan may not represent all of the changes requested by the current configuration.\n\nThe -target and -exclude options are not for routine use, and are provided only for exceptional situations such as recovering from errors or mistakes, or when Terrace specifically suggests to use them as part of an error message.", option)
}

// checkReplace holds -replace to instances that exist or will.
func (p *planner) checkReplace() diag.List {
	var ds diag.List
	for _, a := range p.in.Replace {
		if a.Resource.Mode != addr.Managed {
			ds = append(ds, diag.Errorf(nil, "Invalid force-replace address", "The -replace option can only be used with managed resources, and %s is not one.", a)...)
			continue
		}
		if p.prior.Instance(a) != nil {
			continue
		}
		if near := p.instancesOf(a); len(near) > 0 {
			ds = append(ds, diag.Warnf(nil, "Incompletely-matched force-replace resource instance", "Your force-replace request for %s doesn't match any resource instance. To force replacement of particular instances, use one or more of the following options instead:\n%s", a, strings.Join(near, "\n"))...)
			continue
		}
		if node := p.in.Eval.Tree.Node(a.Module); node == nil || node.Config.Resources[a.Resource] == nil {
			ds = append(ds, diag.Warnf(nil, "Resource to replace not found", "No resource instance in configuration or state has the address %s.", a)...)
		}
	}
	return ds
}

// mostNear is how many instances a message lists.
const mostNear = 20

// instancesOf lists, as options, the instances in state that an address covers
// if it leaves out keys; failing those, all of the resource in all instances of
// its module.
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
