package apply

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
)

// openBefore opens the ephemeral resources that the depends_on of an instance or of its module
// refers to, such as a tunnel that is needed without a reference to its value. Ephemeral
// resources in arguments are opened when those are evaluated.
func (a *applier) openBefore(t *demand.Task, d *eval.Desired) diag.List {
	if !a.ephemeral() || !d.Resource.HasDependsOn() {
		return nil
	}
	if !opened(d.Resource.DependsOn(t), map[*demand.Node]bool{}) {
		return demand.Fail()
	}
	return nil
}

// opened reports whether all ephemeral resources that a node reads were opened successfully.
func opened(n *demand.Node, seen map[*demand.Node]bool) bool {
	if seen[n] {
		return true
	}
	seen[n] = true
	for _, r := range n.Reads() {
		switch what := r.Node.What.(type) {
		case *eval.Desired:
			if what.Resource.Config().Addr.Mode != addr.Ephemeral {
				continue // it was created before
			}
			if !r.Node.OK() {
				return false
			}
		case *eval.Resource:
			if what.Config().Addr.Mode != addr.Ephemeral {
				continue
			}
		}
		if !opened(r.Node, seen) {
			return false
		}
	}
	return true
}

// hasEphemeral reports whether a module tree has ephemeral resources.
func hasEphemeral(tree *module.Tree) (found bool) {
	tree.Walk(func(n *module.Node) {
		for r := range n.Config.Resources {
			found = found || r.Mode == addr.Ephemeral
		}
	})
	return found
}
