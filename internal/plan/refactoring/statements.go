package refactoring

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// moveStatement is one moved block, or one element of its for_each, in a module. Its addresses
// are relative to instances of the module.
type moveStatement struct {
	in       *module.Node
	from, to addr.Target
	// exact means that the statement is about one instance. One of its addresses has a key, so
	// that an address without a key is the instance without a key.
	exact bool
	at    source.Range
}

// moveStatements reads the moved blocks of a module tree.
func moveStatements(tree *module.Tree, early module.Options) ([]*moveStatement, diag.List) {
	var out []*moveStatement
	var ds diag.List
	tree.Walk(func(n *module.Node) {
		for _, m := range n.Config.Moved {
			if m.ForEach != nil {
				more, moreDs := eachMove(n, early, m)
				out, ds = append(out, more...), append(ds, moreDs...)
				continue
			}
			from, fds := ReadAddress(m.From, nil)
			to, tds := ReadAddress(m.To, nil)
			ds = append(append(ds, fds...), tds...)
			if len(fds)+len(tds) == 0 {
				out = append(out, newMove(n, from, to, m.At))
			}
		}
	})
	return out, ds
}

func newMove(n *module.Node, from, to addr.Target, at source.Range) *moveStatement {
	s := &moveStatement{in: n, from: from, to: to, at: at}
	if from.IsModule() {
		s.exact = from.ModuleKey || to.ModuleKey
	} else {
		s.exact = from.HasKey || to.HasKey
	}
	return s
}

// eachMove returns one statement for each element of for_each. Only constants, variables and
// locals may occur in for_each.
func eachMove(n *module.Node, early module.Options, m *config.Moved) ([]*moveStatement, diag.List) {
	var out []*moveStatement
	ds := eachElement(n, early, m.ForEach.Expr, func(ctx *hcl.EvalContext) diag.List {
		f, fds := ReadAddress(m.From, ctx)
		t, tds := ReadAddress(m.To, ctx)
		if len(fds)+len(tds) == 0 {
			out = append(out, newMove(n, f, t, m.At))
		}
		return append(fds, tds...)
	})
	return out, ds
}

// eachElement calls f for each element of a for_each that is known before planning.
func eachElement(n *module.Node, early module.Options, each hcl.Expression, f func(*hcl.EvalContext) diag.List) diag.List {
	v, ds := module.Static(n, each, early)
	at := each.Range()
	if ds.HasErrors() {
		return ds
	}
	if v.IsNull() || !v.CanIterateElements() || v.Type().IsListType() || v.Type().IsTupleType() {
		return diag.Errorf(diag.CodeEvalForEach, &at, "Invalid for_each argument", "The \"for_each\" argument must be a map, or set of strings.")
	}
	for it := v.ElementIterator(); it.Next(); {
		k, el := it.Element()
		if v.Type().IsSetType() {
			k = el
		}
		ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": k, "value": el})}}
		ds = append(ds, f(ctx)...)
	}
	return ds
}

// ReadAddress parses an address whose indexes may be expressions. ctx nil allows only constant
// indexes.
func ReadAddress(x hcl.Expression, ctx *hcl.EvalContext) (addr.Target, diag.List) {
	at := x.Range()
	tr, ds := lang.AddressTraversal(x, ctx)
	if ds.HasErrors() {
		return addr.Target{}, ds
	}
	t, err := addr.TargetFromTraversal(tr)
	if err != nil {
		return addr.Target{}, diag.Errorf(diag.CodeConfigInvalidAddress, &at, "Invalid address", "This is not the address of a resource, a module or an instance of one: %s.", err)
	}
	return t, nil
}
