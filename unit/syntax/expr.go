package syntax

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Expressions
//
// An expression is compiled once, when its file is parsed. Some kinds keep their structure,
// so that one part can be computed without the others: object constructors, calls of merge
// and deep_merge, plain references, and read_terragrunt_config. HCL evaluates all others as
// a whole.

type exprKind uint8

const (
	opaque       exprKind = iota // HCL evaluates it
	Constant                     // value is the result
	Object                       // items
	Tuple                        // args, in JSON syntax only
	MergeCall                    // merge(args…)
	DeepCall                     // deep_merge(args…)
	ReadCall                     // read_terragrunt_config(args…)
	Reference                    // ref
	Relative                     // ref, after args[0]
	Whole                        // pseudo expression: the file as one object
	WholeImports                 // pseudo expression: the imports and includes of the file
	WholeMerged                  // pseudo expression: the effective configuration of the file
)

// An Expr is one compiled expression. It is immutable.
type Expr struct {
	hcl.Expression
	*Parts
	Kind          exprKind
	Cell          int32         // the number of its cell in each evaluation of the file; -1 for none
	ConstantValue cty.Value     // for Constant
	Ref           hcl.Traversal // for Reference
}

// Parts are fields that most expressions do not need. A pointer to Parts is never nil.
type Parts struct {
	Refs   []hcl.Traversal // the references in an opaque expression
	Calls  []string        // the context functions that an opaque expression calls
	Tables Tables          // the tables of the other functions that it calls
	Items  []item
	Args   []*Expr
	loops  *value.Loops // for an opaque expression; nil if it has no for expressions
}

// none is the Parts of an expression without any.
var none = &Parts{}

// own returns Parts that belong to the expression and may be changed while it is compiled.
func (e *Expr) own() *Parts {
	if e.Parts == none {
		e.Parts = new(Parts)
	}
	return e.Parts
}

// An item is one item of an object constructor.
type item struct {
	Key  string
	KeyX *Expr // nil if the key is known
	X    *Expr
}

// Tables is a set of function tables that an expression needs.
type Tables uint8

const (
	pureTable Tables = 1 << iota // functions that depend on their arguments only
	DirTable                     // functions that resolve paths from the file's directory
)

// compile compiles an expression. If HCL does not evaluate the expression later, only its
// range is kept, because the syntax trees of a large estate would need too much memory.
func (r *reader) compile(x hcl.Expression) *Expr {
	if _, native := x.(hclsyntax.Expression); !native {
		return r.compileJSON(x)
	}
	e := r.compileNative(x)
	switch e.Expression.(type) {
	case *Placed, *hclsyntax.ConditionalExpr: // explanations need conditions
	default:
		if e.Kind != opaque {
			e.Expression = &Placed{x.Range()}
		}
	}
	return e
}

// Placed replaces an expression whose syntax tree was discarded.
type Placed struct{ at hcl.Range }

// Value returns an unknown value.
func (p *Placed) Value(*hcl.EvalContext) (cty.Value, hcl.Diagnostics) { return cty.DynamicVal, nil }
func (p *Placed) Variables() []hcl.Traversal                          { return nil }
func (p *Placed) Range() hcl.Range                                    { return p.at }
func (p *Placed) StartRange() hcl.Range                               { return p.at }

func (r *reader) compileNative(x hcl.Expression) *Expr {
	e := &Expr{Expression: x, Cell: -1, Parts: none}
	if n := x.(hclsyntax.Expression); literal(n) {
		e.Kind, e.ConstantValue = Constant, literalValue(n)
		return e
	}
	switch n := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		in := r.compile(n.Expression)
		if p, ok := in.Expression.(*Placed); ok {
			p.at = x.Range()
		} else {
			in.Expression = x
		}
		return in
	case *hclsyntax.TemplateWrapExpr:
		return r.compile(n.Wrapped)
	case *hclsyntax.ObjectConsExpr:
		e.Kind = Object
		for _, it := range n.Items {
			e.own().Items = append(e.Items, r.item(it.KeyExpr, it.ValueExpr))
		}
		e.foldObject()
	case *hclsyntax.ScopeTraversalExpr:
		e.Kind, e.Ref = Reference, n.Traversal
		return e
	case *hclsyntax.RelativeTraversalExpr:
		base := r.compile(n.Source)
		if base.Kind == ReadCall {
			e.Kind, e.Ref = Relative, n.Traversal
			e.own().Args = []*Expr{base}
			r.number(e)
			return e
		}
		r.opaque(e, x.(hclsyntax.Node))
	case *hclsyntax.FunctionCallExpr:
		r.call(e, n)
	default:
		r.opaque(e, x.(hclsyntax.Node))
	}
	if e.Kind != Constant {
		r.number(e)
	}
	return e
}

// literal reports whether an expression is a literal, or a list of literals, without a
// number above maxBits.
func literal(x hclsyntax.Expression) bool {
	switch n := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		return !HugeNumber(n.Val)
	case *hclsyntax.TemplateExpr:
		return n.IsStringLiteral() && n.Parts[0].(*hclsyntax.LiteralValueExpr).Val.Type() == cty.String
	case *hclsyntax.ObjectConsKeyExpr:
		return !n.ForceNonLiteral && (hcl.ExprAsKeyword(n.Wrapped) != "" || literal(n.Wrapped))
	case *hclsyntax.TupleConsExpr:
		return !slices.ContainsFunc(n.Exprs, func(in hclsyntax.Expression) bool { return !literal(in) })
	}
	return false
}

// literalValue returns the value of an expression for which literal returns true. HCL would compute the same, but
// it builds the text of each literal anew.
func literalValue(x hclsyntax.Expression) cty.Value {
	switch n := x.(type) {
	case *hclsyntax.TemplateExpr: // its part is a text: literal reports only such templates
		return literalValue(n.Parts[0])
	case *hclsyntax.ObjectConsKeyExpr:
		if name := hcl.ExprAsKeyword(n.Wrapped); name != "" {
			return cty.StringVal(name)
		}
		return literalValue(n.Wrapped)
	case *hclsyntax.TupleConsExpr:
		all := make([]cty.Value, len(n.Exprs))
		for i, el := range n.Exprs {
			all[i] = literalValue(el)
		}
		return cty.TupleVal(all)
	default:
		return x.(*hclsyntax.LiteralValueExpr).Val
	}
}

// maxBits is the maximum size of a number, in bits. Formatting a number takes time
// quadratic in its size.
const maxBits = 1 << 16

// HugeNumber reports whether a value is a number whose formatting would take too long.
func HugeNumber(v cty.Value) bool {
	if v == cty.NilVal || v.IsMarked() || v.Type() != cty.Number || !Known(v) {
		return false
	}
	exp := v.AsBigFloat().MantExp(nil)
	return exp > maxBits || exp < -maxBits
}

func (r *reader) checkNumber(v cty.Value, at hcl.Range) {
	if HugeNumber(v) {
		r.fail(at, diag.CodeUnitHugeNumber, "Number out of range", "This number has too many digits to be worked with.")
	}
}

func (r *reader) number(e *Expr) {
	e.Cell = r.next
	r.next++
}

func (r *reader) item(k, v hcl.Expression) item {
	it := item{X: r.compile(v)}
	key := r.compile(k)
	if key.Kind == Constant && IsString(key.ConstantValue) {
		it.Key = key.ConstantValue.AsString()
	} else {
		it.KeyX = key
	}
	return it
}

// foldObject turns an object of constants into a constant.
func (e *Expr) foldObject() {
	for _, it := range e.Items {
		if it.KeyX != nil || it.X.Kind != Constant {
			return
		}
	}
	vals := make(map[string]cty.Value, len(e.Items))
	for _, it := range e.Items {
		vals[it.Key] = it.X.ConstantValue
	}
	e.Kind, e.ConstantValue = Constant, cty.ObjectVal(vals) // the items are kept for their ranges
}

func (r *reader) call(e *Expr, n *hclsyntax.FunctionCallExpr) {
	kind := opaque
	switch n.Name {
	case "merge", "core::merge":
		kind = MergeCall
	case "deep_merge":
		kind = DeepCall
	case "read_terragrunt_config":
		kind = ReadCall
	}
	if kind == opaque || n.ExpandFinal || len(n.Args) == 0 {
		r.opaque(e, n)
		return
	}
	r.used(n.Name, n)
	e.Kind = kind
	for _, a := range n.Args {
		e.own().Args = append(e.Args, r.compile(a))
	}
}

// opaque records the references and function calls of an expression that HCL evaluates later.
func (r *reader) opaque(e *Expr, n hclsyntax.Node) {
	w := callFinder{r: r, e: e}
	_ = hclsyntax.Walk(n, &w)
	if w.refers {
		seen := make(map[string]bool, 4)
		for _, ref := range e.Expression.Variables() {
			if k := RefText(ref); !seen[k] {
				seen[k] = true
				e.own().Refs = append(e.Refs, ref)
			}
		}
	}
	if len(e.Refs) == 0 && len(e.Calls) == 0 && e.Tables == 0 && e.loops.Bounded(nil) == nil {
		if v, diags := e.Value(nil); !diags.HasErrors() {
			e.Kind, e.ConstantValue = Constant, v
		}
	}
}

// Deep reports whether for expressions are nested. Their result may be much larger than the
// text.
func (e *Expr) Deep() bool { return e.loops.Deep() }

// Bounded estimates the size of the result of nested for expressions, and returns an error
// if it is too large.
func (e *Expr) Bounded(ctx *hcl.EvalContext) error { return e.loops.Bounded(ctx) }

type callFinder struct {
	r      *reader
	e      *Expr
	refers bool // the expression contains a reference
}

func (w *callFinder) Enter(n hclsyntax.Node) hcl.Diagnostics {
	switch n := n.(type) {
	case *hclsyntax.LiteralValueExpr:
		w.r.checkNumber(n.Val, n.SrcRange)
	case *hclsyntax.ScopeTraversalExpr:
		w.refers = true
	case *hclsyntax.ForExpr, hclsyntax.ChildScope:
		if w.e.loops == nil {
			w.e.own().loops = new(value.Loops)
		}
		w.e.loops.Enter(n)
	}
	if c, ok := n.(*hclsyntax.FunctionCallExpr); ok {
		w.r.used(c.Name, c)
		switch {
		case IsContextFunction(c.Name):
			for _, have := range w.e.Calls {
				if have == c.Name {
					return nil
				}
			}
			w.e.own().Calls = append(w.e.Calls, c.Name)
		case isFolderFunction(c.Name):
			w.e.own().Tables |= DirTable
		default:
			w.e.own().Tables |= pureTable
		}
	}
	return nil
}

func (w *callFinder) Exit(n hclsyntax.Node) hcl.Diagnostics {
	switch n.(type) {
	case *hclsyntax.ForExpr, hclsyntax.ChildScope:
		w.e.loops.Exit(n)
	}
	return nil
}

// used records a call of a context function in the file.
func (r *reader) used(name string, n *hclsyntax.FunctionCallExpr) {
	if !IsContextFunction(name) {
		return
	}
	if r.f.Calls == nil {
		r.f.Calls = map[string]*hcl.Range{}
	}
	if r.f.Calls[name] == nil {
		at := n.Range()
		r.f.Calls[name] = &at
	}
}

// compileJSON turns an expression of the JSON syntax into a native one. A string is a
// template, as in the JSON form of HCL.
func (r *reader) compileJSON(x hcl.Expression) *Expr {
	e := &Expr{Expression: x, Cell: -1, Parts: none}
	if pairs, diags := hcl.ExprMap(x); !diags.HasErrors() {
		e.Kind = Object
		for _, p := range pairs {
			k, _ := p.Key.Value(nil)
			e.own().Items = append(e.Items, r.jsonItem(k, p))
		}
		e.foldObject()
	} else if list, diags := hcl.ExprList(x); !diags.HasErrors() {
		e.Kind = Tuple
		vals := make([]cty.Value, 0, len(list))
		for _, in := range list {
			a := r.compile(in)
			e.own().Args = append(e.Args, a)
			if a.Kind == Constant {
				vals = append(vals, a.ConstantValue)
			}
		}
		if len(vals) == len(list) {
			e.Kind, e.ConstantValue, e.Parts = Constant, cty.TupleVal(vals), none
		}
	} else {
		v, diags := x.Value(nil)
		if diags.HasErrors() || !IsString(v) || !strings.ContainsAny(v.AsString(), "$%") {
			e.Kind, e.ConstantValue = Constant, v
			r.checkNumber(v, x.Range())
			return e
		}
		return r.jsonTemplate(x, v.AsString())
	}
	if e.Kind != Constant {
		r.number(e)
	}
	return e
}

func (r *reader) jsonItem(k cty.Value, p hcl.KeyValuePair) item {
	it := item{X: r.compile(p.Value)}
	if IsString(k) && !strings.ContainsAny(k.AsString(), "$%") {
		it.Key = k.AsString()
		return it
	}
	it.KeyX = r.jsonTemplate(p.Key, k.AsString())
	if it.KeyX.Kind == Constant && IsString(it.KeyX.ConstantValue) {
		it.Key, it.KeyX = it.KeyX.ConstantValue.AsString(), nil
	}
	return it
}

func (r *reader) jsonTemplate(x hcl.Expression, text string) *Expr {
	at := x.Range()
	start := at.Start
	start.Byte, start.Column = start.Byte+1, start.Column+1 // the quotation mark
	native, diags := hclsyntax.ParseTemplate([]byte(text), at.Filename, start)
	if diags.HasErrors() {
		return &Expr{Expression: x, Kind: opaque, Cell: r.takeNumber(), Parts: &Parts{Tables: pureTable}}
	}
	return r.compile(native)
}

func (r *reader) takeNumber() int32 {
	r.next++
	return r.next - 1
}

// IsString reports whether a value is a known string without marks that is not null.
func IsString(v cty.Value) bool {
	return v != cty.NilVal && !v.IsMarked() && v.IsKnown() && !v.IsNull() && v.Type() == cty.String
}

// RefText returns the text of a reference, which identifies it.
func RefText(ref hcl.Traversal) string {
	var b strings.Builder
	for _, step := range ref {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteByte('.')
			b.WriteString(s.Name)
		case hcl.TraverseIndex:
			if IsString(s.Key) {
				b.WriteString("[" + Quote(s.Key.AsString()) + "]")
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

// StepName returns the name of the member that a step of a reference selects. ok is false
// for other steps, such as a number.
func StepName(step hcl.Traverser) (name string, ok bool) {
	switch s := step.(type) {
	case hcl.TraverseRoot:
		return s.Name, true
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if IsString(s.Key) {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

// RefsOf returns the references in an expression.
func RefsOf(x *Expr) (out []hcl.Traversal) {
	x.EachRef(func(r hcl.Traversal) { out = append(out, r) })
	return out
}

// At returns the range of the expression. It is zero for pseudo expressions.
func (x *Expr) At() source.Range {
	if x.Expression == nil {
		return source.Range{}
	}
	return x.Range()
}

// EachRef calls f for every reference in an expression.
func (x *Expr) EachRef(f func(hcl.Traversal)) {
	for _, r := range x.Refs {
		f(r)
	}
	if x.Kind == Reference {
		f(x.Ref)
	}
	for _, a := range x.Args {
		a.EachRef(f)
	}
	for _, it := range x.Items {
		if it.KeyX != nil {
			it.KeyX.EachRef(f)
		}
		it.X.EachRef(f)
	}
}

// CompileAlone compiles an expression of the file again, without cells. names are the
// variables of enclosing for expressions.
func (f *File) CompileAlone(x hcl.Expression, names map[string]cty.Value) *Expr {
	r := &reader{f: &File{Path: f.Path, Dir: f.Dir}}
	if len(names) > 0 {
		return r.bound(x, names)
	}
	return unnumbered(r.compile(x))
}

// unnumbered returns an expression without cells.
func unnumbered(x *Expr) *Expr {
	y := *x
	y.Cell = -1
	if x.Parts == none {
		return &y
	}
	own := *x.Parts
	y.Parts = &own
	y.Args = nil
	for _, a := range x.Args {
		y.Args = append(y.Args, unnumbered(a))
	}
	y.Items = nil
	for _, it := range x.Items {
		if it.KeyX != nil {
			it.KeyX = unnumbered(it.KeyX)
		}
		it.X = unnumbered(it.X)
		y.Items = append(y.Items, it)
	}
	return &y
}

// bound compiles an expression in which a for expression defines some of the names.
func (r *reader) bound(x hcl.Expression, names map[string]cty.Value) *Expr {
	e := &Expr{Expression: &boundExpr{x, names}, Cell: -1, Parts: none}
	if n, ok := x.(hclsyntax.Node); ok {
		_ = hclsyntax.Walk(n, &callFinder{r: r, e: e})
	}
	for _, ref := range x.Variables() {
		if _, own := names[ref.RootName()]; !own {
			e.own().Refs = append(e.Refs, ref)
		}
	}
	return e
}

type boundExpr struct {
	hcl.Expression
	names map[string]cty.Value
}

func (b *boundExpr) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	ctx = ctx.NewChild()
	ctx.Variables = b.names
	return b.Expression.Value(ctx)
}
