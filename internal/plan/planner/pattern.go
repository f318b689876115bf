package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// MatchPatterns replaces each pattern in the targets and exclusions of a plan by what it matches
// in the configuration and in the state. A pattern that matches nothing remains, and then covers
// nothing. The messages list what each pattern matches.
func MatchPatterns(tree *module.Tree, prev *state.State, o plan.Options) (plan.Options, diag.List) {
	isPattern := func(t addr.Target) bool { return t.Pattern != "" }
	if !slices.ContainsFunc(o.Targets, isPattern) && !slices.ContainsFunc(o.Excludes, isPattern) {
		return o, nil
	}
	var blocks []addr.ConfigResource
	tree.Walk(func(n *module.Node) {
		for a := range n.Config.Resources {
			blocks = append(blocks, n.Path.Resource(a))
		}
	})
	if prev != nil {
		for a := range prev.Instances() {
			blocks = append(blocks, a.Config())
		}
	}
	var ds diag.List
	expand := func(option string, given []addr.Target) []addr.Target {
		var out []addr.Target
		for _, t := range given {
			if t.Pattern == "" {
				out = append(out, t)
				continue
			}
			seen := map[string]addr.Target{}
			for _, b := range blocks {
				if exact, ok := t.MatchConfig(b); ok {
					seen[exact.String()] = exact
				}
			}
			names := slices.Sorted(maps.Keys(seen))
			for _, name := range names {
				out = append(out, seen[name])
			}
			if len(names) == 0 {
				out = append(out, t)
			}
			ds = append(ds, matched(option, t, names)...)
		}
		return out
	}
	o.Targets, o.Excludes = expand("target", o.Targets), expand("exclude", o.Excludes)
	return o, ds
}

// matchReplace adds the instances in state that patterns of -replace match to those that are
// replaced.
func (p *planner) matchReplace() diag.List {
	var ds diag.List
	for _, t := range p.in.ReplacePatterns {
		var names []string
		for a := range p.prior.Instances() {
			if a.Resource.Mode == addr.Managed && t.Match(a) {
				names = append(names, a.String())
				if p.replace[a] == "" {
					p.replace[a] = plan.ReplaceByRequest
					p.in.Replace = append(p.in.Replace, a)
				}
			}
		}
		ds = append(ds, matched("replace", t, names)...)
	}
	return ds
}

// matched returns a message with the addresses that a pattern matches.
func matched(option string, t addr.Target, names []string) diag.List {
	if len(names) == 0 {
		return diag.Warnf(diag.CodePlanPattern, nil, "Nothing matches the pattern", "Nothing in the configuration or in the state matches -%s=%q.", option, t)
	}
	list := names
	if len(list) > mostNear {
		list = append(slices.Clone(list[:mostNear]), fmt.Sprintf("and %d more", len(names)-mostNear))
	}
	return diag.Warnf(diag.CodePlanPattern, nil, "Option with a pattern", "-%s=%q matches:\n  %s", option, t, strings.Join(list, "\n  "))
}
