package planner

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// # Replacements that must not be forgotten
//
// The reason for a replacement by -replace or replace_triggered_by exists in one plan only: in
// the next one, the option is not given, and the object that triggered the replacement has no
// changes. A plan that defers such a replacement therefore adds the reason to the object in the
// state (state.Object.Replace). An apply writes that state to the journal before its first
// action, so that a kill at any time leaves either the change that triggers the replacement
// undone, or the reason in the state. The reason disappears with the object, when it is replaced.

// takeReplacements makes the plan replace the objects that an earlier apply left to be replaced.
func (p *planner) takeReplacements() {
	if p.in.Mode != plan.Normal {
		return
	}
	for o, obj := range p.prior.Objects() {
		if obj.Replace == "" || o.Deposed != "" || p.replace[o.Instance] != "" {
			continue
		}
		p.replace[o.Instance] = plan.ReplaceByRequest
		if obj.Replace == state.ReplaceTriggered {
			p.replace[o.Instance] = plan.ReplaceByTriggers
		}
	}
}

// keepReplacements adds the reasons for replacements to the objects in out.Prior. It includes
// objects that the plan itself replaces, because the apply may be killed before it replaces them.
func (p *planner) keepReplacements(out *plan.Plan) {
	if p.in.Eval.Deferring != eval.DeferUnknown || p.in.Mode != plan.Normal {
		return
	}
	why := map[addr.Instance]string{}
	note := func(c *plan.Change) {
		switch {
		case c == nil || !c.Op.IsReplace() || c.Deposed != "":
		case c.Reason == plan.ReplaceByRequest:
			why[c.Addr] = state.ReplaceRequested
		case c.Reason == plan.ReplaceByTriggers:
			why[c.Addr] = state.ReplaceTriggered
		}
	}
	for _, c := range out.Changes {
		note(c)
	}
	later := plan.DeferredInstances(out.Deferred)
	for _, a := range p.in.Replace {
		if later(a) {
			why[a] = state.ReplaceRequested
		}
	}
	for _, d := range out.Deferred {
		note(d.Change)
	}
	d := out.Prior.Edit()
	for a, reason := range why {
		o := addr.Object{Instance: a}
		if obj, pc, ok := out.Prior.Object(o); ok && obj.Replace == "" {
			next := *obj
			next.Replace = reason
			d.Apply(state.Change{Object: o, Provider: pc, New: &next})
		}
	}
	if len(why) > 0 {
		out.Prior = d.Freeze()
	}
}
