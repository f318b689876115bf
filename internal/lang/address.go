package lang

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

// AddressTraversal converts an expression to an address, such as a.b[each.key]: names and
// indexes. An index may be an expression that ctx can evaluate. If ctx is nil, indexes must be
// constants.
func AddressTraversal(x hcl.Expression, ctx *hcl.EvalContext) (hcl.Traversal, diag.List) {
	if e, ok := x.(*Expr); ok {
		x = e.Expression
	}
	if late, ok := x.(*hclnative.Late); ok {
		x = late.Tree()
	}
	if tr, diags := hcl.AbsTraversalForExpr(x); !diags.HasErrors() {
		return tr, nil
	}
	at := x.Range()
	switch n := x.(type) {
	case *hclsyntax.RelativeTraversalExpr:
		base, ds := AddressTraversal(n.Source, ctx)
		if ds.HasErrors() {
			return nil, ds
		}
		return append(base[:len(base):len(base)], n.Traversal...), ds
	case *hclsyntax.IndexExpr:
		base, ds := AddressTraversal(n.Collection, ctx)
		if ds.HasErrors() {
			return nil, ds
		}
		key, diags := n.Key.Value(ctx)
		if diags.HasErrors() {
			return nil, append(ds, diag.FromHCL(diags)...)
		}
		return append(base[:len(base):len(base)], hcl.TraverseIndex{Key: key, SrcRange: n.SrcRange}), ds
	}
	return nil, diag.Errorf(diag.CodeLangExpression, &at, "Invalid expression", "An address is needed here: names joined by dots, with instance keys in brackets.")
}

// IndexContext resolves the references in the index expressions of an address. The address
// itself does not count as a reference.
func IndexContext(t *demand.Task, s Scope, x hcl.Expression) (*hcl.EvalContext, diag.List) {
	var keys []*Expr
	for {
		switch n := x.(type) {
		case *Expr:
			x = n.Expression
			continue
		case *hclnative.Late:
			x = n.Tree()
			continue
		case *hclsyntax.RelativeTraversalExpr:
			x = n.Source
			continue
		case *hclsyntax.IndexExpr:
			keys = append(keys, Compile(n.Key))
			x = n.Collection
			continue
		}
		break
	}
	return Context(t, s, keys...)
}
