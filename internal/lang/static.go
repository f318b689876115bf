package lang

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// # Static checks
//
// Most expressions are references, or templates, lists and objects of references. Their errors
// are found by resolving references and checking types. Only expressions that call functions,
// compute or iterate are evaluated. In a scope in which objects are unknown, this finds the
// same errors in all branches.

// Static returns the errors of an expression in a scope in which most values are unknown. It
// evaluates as little as possible. want is as for Eval.
func Static(t *demand.Task, s Scope, e *Expr, want cty.Type) diag.List {
	if e.Constant() {
		_, ds := Eval(t, s, e, want)
		return ds
	}
	if e.tree == nil {
		if v, ok := e.run(t, s); ok && e.bounded(v) == nil {
			if want == cty.DynamicPseudoType || v.Type().Equals(want) {
				return nil
			}
			if out, err := value.Convert(v, want); err == nil && value.Bounded(out) == nil {
				return nil
			}
		}
		return Static(t, s, e.whole(), want)
	}
	x := e.Expression
	if _, late := x.(*hclnative.Late); late {
		x = e.tree.root
	}
	ty, ds := static(t, s, x)
	if ds.HasErrors() || want == cty.DynamicPseudoType || ty == cty.DynamicPseudoType || ty.Equals(want) {
		return ds
	}
	if ty.IsPrimitiveType() && want.IsPrimitiveType() && (want == cty.String || convert.GetConversionUnsafe(ty, want) != nil) {
		return ds
	}
	_, more := Eval(t, s, e, want)
	return append(ds, more...)
}

// static returns the type of an expression; cty.DynamicPseudoType if it is unknown.
func static(t *demand.Task, s Scope, x hcl.Expression) (cty.Type, diag.List) {
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		return x.Val.Type(), nil
	case *hclsyntax.ParenthesesExpr:
		return static(t, s, x.Expression)
	case *hclsyntax.ScopeTraversalExpr:
		return staticRef(t, s, x)
	case *hclsyntax.TemplateExpr:
		ds, plain := staticParts(t, s, x)
		if ds.HasErrors() || plain {
			return cty.String, ds
		}
	case *hclsyntax.TupleConsExpr:
		var ds diag.List
		types := make([]cty.Type, len(x.Exprs))
		for i, item := range x.Exprs {
			var more diag.List
			types[i], more = static(t, s, item)
			ds = append(ds, more...)
		}
		return cty.Tuple(types), ds
	case *hclsyntax.ObjectConsExpr:
		if plainKeys(x) {
			var ds diag.List
			types := make(map[string]cty.Type, len(x.Items))
			for i := range x.Items {
				var more diag.List
				types[keyName(&x.Items[i])], more = static(t, s, x.Items[i].ValueExpr)
				ds = append(ds, more...)
			}
			return cty.Object(types), ds
		}
	}
	v, ds := Eval(t, s, x, cty.DynamicPseudoType)
	return v.Type(), ds
}

// staticParts checks the parts of a template. plain means that all of them can be converted to
// text.
func staticParts(t *demand.Task, s Scope, x *hclsyntax.TemplateExpr) (ds diag.List, plain bool) {
	plain = true
	for _, part := range x.Parts {
		ty, more := static(t, s, part)
		ds = append(ds, more...)
		plain = plain && (ty == cty.DynamicPseudoType || ty.IsPrimitiveType())
	}
	return ds, plain
}

func staticRef(t *demand.Task, s Scope, x *hclsyntax.ScopeTraversalExpr) (cty.Type, diag.List) {
	at := x.SrcRange
	v, used, ds := s.Resolve(t, x.Traversal, &at)
	if ds.HasErrors() {
		return cty.DynamicPseudoType, ds
	}
	out, diags := x.Traversal[used:].TraverseRel(v)
	if diags.HasErrors() { // reported together with the rest
		_, more := Eval(t, s, x, cty.DynamicPseudoType)
		return cty.DynamicPseudoType, append(ds, more...)
	}
	return out.Type(), ds
}

// Static returns the errors of the body's expressions, including those in dynamic blocks, even
// if a dynamic block has no elements.
func (b *Body) Static(t *demand.Task, s Scope) diag.List {
	var ds diag.List
	for i := range b.attrs {
		a := &b.attrs[i]
		switch {
		case a.constant == cty.NilVal:
			ds = append(ds, inAttribute(Static(t, s, a.expr, a.ty), a.name)...)
		case a.readOnly:
			ds = append(ds, a.decided(a.constant)...)
		}
	}
	for i := range b.blocks {
		for j := range b.blocks[i].items {
			it := &b.blocks[i].items[j]
			if it.dynamic == nil {
				ds = append(ds, it.body.Static(t, s)...)
			} else {
				ds = append(ds, it.static(t, s)...)
			}
		}
	}
	return ds
}

// Dynamic reports whether the body contains dynamic blocks.
func (b *Body) Dynamic() bool {
	for i := range b.blocks {
		for j := range b.blocks[i].items {
			if it := &b.blocks[i].items[j]; it.dynamic != nil || it.body.Dynamic() {
				return true
			}
		}
	}
	return false
}

// static is Static for a dynamic block.
func (it *bodyItem) static(t *demand.Task, s Scope) diag.List {
	coll, ds := Eval(t, s, it.dynamic.forEach, cty.DynamicPseudoType)
	if !ds.HasErrors() {
		coll, _ = coll.Unmark()
		if at := it.dynamic.forEach.Range(); !coll.CanIterateElements() && !(!coll.IsKnown() && couldIterate(coll.Type())) {
			ds = append(ds, notIterable(coll, &at)...)
		}
	}
	child := iteration{Scope: s, name: it.dynamic.iterator, value: cty.ObjectVal(map[string]cty.Value{"key": cty.DynamicVal, "value": cty.DynamicVal})}
	for _, l := range it.dynamic.labels {
		ds = append(ds, Static(t, child, l, cty.String)...)
	}
	return append(ds, it.body.Static(t, child)...)
}
