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

// # Text about values that are handed in
//
// The facts of a computation list the values that functions such as get_env gave to it.
// Where the value of an argument leaves the evaluation, to become a path, an address or an
// argument of a command, redact tells the Redactor of the loader about these values and
// about the argument as a whole, since functions may have changed what they got. named is
// the one function that builds the text that stands for such a value in a message. It is
// made of the expression and its range.
//
// Inputs are not redacted that way: they become values of the module, whose messages show
// values that are not sensitive.

// handed is a value that was handed in by one call.
type handed struct {
	values []string
	shown  string // the text that stands for the value
}

func (h *handed) equals(o *handed) bool {
	return h.shown == o.shown && slices.Equal(h.values, o.values)
}

// maxNamed is the length, in bytes, of the longest expression that named shows.
const maxNamed = 80

// named is the text for a value: what computes it, and where.
func (l *Loader) named(what string, at source.Range) string {
	if rel, err := filepath.Rel(l.env.WorkingDir, at.Filename); err == nil && l.env.WorkingDir != "" && filepath.IsLocal(rel) {
		at.Filename = rel
	}
	return "(" + what + " at " + at.String() + ")"
}

// namedNode is the text for the value of a node: its expression, unless it is long or the
// text of its lines is not shown.
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

// exprOf is the expression of a node, nil if it has not exactly one.
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

// redact has no message show what was handed in of the value of an argument. f are the
// facts of its computation.
func (c *evaluator) redact(n node, v cty.Value, f *facts) {
	if f == nil || len(f.handed) == 0 || v == cty.NilVal {
		return
	}
	c.redactPart(n, v, f, 0)
}

// maxRedacted is how deep the parts of an argument are looked at one by one.
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

// redactName redacts a key that a handed in value is a part of.
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

// redactWhole redacts all texts in a value, what was handed in to it, and the values of its
// references that were.
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

// handedBy is the value of a reference, with the text for it, if any of it was handed in.
func (c *evaluator) handedBy(e *evaluation, ref hcl.Traversal) (v cty.Value, shown string, ok bool) {
	one := c.sub(c.leaf, c.full)
	r := one.resolve(e, ref)
	if r.n == nil || r.missing != "" || one.stuck() {
		return v, "", false
	}
	v = r.n.value(one)
	return v, c.l.named(syntax.RefText(ref), ref.SourceRange()), !one.stuck() && one.facts != nil && len(one.facts.handed) > 0
}

// redactExpr redacts the texts in the value of an expression that takes something that was
// handed in: the elements of a list one by one.
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

// redactKeys redacts the keys of an object that are computed from what was handed in.
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

// piece is the text that an expression in a template gave.
type piece struct {
	text string
	at   source.Range
}

// interpolated are the texts that the calls in a template gave: what lies between the
// literal parts of its value. References have values of their own, which are looked at by
// themselves.
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

// hideTexts redacts all texts in a value.
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

// joinedPath is what is left of a relative path when it is joined with a directory.
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

// quoted is the text of an argument for a message: in quotation marks, or, if it was
// handed in, what names its expression. It is for values of any length, where those that
// the Redactor replaces have a least length.
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

// notesValue notes that an expression of a values or autoinclude file was read. A stack file
// generates such files and writes the values of its expressions into them.
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
