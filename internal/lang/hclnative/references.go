package hclnative

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// References returns the references in the expressions of the body and its blocks, in
// source order, without building the expressions.
func (b *Body) References() []hcl.Traversal {
	var found refs
	b.refer(&found)
	return found.traversals()
}

func (b *Body) refer(found *refs) {
	for i := range b.Attrs {
		b.referAttr(&b.Attrs[i], found)
	}
	for _, block := range b.Blocks {
		block.Body.refer(found)
	}
}

func (b *Body) referAttr(a *Attr, found *refs) {
	b.late(a).Expr.(*Late).refer(found)
}

func (x *Late) refer(found *refs) {
	p := x.parser()
	before := found.count()
	p.build, p.refs, found.loops = false, found, false
	if _, ok := p.expression(); !ok || found.loops {
		found.all = found.all[:before]
		found.of(x.Tree())
	}
}

// refs collects references during parsing. A nil refs collects nothing.
type refs struct {
	all   []*hclsyntax.ScopeTraversalExpr
	loops bool // a template has a loop, whose variables look like other names
}

func (r *refs) traversals() []hcl.Traversal {
	out := make([]hcl.Traversal, len(r.all))
	for i, x := range r.all {
		out[i] = x.Traversal
	}
	return out
}

func (r *refs) count() int {
	if r == nil {
		return 0
	}
	return len(r.all)
}

func (r *refs) loop() {
	if r != nil {
		r.loops = true
	}
}

// of adds the references of an expression that was built.
func (r *refs) of(x hclsyntax.Expression) {
	for _, ref := range x.Variables() {
		r.all = append(r.all, &hclsyntax.ScopeTraversalExpr{Traversal: ref})
	}
}

// dropName removes the reference of an object key x that is a plain name.
func (r *refs) dropName(before int, x hclsyntax.Expression) {
	if ref, ok := x.(*hclsyntax.ScopeTraversalExpr); ok && r.count() == before+1 && r.all[before] == ref && len(ref.Traversal) == 1 {
		r.all = r.all[:before]
	}
}

// dropLocal removes references to the variables of a loop.
func (r *refs) dropLocal(before int, key, value string) {
	if r == nil {
		return
	}
	own := func(x *hclsyntax.ScopeTraversalExpr) bool {
		name := x.Traversal.RootName()
		return name == value || name == key
	}
	r.all = append(r.all[:before], slices.DeleteFunc(r.all[before:], own)...)
}
