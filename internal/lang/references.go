package lang

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
)

// looked is the number of steps of a reference that scopes use. They follow it into nested
// attributes to find errors.
const looked = 8

// sameRef reports whether two references are equal in the steps that scopes use.
func sameRef(a, b hcl.Traversal) bool {
	for i := range looked {
		if i == len(a) || i == len(b) {
			return len(a) == len(b)
		}
		if !sameStep(a[i], b[i]) {
			return false
		}
	}
	return true
}

func sameStep(a, b hcl.Traverser) bool {
	x, isIndex := a.(hcl.TraverseIndex)
	y, isToo := b.(hcl.TraverseIndex)
	if isIndex != isToo {
		return false
	}
	if isIndex {
		return x.Key.RawEquals(y.Key)
	}
	return addr.StepName(a) == addr.StepName(b)
}

// refKey returns a key that is equal for references that sameRef considers equal.
func refKey(ref hcl.Traversal) string {
	if len(ref) > looked {
		ref = ref[:looked]
	}
	return addr.Text(ref)
}

// parts collects the references and function calls of an expression. JSON expressions do not
// expose their templates, but list both.
func (f *finder) parts(x hcl.Expression) {
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		if value.Bounded(x.Val) != nil {
			f.huge = x
		}
		return
	case hclsyntax.Node:
		f.look(x)
		return
	case interface{ Functions() []hcl.Traversal }:
		for _, call := range x.Functions() {
			f.calls = append(f.calls, call.RootName())
		}
	default:
		f.calls = []string{"?"} // unknown kind of expression: not constant
	}
	f.refs = slices.Clone(x.Variables())
}

// finder collects references and calls. The variables of a for expression do not count as
// references in it.
type finder struct {
	refs  []hcl.Traversal
	calls []string
	huge  *hclsyntax.LiteralValueExpr // a number that is too large to print; nil if there is none
	local []map[string]struct{}
	loops *value.Loops // nil if there are none
}

// look visits a node. It handles common kinds of nodes without HCL's walk.
func (f *finder) look(n hclsyntax.Node) {
	switch n := n.(type) {
	case *hclsyntax.LiteralValueExpr:
		if f.huge == nil && value.Bounded(n.Val) != nil {
			f.huge = n
		}
	case *hclsyntax.ScopeTraversalExpr:
		f.reference(n)
	case *hclsyntax.TemplateExpr:
		for _, part := range n.Parts {
			f.look(part)
		}
	case *hclsyntax.TemplateWrapExpr:
		f.look(n.Wrapped)
	case *hclsyntax.ParenthesesExpr:
		f.look(n.Expression)
	case *hclsyntax.BinaryOpExpr:
		f.look(n.LHS)
		f.look(n.RHS)
	case *hclsyntax.IndexExpr:
		f.look(n.Collection)
		f.look(n.Key)
	case *hclsyntax.FunctionCallExpr:
		f.calls = append(f.calls, n.Name)
		for _, arg := range n.Args {
			f.look(arg)
		}
	case *hclsyntax.TupleConsExpr:
		for _, item := range n.Exprs {
			f.look(item)
		}
	case *hclsyntax.ObjectConsExpr:
		for i := range n.Items {
			if keyName(&n.Items[i]) == "" {
				f.look(n.Items[i].KeyExpr)
			}
			f.look(n.Items[i].ValueExpr)
		}
	default:
		w := finder{huge: f.huge, local: f.local, loops: f.loops} // a separate variable, since it escapes to the heap
		_ = hclsyntax.Walk(n, &w)
		f.refs, f.calls = append(f.refs, w.refs...), append(f.calls, w.calls...)
		f.huge, f.loops = w.huge, w.loops
	}
}

// reference adds a reference, unless it is a variable of a for expression.
func (f *finder) reference(n *hclsyntax.ScopeTraversalExpr) {
	name := n.Traversal.RootName()
	for _, names := range f.local {
		if _, own := names[name]; own {
			return
		}
	}
	if f.refs == nil {
		f.refs = make([]hcl.Traversal, 0, 4)
	}
	f.refs = append(f.refs, n.Traversal)
}

func (f *finder) Enter(n hclsyntax.Node) hcl.Diagnostics {
	switch n := n.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		f.reference(n)
	case *hclsyntax.FunctionCallExpr:
		f.calls = append(f.calls, n.Name)
	case *hclsyntax.LiteralValueExpr:
		f.look(n)
	case *hclsyntax.ForExpr:
		if f.loops == nil {
			f.loops = new(value.Loops)
		}
		f.loops.Enter(n)
	case hclsyntax.ChildScope:
		f.local = append(f.local, n.LocalNames)
		f.loops.Enter(n)
	}
	return nil
}

func (f *finder) Exit(n hclsyntax.Node) hcl.Diagnostics {
	switch n.(type) {
	case *hclsyntax.ForExpr:
		f.loops.Exit(n)
	case hclsyntax.ChildScope:
		f.local = f.local[:len(f.local)-1]
		f.loops.Exit(n)
	}
	return nil
}
