package unit

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Handed-in values
//
// Functions such as get_env hand in values. The facts of a computation list them. When the
// value of an argument leaves the evaluation, to become a path, an address or an argument
// of a command, redact passes these values to the loader's Redactor. It also passes the
// argument as a whole, because functions may have changed the value. In messages, the text
// from named replaces such a value: the expression and its range.
//
// Inputs are not redacted that way: they become values of the module, and its messages show
// values that are not sensitive.

// handed is a value that one call handed in.
type handed struct {
	values []string
	shown  string // the text that replaces the value
}

func (h *handed) equals(o *handed) bool {
	return h.shown == o.shown && slices.Equal(h.values, o.values)
}

// maxNamed is the length, in bytes, of the longest expression that named shows.
const maxNamed = 80

// named returns the text that replaces a value in messages: the expression and its range.
func (l *Loader) named(what string, at source.Range) string {
	if rel, err := filepath.Rel(l.env.WorkingDir, at.Filename); err == nil && l.env.WorkingDir != "" && filepath.IsLocal(rel) {
		at.Filename = rel
	}
	return "(" + what + " at " + at.String() + ")"
}

// namedNode returns the replacement text for the value of a node. It contains the
// expression, unless the expression is longer than maxNamed or its text may not be shown.
func (c *evaluator) namedNode(n node) string {
	e, at := n.where()
	if at == nil || e == nil {
		return "(a value that is not shown)"
	}
	what, f := "value", e.file()
	x := exprOf(n)
	if x != nil {
		own := x.At()
		at = &own
	}
	if x != nil && f.Src != nil && at.Start.Line == at.End.Line && at.End.Byte <= len(f.Src.Bytes) && f.Src.Shows(at.Start.Line, at.End.Line) {
		if text := string(f.Src.Bytes[at.Start.Byte:at.End.Byte]); len(text) <= maxNamed {
			what = text
		}
	}
	return c.l.named(what, *at)
}

// exprOf returns the expression of a node, or nil if it does not have exactly one.
func exprOf(n node) *syntax.Expr {
	switch n := n.(type) {
	case *exprNode:
		return n.x
	case *aliasNode:
		return n.whole.x
	case *mapped:
		return exprOf(n.n)
	case *converted:
		return exprOf(n.n)
	}
	return nil
}

// redact hides the handed-in parts of an argument's value in messages. f are the facts of
// its computation.
func (c *evaluator) redact(n node, v cty.Value, f *facts) {
	if f == nil || len(f.handed) == 0 || v == cty.NilVal {
		return
	}
	c.redactPart(n, v, f, 0)
}

// maxRedacted is the depth up to which the parts of an argument are redacted separately.
const maxRedacted = 20

func (c *evaluator) redactPart(n node, v cty.Value, f *facts, depth int) {
	if f == nil || len(f.handed) == 0 {
		return
	}
	if x := exprOf(n); x != nil && x.Kind == syntax.Tuple && depth < maxRedacted {
		e, _ := n.where()
		for _, a := range x.Args {
			c.redactChild(&exprNode{e: e, x: a}, depth)
		}
		return
	}
	if bare, _ := v.Unmark(); depth < maxRedacted && bare.IsKnown() && !bare.IsNull() && (bare.Type().IsObjectType() || bare.Type().IsMapType()) {
		if _, plain := n.(valueNode); !plain {
			one := c.sub(c.leaf, c.full)
			if names, ok := n.keys(one); ok {
				c.redactKeys(n)
				for _, k := range names {
					for _, h := range f.handed {
						h.redactName(c, k)
					}
					if in := n.child(one, k); in != nil {
						c.redactChild(in, depth)
					}
				}
				return
			}
		}
	}
	c.redactWhole(n, v, f)
}

// redactName redacts a key that contains a handed-in value.
func (h *handed) redactName(c *evaluator, name string) {
	if slices.ContainsFunc(h.values, func(v string) bool { return v != "" && strings.Contains(name, v) }) {
		c.hide(name, h.shown)
	}
}

func (c *evaluator) redactChild(n node, depth int) {
	one := c.sub(c.leaf, c.full)
	v := n.value(one)
	if _, plain := n.(valueNode); plain || one.stuck() {
		return
	}
	c.redactPart(n, v, one.facts, depth+1)
}

// redactWhole redacts all strings in a value, the values handed in to it, and the values of
// references that depend on handed-in values.
func (c *evaluator) redactWhole(n node, v cty.Value, f *facts) {
	secret := false
	for _, h := range f.handed {
		for _, text := range h.values {
			secret = secret || text != "" && !c.l.env.Redactor.Public(text)
			c.hide(text, h.shown)
		}
	}
	if !secret {
		return
	}
	e, _ := n.where()
	x := exprOf(n)
	if x == nil {
		c.hideTexts(v, c.namedNode(n))
		return
	}
	for _, ref := range x.Refs {
		if part, shown, ok := c.handedBy(e, ref); ok && x.Kind != syntax.Reference {
			c.hideTexts(part, shown)
		}
	}
	if native, ok := x.Expression.(hclsyntax.Expression); ok {
		c.redactExpr(e, native, v, func() string { return c.namedNode(n) })
		return
	}
	c.hideTexts(v, c.namedNode(n))
}

// handedBy returns the value of a reference and its replacement text. ok is false if no
// part of the value was handed in.
func (c *evaluator) handedBy(e *evaluation, ref hcl.Traversal) (v cty.Value, shown string, ok bool) {
	one := c.sub(c.leaf, c.full)
	r := one.resolve(e, ref)
	if r.n == nil || r.missing != "" || one.stuck() {
		return v, "", false
	}
	v = r.n.value(one)
	return v, c.l.named(syntax.RefText(ref), ref.SourceRange()), !one.stuck() && one.facts != nil && len(one.facts.handed) > 0
}

// redactExpr redacts the strings in the value of an expression that uses handed-in values.
// The elements of a list are redacted separately.
func (c *evaluator) redactExpr(e *evaluation, x hclsyntax.Expression, v cty.Value, shown func() string) {
	bare, _ := v.Unmark()
	if list, ok := x.(*hclsyntax.TupleConsExpr); ok && bare.IsKnown() && !bare.IsNull() && bare.CanIterateElements() && !bare.Type().IsSetType() && bare.LengthInt() == len(list.Exprs) {
		for i, in := range bare.AsValueSlice() {
			at := list.Exprs[i].Range()
			c.redactExpr(e, list.Exprs[i], in, func() string { return c.l.named("value", at) })
		}
		return
	}
	taken := calls(x)
	for _, ref := range x.Variables() {
		if !taken {
			_, _, taken = c.handedBy(e, ref)
		}
	}
	if !taken {
		return
	}
	c.hideTexts(v, shown())
	for _, p := range interpolated(x, v) {
		c.hide(p.text, c.l.named("value", p.at))
	}
}

// calls reports whether an expression calls functions.
func calls(x hclsyntax.Expression) bool {
	w := &callFinder{}
	_ = hclsyntax.Walk(x, w)
	return w.found
}

type callFinder struct{ found bool }

func (w *callFinder) Enter(n hclsyntax.Node) hcl.Diagnostics {
	_, call := n.(*hclsyntax.FunctionCallExpr)
	w.found = w.found || call
	return nil
}

func (w *callFinder) Exit(hclsyntax.Node) hcl.Diagnostics { return nil }

// redactKeys redacts the keys of an object that are computed from handed-in values.
func (c *evaluator) redactKeys(n node) {
	x := exprOf(n)
	if x == nil {
		return
	}
	e, _ := n.where()
	for i := range x.Items {
		if it := &x.Items[i]; it.KeyX != nil {
			c.redactChild(&exprNode{e: e, x: it.KeyX}, 0)
		}
	}
}

// piece is the text that an interpolation in a template produced.
type piece struct {
	text string
	at   source.Range
}

// interpolated returns the texts that the calls in a template produced: the text between
// the literal parts of the value. References are redacted separately.
func interpolated(x hcl.Expression, v cty.Value) []piece {
	tmpl, ok := x.(*hclsyntax.TemplateExpr)
	if v, _ = v.Unmark(); !ok || !v.IsKnown() || !syntax.IsString(v) {
		return nil
	}
	var out []piece
	rest := v.AsString()
	for i, p := range tmpl.Parts {
		if l, ok := p.(*hclsyntax.LiteralValueExpr); ok && syntax.IsString(l.Val) {
			rest = strings.TrimPrefix(rest, l.Val.AsString())
			continue
		}
		text := rest
		if i+1 < len(tmpl.Parts) {
			if l, ok := tmpl.Parts[i+1].(*hclsyntax.LiteralValueExpr); ok && syntax.IsString(l.Val) {
				text, _, _ = strings.Cut(rest, l.Val.AsString())
			}
		}
		if _, ref := p.(*hclsyntax.ScopeTraversalExpr); !ref {
			out = append(out, piece{text, p.Range()})
		}
		rest = strings.TrimPrefix(rest, text)
	}
	return out
}

// hideTexts redacts all strings in a value.
func (c *evaluator) hideTexts(v cty.Value, shown string) {
	v, _ = v.UnmarkDeep()
	_ = cty.Walk(v, func(_ cty.Path, in cty.Value) (bool, error) {
		if in.IsKnown() && syntax.IsString(in) {
			c.hide(in.AsString(), shown)
			c.hide(joinedPath(in.AsString()), shown)
		}
		return true, nil
	})
}

// joinedPath returns a relative path as it appears after joining it with a directory.
func joinedPath(path string) string {
	for {
		rest, up := strings.CutPrefix(path, "../")
		if !up {
			rest, up = strings.CutPrefix(path, "./")
		}
		if !up {
			return path
		}
		path = rest
	}
}

func (c *evaluator) hide(text, shown string) {
	if !c.l.env.Redactor.Public(text) {
		c.l.env.Redactor.Add(text, shown)
	}
}

// quoted returns the text of an argument for a message, in quotation marks. If the value
// was handed in, it returns the expression instead. Unlike the Redactor, which ignores
// short values, it works for values of any length.
func (c *evaluator) quoted(n node, text string) string {
	if n != nil {
		one := c.sub(c.leaf, c.full)
		n.value(one)
		if one.facts != nil && len(one.facts.handed) > 0 {
			return c.namedNode(n)
		}
	}
	return strconv.Quote(text)
}

// notesValue records that an expression of a values or autoinclude file was read. Stack
// files generate these files and write handed-in values into them.
func (c *evaluator) notesValue(e *evaluation, x *syntax.Expr) {
	if x.Kind != syntax.Constant {
		return
	}
	h := &handed{shown: c.l.named("value", x.At())}
	v, _ := x.ConstantValue.UnmarkDeep()
	_ = cty.Walk(v, func(_ cty.Path, in cty.Value) (bool, error) {
		if in.IsKnown() && syntax.IsString(in) {
			h.values = append(h.values, in.AsString())
		}
		return true, nil
	})
	if len(h.values) > 0 {
		c.facts = c.facts.with(&facts{handed: []*handed{h}})
	}
}
