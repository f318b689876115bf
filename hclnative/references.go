package hclnative

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// References lists what the expressions of the body and of its blocks refer to, in the
// order of the text, without building them.
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

// refs are references as a parser comes to them. Methods that note something may be
// called of nil, where nothing is to be noted.
type refs struct {
	all   []*hclsyntax.ScopeTraversalExpr
	loops bool // whether a template had a loop, whose variables are not distinguished from other names here
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

// of notes what an expression that was built refers to.
func (r *refs) of(x hclsyntax.Expression) {
	for _, ref := range x.Variables() {
		r.all = append(r.all, &hclsyntax.ScopeTraversalExpr{Traversal: ref})
	}
}

// dropName drops what was noted of a key that is x, if it is a plain name.
func (r *refs) dropName(before int, x hclsyntax.Expression) {
	if ref, ok := x.(*hclsyntax.ScopeTraversalExpr); ok && r.count() == before+1 && r.all[before] == ref && len(ref.Traversal) == 1 {
		r.all = r.all[:before]
	}
}

// dropLocal drops the names of the elements of a loop.
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
