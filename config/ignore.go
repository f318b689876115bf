package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Ignore is a part of an ignore_changes argument that must be evaluated. Exactly one of All, Path,
// Items, Condition and Value is set; an empty list has none of them.
type Ignore struct {
	At        source.Range
	All       bool           // the keyword all
	Path      []IgnoreStep   // an attribute of the resource
	Items     []*Ignore      // the elements of a list, or the arguments of concat
	Condition hcl.Expression // of a conditional expression
	Then      *Ignore
	Else      *Ignore
	Value     hcl.Expression // an expression for the text of paths
	Element   bool           // Value is an element of a list in brackets, so it is the text of one path
}

// IgnoreStep is a step of a path in ignore_changes.
type IgnoreStep struct {
	hcl.Traverser
	Key hcl.Expression // an index that must be evaluated; Traverser is nil
}

// Paths returns the paths without expressions, in all branches of conditional expressions.
func (x *Ignore) Paths() (out []hcl.Traversal) {
	if x == nil {
		return nil
	}
	if x.Path != nil {
		t := make(hcl.Traversal, 0, len(x.Path))
		for _, step := range x.Path {
			if step.Key != nil {
				return nil
			}
			t = append(t, step.Traverser)
		}
		return []hcl.Traversal{t}
	}
	for _, item := range append([]*Ignore{x.Then, x.Else}, x.Items...) {
		out = append(out, item.Paths()...)
	}
	return out
}

// decodeIgnore decodes ignore_changes: the keyword all, a list of attribute paths, or an expression.
func (l *Lifecycle) decodeIgnore(s *Setting) (ds diag.List) {
	x, diags := native(s.Expr)
	if diags.HasErrors() {
		return diag.FromHCL(diags)
	}
	if hcl.ExprAsKeyword(x) == "all" {
		l.IgnoreAll = true
		return nil
	}
	if _, diags := hcl.ExprList(s.Expr); diags.HasErrors() {
		return l.decodeIgnoreExpr(s, x)
	}
	items, ds := list(s.Attribute)
	if ds.HasErrors() {
		return ds
	}
	l.IgnoreChanges = make([]hcl.Traversal, 0, len(items))
	for _, x := range items {
		p, more, ok := ignorePath(x)
		if !ok {
			l.IgnoreChanges = nil
			return l.decodeIgnoreExpr(s, x)
		}
		ds = append(ds, more...)
		if p != nil {
			l.IgnoreChanges = append(l.IgnoreChanges, p)
		}
	}
	return ds
}

// decodeIgnoreExpr decodes ignore_changes if it is an expression. bad is the part that other tools
// reject.
func (l *Lifecycle) decodeIgnoreExpr(s *Setting, bad hcl.Expression) diag.List {
	if !isTofu(s.Range.Filename) {
		return errorAt(diag.CodeConfigIgnoreExpression, bad.Range(), "Invalid ignore_changes expression",
			"In a .tf file, ignore_changes is the keyword all or a list of attributes of the resource, because OpenTofu and Terraform accept nothing else. Terrace evaluates an expression in a .tofu file: rename the file, or set ignore_changes in an override file, such as main_override.tofu. OpenTofu then rejects the configuration.")
	}
	if items, diags := hcl.ExprList(s.Expr); !diags.HasErrors() { // each element, since those in JSON are strings
		out, ds := ignoreItems(items)
		l.Ignore = &Ignore{At: s.Expr.Range(), Items: out}
		return ds
	}
	x, diags := native(s.Expr)
	if diags.HasErrors() {
		return diag.FromHCL(diags)
	}
	out, ds := ignoreList(x)
	l.Ignore = out
	return ds
}

// tree returns an expression in the form that can be inspected, without parentheses.
func tree(x hcl.Expression) hcl.Expression {
	if late, ok := x.(*hclnative.Late); ok {
		x = late.Tree()
	}
	for {
		p, ok := x.(*hclsyntax.ParenthesesExpr)
		if !ok {
			return x
		}
		x = p.Expression
	}
}

// ignoreList decodes an expression for a list of paths.
func ignoreList(x hcl.Expression) (*Ignore, diag.List) {
	x = tree(x)
	out := &Ignore{At: x.Range()}
	if hcl.ExprAsKeyword(x) == "all" {
		out.All = true
		return out, nil
	}
	switch x := x.(type) {
	case *hclsyntax.TupleConsExpr:
		var ds diag.List
		out.Items, ds = ignoreItems(x.ExprList())
		return out, ds
	case *hclsyntax.ConditionalExpr:
		out.Condition = x.Condition
		var ds, more diag.List
		out.Then, ds = ignoreList(x.TrueResult)
		out.Else, more = ignoreList(x.FalseResult)
		return out, append(ds, more...)
	case *hclsyntax.FunctionCallExpr:
		if (x.Name == "concat" || x.Name == "core::concat") && !x.ExpandFinal {
			var ds diag.List
			for _, arg := range x.Args {
				item, more := ignoreList(arg)
				out.Items, ds = append(out.Items, item), append(ds, more...)
			}
			return out, ds
		}
	}
	out.Value = x
	return out, nil
}

func ignoreItems(items []hcl.Expression) (out []*Ignore, ds diag.List) {
	for _, x := range items {
		x, diags := native(x)
		if diags.HasErrors() {
			ds = append(ds, diag.FromHCL(diags)...)
			continue
		}
		item, more := ignoreItem(x)
		out, ds = append(out, item), append(ds, more...)
	}
	return out, ds
}

// ignoreItem decodes an element of a list in brackets. A name is an attribute of the resource, as in
// a static list.
func ignoreItem(x hcl.Expression) (*Ignore, diag.List) {
	x = tree(x)
	out := &Ignore{At: x.Range()}
	if null, ok := x.(*hclsyntax.LiteralValueExpr); ok && null.Val.IsNull() {
		return out, nil
	}
	if p, ds, ok := ignorePath(x); ok {
		for _, step := range p {
			out.Path = append(out.Path, IgnoreStep{Traverser: step})
		}
		return out, ds
	}
	if c, ok := x.(*hclsyntax.ConditionalExpr); ok {
		out.Condition = c.Condition
		var ds, more diag.List
		out.Then, ds = ignoreItem(c.TrueResult)
		out.Else, more = ignoreItem(c.FalseResult)
		return out, append(ds, more...)
	}
	if out.Path = ignoreSteps(x); out.Path == nil {
		out.Value, out.Element = x, true
	}
	return out, nil
}

// ignorePath decodes a path without expressions. It returns nil for a path with an error, and false
// for another expression.
func ignorePath(x hcl.Expression) (hcl.Traversal, diag.List, bool) {
	inner, quoted := unquoted(x)
	if !quoted && isStar(x) || hcl.ExprAsKeyword(inner) == "*" {
		return nil, errorAt(diag.CodeConfigIgnoreStar, x.Range(), "Invalid ignore_changes wildcard",
			"The [\"*\"] form of ignore_changes is no longer understood. Write ignore_changes = all to ignore changes to every attribute."), true
	}
	t, diags := hcl.RelTraversalForExpr(inner)
	if diags.HasErrors() || len(t) == 0 {
		return nil, nil, false
	}
	if quoted {
		return t, quotedReference(x.Range()), true
	}
	return t, nil, true
}

// ignoreSteps decodes a path with expressions as indexes. It returns nil for another expression.
func ignoreSteps(x hcl.Expression) []IgnoreStep {
	x = tree(x)
	switch x := x.(type) {
	case *hclsyntax.IndexExpr:
		if of := ignoreSteps(x.Collection); of != nil {
			return append(of, IgnoreStep{Key: x.Key})
		}
	case *hclsyntax.RelativeTraversalExpr:
		of := ignoreSteps(x.Source)
		if of == nil {
			return nil
		}
		for _, step := range x.Traversal {
			of = append(of, IgnoreStep{Traverser: step})
		}
		return of
	case *hclsyntax.ScopeTraversalExpr:
		t, diags := hcl.RelTraversalForExpr(x)
		if diags.HasErrors() {
			return nil
		}
		var out []IgnoreStep
		for _, step := range t {
			out = append(out, IgnoreStep{Traverser: step})
		}
		return out
	}
	return nil
}

// IgnoredPath parses the text of a path in ignore_changes that an expression returned. at is the
// range of the expression. It returns nil if the text is not a path.
func IgnoredPath(text string, at source.Range) hcl.Traversal {
	t, diags := hclsyntax.ParseTraversalAbs([]byte(text), at.Filename, at.Start)
	if diags.HasErrors() {
		return nil
	}
	out := make(hcl.Traversal, len(t))
	for i, step := range t {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			out[i] = hcl.TraverseAttr{Name: step.Name, SrcRange: at}
		case hcl.TraverseAttr:
			out[i] = hcl.TraverseAttr{Name: step.Name, SrcRange: at}
		case hcl.TraverseIndex:
			out[i] = hcl.TraverseIndex{Key: step.Key, SrcRange: at}
		default:
			return nil
		}
	}
	return out
}

// isStar reports whether an element is the string "*".
func isStar(x hcl.Expression) bool {
	v, diags := x.Value(nil)
	return !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() && v.AsString() == "*"
}
