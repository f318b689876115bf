package origin

import (
	"fmt"
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # The replay
//
// A cursor is an expression, the frame that defines its references, and the path of the requested part.
// The kind of expression decides where the replay continues. For an object constructor, it removes the
// first step from the path and continues at that item. For a reference, it prepends the steps after the
// name to the path and continues at the definition. The replay ends at a literal, or at an expression
// that computes a new value.
//
// The types: a finder resolves the address (address.go), a replay follows expressions and blocks, a call
// picks an argument of a function (calls.go), a reader evaluates (frame.go), a trail contains the steps
// (account.go), a listing formats source lines (place.go), a secrecy decides what must not be shown
// (secrecy.go), and a redaction removes secret texts from the result (redact.go).

// A cursor selects a part of an expression's value. A cursor without a frame ends the replay.
type cursor struct {
	f    *frame
	x    hcl.Expression
	path []step
}

// visit identifies a cursor, to detect cycles.
type visit struct {
	module addr.ModuleInstance
	unit   Scope
	at     source.Range
	path   string
}

// A replay follows one value to its source.
type replay struct {
	account
	seen   map[visit]bool
	at     source.Range // range of the last expression that was followed
	redact *redaction   // shared with the replays that aside returns
	seer   visitor      // called for the expressions on the way; may be nil
}

// A visitor is called for the expressions on a way: visit for each of them, references for an expression
// that computes a value from references.
type visitor interface {
	visit(*replay, cursor)
	references(*replay, cursor)
}

// newReplay returns an empty replay.
func newReplay(t *demand.Task, e *Explainer, fed *feeds) *replay {
	in := &reader{t: t, e: e}
	return &replay{
		account: account{
			in: in, fed: fed, trail: trail{&Explanation{}},
			lines: &listing{in: in, fed: fed, settings: map[string][]setting{}, layers: map[string]*source.Layer{}},
		},
		seen: map[visit]bool{}, redact: &redaction{in: in, fed: fed},
	}
}

// aside returns a copy of the replay whose steps are not part of the explanation.
func (r *replay) aside() *replay {
	sub := *r
	sub.out, sub.in = &Explanation{}, &reader{t: r.in.t, e: r.in.e, ends: r.in.ends}
	sub.lines = &listing{in: sub.in, fed: r.fed, settings: map[string][]setting{}, layers: r.lines.layers}
	for file, s := range r.lines.settings {
		sub.lines.settings[file] = s[:len(s):len(s)]
	}
	sub.seen = maps.Clone(r.seen)
	return &sub
}

// mostSteps is the maximum number of steps in an explanation.
const mostSteps = 1000

// eval evaluates an expression in a frame. The value is unknown if there are errors.
func (r *reader) eval(f *frame, x hcl.Expression) (cty.Value, diag.List) {
	if f.unit != nil {
		return f.unit.Eval(x, f.names)
	}
	if f.scope == nil { // the expression is in a variable file
		v, diags := x.Value(nil)
		return v, diag.FromHCL(diags)
	}
	return lang.Eval(r.t, f.scope, x, cty.DynamicPseudoType)
}

// follow runs the replay from a cursor to its end.
func (r *replay) follow(c cursor) {
	for c.f != nil {
		if len(r.out.Steps) >= mostSteps {
			r.add(&Step{Kind: Unknown, Text: "the way is longer than can be shown"})
			return
		}
		if c.f.mod != nil || c.f.unit != nil {
			v := visit{at: c.x.Range(), unit: c.f.unit, path: pathText(c.path)}
			if c.f.mod != nil {
				v.module = c.f.mod.Addr
			}
			if r.seen[v] {
				r.end(Cycle, c, "the value needs itself")
				return
			}
			r.seen[v] = true
		}
		r.at = c.x.Range()
		if r.seer != nil {
			r.seer.visit(r, c)
		}
		if r.names != schemasDecide {
			r.named(c)
		}
		c = r.next(c)
	}
}

// next runs one turn of the replay and returns the next cursor. A cursor without a frame ends the replay.
func (r *replay) next(c cursor) cursor {
	switch x := unwrap(c.x).(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return r.reference(c, x.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		if more, ok := steps(x.Traversal); ok {
			return cursor{c.f, x.Source, join(more, c.path)}
		}
	case *hclsyntax.IndexExpr:
		key, ds := r.in.eval(c.f, x.Key)
		if !ds.HasErrors() && key.IsKnown() && !key.IsMarked() && !key.IsNull() && key.Type().IsPrimitiveType() {
			return cursor{c.f, x.Collection, join([]step{keyStep(key)}, c.path)}
		}
	case *hclsyntax.ConditionalExpr:
		return r.conditional(c, x)
	case *hclsyntax.ObjectConsExpr:
		if len(c.path) > 0 {
			return r.object(c, x)
		}
		return r.literal(c)
	case *hclsyntax.TupleConsExpr:
		if len(c.path) > 0 {
			if i, ok := c.path[0].index(); ok && i < len(x.Exprs) {
				return r.item(cursor{c.f, x.Exprs[i], c.path[1:]}, fmt.Sprintf("element %d", i))
			}
			return r.fail(c, "there is no such element")
		}
		return r.literal(c)
	case *hclsyntax.SplatExpr:
		if next, ok := r.splat(c, x); ok {
			return next
		}
	case *hclsyntax.ForExpr:
		if next, ok := r.loop(c, x); ok {
			return next
		}
	case *hclsyntax.FunctionCallExpr:
		if next, ok := r.call(c, x); ok {
			return next
		}
	case *hclsyntax.LiteralValueExpr:
		return r.scalar(c)
	case *hclsyntax.TemplateExpr:
		if x.IsStringLiteral() {
			return r.scalar(c)
		}
	default:
		if json.IsJSONExpression(c.x) {
			return r.json(c)
		}
	}
	return r.computed(c)
}

// unwrap removes parentheses and other wrappers that do not change the value of an expression.
func unwrap(x any) any {
	for {
		switch w := x.(type) {
		case *lang.Expr:
			x = w.Expression
		case *hclsyntax.ParenthesesExpr:
			x = w.Expression
		case *hclsyntax.TemplateWrapExpr:
			x = w.Wrapped
		case *hclsyntax.ObjectConsKeyExpr:
			x = w.Wrapped
		default:
			return x
		}
	}
}

// from records that the expression at the cursor computes the value, and the references in that
// expression.
func (r *replay) from(c cursor) {
	at := c.x.Range()
	s := r.last()
	if s == nil || s.At == nil || s.At.File != at.Filename || s.At.Line != at.Start.Line || s.Kind == Condition {
		s = r.add(&Step{Kind: Computed, Text: "computed here", At: r.lines.place(at, r.hidden(c))})
	}
	r.refers(s, c)
	s.Computed = !isWritten(c.x) && !isReference(c.x)
	if r.seer != nil && c.f.unit != nil {
		r.seer.references(r, c)
	}
}

// refers adds the references in the expression at a cursor to a step.
func (r *replay) refers(s *Step, c cursor) {
	seen := map[string]bool{}
	for _, ref := range c.x.Variables() {
		address := r.address(c.f, ref)
		if bareWord := c.f.unit != nil && len(ref) == 1; bareWord || address == "" || seen[address] {
			continue
		}
		seen[address] = true
		at := ref.SourceRange()
		s.From = append(s.From, From{Address: address, At: r.lines.place(at, r.hidden(c))})
	}
}

// isWritten reports whether an expression is a literal, or an object or list constructor.
func isWritten(x any) bool {
	switch x := unwrap(x).(type) {
	case *hclsyntax.ObjectConsExpr, *hclsyntax.TupleConsExpr, *hclsyntax.LiteralValueExpr:
		return true
	case *hclsyntax.TemplateExpr:
		return x.IsStringLiteral()
	case hcl.Expression:
		return json.IsJSONExpression(x) && len(x.Variables()) == 0
	}
	return false
}

// failWith ends the replay with the first error of the expression. If there is no text, or if the text is
// secret, it lists the references of the expression instead.
func (r *replay) failWith(c cursor, ds diag.List) cursor {
	for _, m := range ds {
		if m.Summary != "" && !r.secret {
			return r.fail(c, m.Summary+": "+m.Detail)
		}
	}
	r.end(Failed, c, "what this reads has an error")
	r.from(c)
	return cursor{}
}
