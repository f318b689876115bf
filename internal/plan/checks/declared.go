package checks

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/state"
)

// Complete adds every block of a module tree that has conditions but no result, since state
// lists all of them. If empty reports that such a block has no instances, its status is "pass";
// otherwise it is "unknown".
func Complete(some []state.CheckResult, root *module.Node, empty func(*module.Node, state.CheckKind, string) bool) []state.CheckResult {
	have := make(map[blockKey]bool, len(some))
	for _, c := range some {
		have[blockKey{c.Kind, c.Addr}] = true
	}
	out := some[:len(some):len(some)]
	declared(root, func(n *module.Node, kind state.CheckKind, address string) {
		if !have[blockKey{kind, address}] {
			status := state.CheckUnknown
			if empty != nil && empty(n, kind, address) {
				status = state.CheckPass
			}
			out = append(out, state.CheckResult{Kind: kind, Addr: address, Status: status})
		}
	})
	state.SortChecks(out)
	return out
}

// Unevaluated returns results without a status for all conditions of a module tree, for a plan
// to destroy. whole means that everything is destroyed, including the root outputs.
func Unevaluated(root *module.Node, whole bool) []state.CheckResult {
	var ends []state.CheckResult
	for name, o := range root.Config.Outputs {
		if whole && len(o.Preconditions) > 0 {
			address := "output." + name
			ends = append(ends, state.CheckResult{Kind: state.CheckOutput, Addr: address, Status: state.CheckUnknown,
				Objects: []state.CheckObject{{Addr: address, Status: state.CheckUnknown}}})
		}
	}
	return Complete(ends, root, nil)
}

// blockKey identifies a block that has conditions, or an instance of one.
type blockKey struct {
	kind state.CheckKind
	addr string
}

// declared calls f for every block that has conditions.
func declared(n *module.Node, f func(n *module.Node, kind state.CheckKind, address string)) {
	for a, r := range n.Config.Resources {
		if len(r.Pre)+len(r.Post) > 0 {
			f(n, state.CheckResource, n.Path.Resource(a).String())
		}
	}
	for name, v := range n.Config.Variables {
		if len(v.Validations) > 0 {
			f(n, state.CheckVariable, under(n.Path, "var."+name))
		}
	}
	for name, o := range n.Config.Outputs {
		if len(o.Preconditions) > 0 {
			f(n, state.CheckOutput, under(n.Path, "output."+name))
		}
	}
	for name := range n.Config.Checks {
		f(n, state.CheckBlock, under(n.Path, "check."+name))
	}
	for _, child := range n.Calls {
		declared(child, f)
	}
}

func under(m addr.Module, rest string) string {
	if m == "" {
		return rest
	}
	return string(m) + "." + rest
}

// Values returns the results for the conditions of variables and outputs that were evaluated.
// It evaluates nothing.
func Values(ev *eval.Evaluator) []Result {
	var out []Result
	var walk func(m *eval.Module)
	walk = func(m *eval.Module) {
		out = append(out, values(m, true)...)
		for _, call := range m.Calls() {
			for _, child := range call.Known() {
				walk(child)
			}
		}
	}
	walk(ev.Root)
	return out
}

// values returns the results for the conditions of a module instance's variables and outputs.
// If some is set, outputs without results are omitted.
func values(m *eval.Module, some bool) []Result {
	var out []Result
	for name, outcomes := range m.VariableRules() {
		out = append(out, Result{state.CheckVariable, under(m.Addr.Static(), "var."+name), moduleName(m, "var."+name), outcomes})
	}
	for name, outcomes := range m.OutputRules() {
		if len(outcomes) > 0 || !some {
			out = append(out, Result{state.CheckOutput, under(m.Addr.Static(), "output."+name), moduleName(m, "output."+name), outcomes})
		}
	}
	return out
}

// Unseen returns the result for an instance whose conditions were not evaluated.
func Unseen(r *eval.Resource, a addr.Instance) Result {
	return Result{state.CheckResource, r.Addr().Config().String(), a.String(), []eval.Outcome{{Status: eval.Unknown}}}
}
