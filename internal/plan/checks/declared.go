package checks

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/state"
)

// Complete adds to some results every block of a module tree that has conditions
// and of which there is none: state names them all, whatever was evaluated. Those of
// which none is wanted pass, as empty tells; of the others nothing is known.
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

// Unevaluated is what a plan to destroy says of the conditions of a module tree:
// nothing. whole tells that everything goes, the outputs of the root among it.
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

// blockKey names a block that has conditions, or an instance of one.
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

// Values is what came of the conditions of variables and outputs, as far as they
// were evaluated already: nothing is demanded.
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

// values is what came of the conditions of a module instance's variables and
// outputs; some leaves out the outputs of which nothing came.
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

// Unseen is what is known of an instance whose conditions were not evaluated.
func Unseen(r *eval.Resource, a addr.Instance) Result {
	return Result{state.CheckResource, r.Addr().Config().String(), a.String(), []eval.Outcome{{Status: eval.Unknown}}}
}
