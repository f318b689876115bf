package unit

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// # Expressions
//
// An expression is compiled once, when its file is parsed. Those whose parts
// can be told apart without computing the whole (object constructors, calls of
// merge and deep_merge, plain references, what read_terragrunt_config reads)
// are kept as such, so that one part can be asked for and the rest stays
// uncomputed. All others are left to HCL as they are.

type xkind uint8

const (
	opaque    xkind = iota // only HCL knows
	constant               // value is the result
	object                 // items
	tuple                  // args, in JSON syntax only
	mergeCall              // merge(args…)
	deepCall               // deep_merge(args…)
	readCall               // read_terragrunt_config(args…)
	reference              // ref
	relative               // ref, after args[0]
	whole                  // stands for all of a file as one object
	wholeHead              // stands for its imports and includes
	wholeConf              // stands for its effective configuration
)

// An xpr is one compiled expression. It is immutable.
type xpr struct {
	hcl.Expression
	kind   xkind
	id     int             // of its cell in each evaluation of the file; -1 for none
	v      cty.Value       // of constants
	refs   []hcl.Traversal // what an opaque expression refers to
	calls  []string        // functions that an opaque expression calls: those that need a context
	tables tables          // other functions that it calls
	items  []xitem
	args   []*xpr
	ref    hcl.Traversal
}

// An xitem is one item of an object constructor.
type xitem struct {
	key  string
	keyX *xpr // nil if the key is known
	x    *xpr
}

// tables says which function tables an expression needs.
type tables uint8

const (
	pureTable tables = 1 << iota // functions of their arguments alone
	dirTable                     // functions that count from the file's folder
)

// compile compiles an expression. Of one that HCL is not asked for later, the
// place alone is kept: in a large estate the syntax trees would fill the memory.
func (r *reader) compile(x hcl.Expression) *xpr {
	if _, native := x.(hclsyntax.Expression); !native {
		return r.compileJSON(x)
	}
	e := r.compileNative(x)
	switch e.Expression.(type) {
	case *placed, *hclsyntax.ConditionalExpr: // explaining looks at conditions
	default:
		if e.kind != opaque {
			e.Expression = &placed{x.Range()}
		}
	}
	return e
}

// placed stands for an expression whose syntax tree was let go.
type placed struct{ at hcl.Range }

func (p *placed) Value(*hcl.EvalContext) (cty.Value, hcl.Diagnostics) { return cty.DynamicVal, nil }
func (p *placed) Variables() []hcl.Traversal                          { return nil }
func (p *placed) Range() hcl.Range                                    { return p.at }
func (p *placed) StartRange() hcl.Range                               { return p.at }

func (r *reader) compileNative(x hcl.Expression) *xpr {
	e := &xpr{Expression: x, id: -1}
	switch n := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		in := r.compile(n.Expression)
		if p, ok := in.Expression.(*placed); ok {
			p.at = x.Range()
		} else {
			in.Expression = x
		}
		return in
	case *hclsyntax.TemplateWrapExpr:
		return r.compile(n.Wrapped)
	case *hclsyntax.ObjectConsExpr:
		e.kind = object
		for _, it := range n.Items {
			e.items = append(e.items, r.item(it.KeyExpr, it.ValueExpr))
		}
		e.foldObject()
	case *hclsyntax.ScopeTraversalExpr:
		e.kind, e.ref = reference, n.Traversal
		return e
	case *hclsyntax.RelativeTraversalExpr:
		base := r.compile(n.Source)
		if base.kind == readCall {
			e.kind, e.ref, e.args = relative, n.Traversal, []*xpr{base}
			r.number(e)
			return e
		}
		r.opaque(e, x.(hclsyntax.Node))
	case *hclsyntax.FunctionCallExpr:
		r.call(e, n)
	default:
		r.opaque(e, x.(hclsyntax.Node))
	}
	if e.kind != constant {
		r.number(e)
	}
	return e
}

// maxBits is how large a number may be, in bits: writing one out takes time that
// grows with the square of that.
const maxBits = 1 << 16

func hugeNumber(v cty.Value) bool {
	if v == cty.NilVal || v.IsMarked() || v.Type() != cty.Number || !known(v) {
		return false
	}
	exp := v.AsBigFloat().MantExp(nil)
	return exp > maxBits || exp < -maxBits
}

func (r *reader) checkNumber(v cty.Value, at hcl.Range) {
	if hugeNumber(v) {
		r.fail(at, "unit/huge-number", "Number out of range", "This number has too many digits to be worked with.")
	}
}

func (r *reader) number(e *xpr) {
	e.id = r.next
	r.next++
}

func (r *reader) item(k, v hcl.Expression) xitem {
	it := xitem{x: r.compile(v)}
	key := r.compile(k)
	if key.kind == constant && isString(key.v) {
		it.key = key.v.AsString()
	} else {
		it.keyX = key
	}
	return it
}

// foldObject makes an object of constants a constant.
func (e *xpr) foldObject() {
	for _, it := range e.items {
		if it.keyX != nil || it.x.kind != constant {
			return
		}
	}
	vals := make(map[string]cty.Value, len(e.items))
	for _, it := range e.items {
		vals[it.key] = it.x.v
	}
	e.kind, e.v = constant, cty.ObjectVal(vals) // the items stay, for their places
}

func (r *reader) call(e *xpr, n *hclsyntax.FunctionCallExpr) {
	kind := opaque
	switch n.Name {
	case "merge", "core::merge":
		kind = mergeCall
	case "deep_merge":
		kind = deepCall
	case "read_terragrunt_config":
		kind = readCall
	}
	if kind == opaque || n.ExpandFinal || len(n.Args) == 0 {
		r.opaque(e, n)
		return
	}
	r.used(n.Name, n)
	e.kind = kind
	for _, a := range n.Args {
		e.args = append(e.args, r.compile(a))
	}
}

// opaque finds what an expression needs and leaves the rest to HCL.
func (r *reader) opaque(e *xpr, n hclsyntax.Node) {
	w := callFinder{r: r, e: e}
	_ = hclsyntax.Walk(n, &w)
	seen := make(map[string]bool, 4)
	for _, ref := range e.Expression.Variables() {
		if k := refText(ref); !seen[k] {
			seen[k] = true
			e.refs = append(e.refs, ref)
		}
	}
	if len(e.refs) == 0 && len(e.calls) == 0 && e.tables == 0 {
		if v, diags := e.Value(nil); !diags.HasErrors() {
			e.kind, e.v = constant, v
		}
	}
}

type callFinder struct {
	r *reader
	e *xpr
}

func (w *callFinder) Enter(n hclsyntax.Node) hcl.Diagnostics {
	if l, ok := n.(*hclsyntax.LiteralValueExpr); ok {
		w.r.checkNumber(l.Val, l.SrcRange)
	}
	if c, ok := n.(*hclsyntax.FunctionCallExpr); ok {
		w.r.used(c.Name, c)
		switch {
		case isContextFunction(c.Name):
			for _, have := range w.e.calls {
				if have == c.Name {
					return nil
				}
			}
			w.e.calls = append(w.e.calls, c.Name)
		case isFolderFunction(c.Name):
			w.e.tables |= dirTable
		default:
			w.e.tables |= pureTable
		}
	}
	return nil
}

func (w *callFinder) Exit(hclsyntax.Node) hcl.Diagnostics { return nil }

// used notes a call of a context function in the file.
func (r *reader) used(name string, n *hclsyntax.FunctionCallExpr) {
	if !isContextFunction(name) {
		return
	}
	if r.f.calls == nil {
		r.f.calls = map[string]*hcl.Range{}
	}
	if r.f.calls[name] == nil {
		at := n.Range()
		r.f.calls[name] = &at
	}
}

// compileJSON turns an expression of the JSON syntax into a native one: a
// string is a template, as the JSON form of HCL has it.
func (r *reader) compileJSON(x hcl.Expression) *xpr {
	e := &xpr{Expression: x, id: -1}
	if pairs, diags := hcl.ExprMap(x); !diags.HasErrors() {
		e.kind = object
		for _, p := range pairs {
			k, _ := p.Key.Value(nil)
			e.items = append(e.items, r.jsonItem(k, p))
		}
		e.foldObject()
	} else if list, diags := hcl.ExprList(x); !diags.HasErrors() {
		e.kind = tuple
		vals := make([]cty.Value, 0, len(list))
		for _, in := range list {
			a := r.compile(in)
			e.args = append(e.args, a)
			if a.kind == constant {
				vals = append(vals, a.v)
			}
		}
		if len(vals) == len(list) {
			e.kind, e.v, e.args = constant, cty.TupleVal(vals), nil
		}
	} else {
		v, diags := x.Value(nil)
		if diags.HasErrors() || !isString(v) || !strings.ContainsAny(v.AsString(), "$%") {
			e.kind, e.v = constant, v
			r.checkNumber(v, x.Range())
			return e
		}
		return r.jsonTemplate(x, v.AsString())
	}
	if e.kind != constant {
		r.number(e)
	}
	return e
}

func (r *reader) jsonItem(k cty.Value, p hcl.KeyValuePair) xitem {
	it := xitem{x: r.compile(p.Value)}
	if isString(k) && !strings.ContainsAny(k.AsString(), "$%") {
		it.key = k.AsString()
		return it
	}
	it.keyX = r.jsonTemplate(p.Key, k.AsString())
	if it.keyX.kind == constant && isString(it.keyX.v) {
		it.key, it.keyX = it.keyX.v.AsString(), nil
	}
	return it
}

func (r *reader) jsonTemplate(x hcl.Expression, text string) *xpr {
	at := x.Range()
	start := at.Start
	start.Byte, start.Column = start.Byte+1, start.Column+1 // the quotation mark
	native, diags := hclsyntax.ParseTemplate([]byte(text), at.Filename, start)
	if diags.HasErrors() {
		return &xpr{Expression: x, kind: opaque, id: r.takeNumber(), tables: pureTable}
	}
	return r.compile(native)
}

func (r *reader) takeNumber() int {
	r.next++
	return r.next - 1
}

func isString(v cty.Value) bool {
	return v != cty.NilVal && !v.IsMarked() && v.IsKnown() && !v.IsNull() && v.Type() == cty.String
}

// refText writes a reference, to tell references apart and to name them.
func refText(ref hcl.Traversal) string {
	var b strings.Builder
	for _, step := range ref {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteByte('.')
			b.WriteString(s.Name)
		case hcl.TraverseIndex:
			if isString(s.Key) {
				b.WriteString("[" + quote(s.Key.AsString()) + "]")
			} else if s.Key.Type() == cty.Number && s.Key.IsKnown() {
				b.WriteString("[" + s.Key.AsBigFloat().Text('f', -1) + "]")
			} else {
				b.WriteString("[…]")
			}
		default:
			b.WriteString("[*]")
		}
	}
	return b.String()
}

// stepName is the member that a step of a reference names; ok is false for
// steps that name no member, such as a number.
func stepName(step hcl.Traverser) (name string, ok bool) {
	switch s := step.(type) {
	case hcl.TraverseRoot:
		return s.Name, true
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if isString(s.Key) {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

// refsOf lists the references in an expression.
func refsOf(x *xpr) (out []hcl.Traversal) {
	x.eachRef(func(r hcl.Traversal) { out = append(out, r) })
	return out
}
