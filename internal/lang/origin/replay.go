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

// # How a value is followed
//
// A cursor is an expression, the frame that gives its references a meaning, and
// the path of the part that is asked for. What the expression is decides where
// the part comes from: an object's item takes a step off the path, a reference
// puts the steps behind its name on it and goes on at the definition, and so on
// until the expression is a literal or something whose result stands nowhere.
//
// The parts: a finder reads the address (address.go), a replay follows expressions and
// blocks, a call says which argument of a function has the part (calls.go), a reader
// evaluates, a trail has the steps, a listing shows lines of source (place.go), a
// secrecy decides what must not be shown (secrecy.go), and a redaction takes
// secrets out of what was found (redact.go).

// A cursor is a part of an expression's value.
type cursor struct {
	f    *frame
	x    hcl.Expression
	path []step
}

// visit tells a cycle from a long way.
type visit struct {
	module addr.ModuleInstance
	unit   Scope
	at     source.Range
	path   string
}

// A replay follows one value.
type replay struct {
	account
	seen   map[visit]bool
	at     source.Range // of the last expression that was followed
	redact *redaction   // shared with the replays aside
	seer   visitor      // sees the expressions on the way; nil for none
}

// A visitor sees the expressions on a way, and those whose value is computed from references.
type visitor interface {
	visit(*replay, cursor)
	references(*replay, cursor)
}

// newReplay returns a replay that has not started.
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

// aside is a replay that starts here and whose steps are nobody's.
func (r *replay) aside() *replay {
	sub := *r
	sub.out, sub.in = &Explanation{}, &reader{t: r.in.t, e: r.in.e}
	sub.lines = &listing{in: sub.in, fed: r.fed, settings: map[string][]setting{}, layers: r.lines.layers}
	for file, s := range r.lines.settings {
		sub.lines.settings[file] = s[:len(s):len(s)]
	}
	sub.seen = maps.Clone(r.seen)
	return &sub
}

// mostSteps bounds an explanation; nobody reads more.
const mostSteps = 1000

// eval evaluates an expression in a frame. Errors give an unknown value.
func (r *reader) eval(f *frame, x hcl.Expression) (cty.Value, diag.List) {
	if f.unit != nil {
		return f.unit.Eval(x, f.names)
	}
	if f.scope == nil { // a variable file
		v, diags := x.Value(nil)
		return v, diag.FromHCL(diags)
	}
	return lang.Eval(r.t, f.scope, x, cty.DynamicPseudoType)
}

// follow goes on from a cursor to the end.
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

// next takes one turn. A cursor without a frame ends the way.
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

// unwrap takes off what does not change a value.
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

// from says that the value is computed at the cursor, and from what.
func (r *replay) from(c cursor) {
	at := c.x.Range()
	s := r.last()
	if s == nil || s.At == nil || s.At.File != at.Filename || s.At.Line != at.Start.Line || s.Kind == Condition {
		s = r.add(&Step{Kind: Computed, Text: "computed here", At: r.lines.place(at, r.hidden(c))})
	}
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
	s.Computed = !isWritten(c.x) && !isReference(c.x)
	if r.seer != nil && c.f.unit != nil {
		r.seer.references(r, c)
	}
}

// isWritten reports whether an expression is the value itself.
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

// failWith ends with the first message about the expression, or points at what it reads.
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
