// Package lang evaluates expressions and bodies of the configuration language in a scope: it
// finds the references of an expression, gets their values from the scope, and evaluates the
// expression with HCL.
//
// Main types: Expr, Body and Scope. The one rule: the owner of a failed object reports its
// error. An expression that refers to the object has an unknown value and adds no message.
package lang

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A Scope resolves references.
type Scope interface {
	// Resolve returns the value of the first used steps of a reference. Messages of a failed
	// object are reported once, by its owner. ds contains only messages about the reference
	// itself, or demand.Fail. at is the range of the reference, which recorded reads contain.
	Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (v cty.Value, used int, ds diag.List)
	// Functions returns the functions by name, including provider functions with the given
	// names (with colons).
	Functions(t *demand.Task, provider []string) (map[string]function.Function, diag.List)
}

// An Expr is an expression with its references, which are determined on first use, since much
// of a large configuration may never be evaluated. It is safe for concurrent use.
type Expr struct {
	hcl.Expression

	once     sync.Once
	constant bool        // has neither references nor function calls
	named    bool        // is a single reference
	stepless atomic.Bool // the steps fail where the tree does not
	refs     []Ref
	provider []string        // full names of the provider-defined functions that it calls
	code     *hclnative.Code // used for evaluation if not nil; otherwise tree is
	tree     *tree           // nil if there are steps
	last     lastWhole       // cached expression with its tree, if there are steps
}

// tree is an expression that is evaluated with its syntax tree.
type tree struct {
	root  hcl.Expression              // converted to native syntax if possible
	at    map[*hcl.Traverser]int      // index in refs of each reference, by its first step; nil if there are few
	huge  *hclsyntax.LiteralValueExpr // a number that is too large to use; nil if there is none
	loops *value.Loops                // nil if the expression has none
}

// lastWhole is an expression that the garbage collector may remove while it is not used.
type lastWhole struct {
	mu sync.Mutex
	x  weak.Pointer[Expr]
}

// Refs returns the references of the expression without duplicates, shortened to the steps that
// scopes use.
func (e *Expr) Refs() []Ref {
	e.once.Do(e.find)
	return e.refs
}

// OfProviders reports whether the expression calls provider functions.
func (e *Expr) OfProviders() bool {
	e.once.Do(e.find)
	return len(e.provider) > 0
}

// A Ref is a reference with its range. The steps of a reference in a compiled expression have
// no ranges of their own.
type Ref = hclnative.Ref

// Compile returns the Expr of an expression. For nil it returns nil.
func Compile(x hcl.Expression) *Expr {
	if x == nil {
		return nil
	}
	if e, ok := x.(*Expr); ok {
		return e
	}
	return &Expr{Expression: x}
}

// manyRefs is the maximum number of references that are searched linearly.
const manyRefs = 8

// find collects the references and functions of the expression.
func (e *Expr) find() {
	if late, ok := e.Expression.(*hclnative.Late); ok {
		if e.fromCode(late) {
			return
		}
		e.fromTree(late.Tree())
		return
	}
	if native, ok := nativeTree(e.Expression); ok {
		e.fromTree(native)
		return
	}
	e.fromTree(e.Expression)
}

func (e *Expr) fromTree(root hcl.Expression) {
	e.tree = &tree{root: root}
	if x, ok := root.(*hclsyntax.ScopeTraversalExpr); ok {
		e.named, e.refs = true, []Ref{{Traversal: x.Traversal, At: x.Traversal.SourceRange()}}
		return
	}
	var found finder
	found.parts(root)
	refs, calls := found.refs, found.calls
	e.tree.huge, e.tree.loops = found.huge, found.loops
	var seen map[string]int
	if len(refs) <= manyRefs {
		refs = distinct(refs)
	} else {
		seen = make(map[string]int, len(refs))
		e.tree.at = make(map[*hcl.Traverser]int, len(refs))
	}
	if len(refs) > 0 {
		e.refs = make([]Ref, 0, len(refs))
	}
	for _, ref := range refs {
		i := len(e.refs)
		if seen != nil {
			k := refKey(ref)
			if first, ok := seen[k]; ok {
				i = first
			}
			seen[k] = i
			e.tree.at[&ref[0]] = i
		}
		if i == len(e.refs) {
			e.refs = append(e.refs, Ref{Traversal: ref, At: ref.SourceRange()})
		}
	}
	for _, name := range calls {
		e.provided(name)
	}
	e.constant = len(e.refs) == 0 && len(calls) == 0
}

// provided records a function name if it is that of a provider function.
func (e *Expr) provided(name string) {
	if strings.HasPrefix(name, "provider::") && !slices.Contains(e.provider, name) {
		e.provider = append(e.provider, name)
	}
}

// distinct removes duplicate references, comparing the steps that scopes use. It is for short
// lists.
func distinct(refs []hcl.Traversal) []hcl.Traversal {
	out := refs[:0]
	for _, ref := range refs {
		if !slices.ContainsFunc(out, func(had hcl.Traversal) bool { return sameRef(had, ref) }) {
			out = append(out, ref)
		}
	}
	return out
}

// same returns the index in refs of an equal reference, comparing the steps that scopes use. It
// returns len(refs) if there is none. It is for short lists.
func (e *Expr) same(ref hcl.Traversal) int {
	for i := range e.refs {
		if &e.refs[i].Traversal[0] == &ref[0] || sameRef(e.refs[i].Traversal, ref) {
			return i
		}
	}
	return len(e.refs)
}

// index returns the index in refs of a reference in the tree. It returns false if it is not a
// reference, such as the variable of a for expression.
func (e *Expr) index(ref hcl.Traversal) (int, bool) {
	if e.tree.at != nil {
		i, ok := e.tree.at[&ref[0]]
		return i, ok
	}
	i := e.same(ref)
	return i, i < len(e.refs)
}

// Constant reports whether the expression has neither references nor function calls.
func (e *Expr) Constant() bool {
	e.once.Do(e.find)
	return e.constant
}

// Eval evaluates an expression and converts the result to a type; cty.DynamicPseudoType means
// no conversion. With errors the value is unknown.
func Eval(t *demand.Task, s Scope, x hcl.Expression, want cty.Type) (cty.Value, diag.List) {
	e := Compile(x)
	v, ds := evalRaw(t, s, e)
	if ds.HasErrors() {
		return cty.UnknownVal(want.WithoutOptionalAttributesDeep()), ds
	}
	if want == cty.DynamicPseudoType || v.Type().Equals(want) {
		return v, ds
	}
	out, err := value.Convert(v, want)
	if err == nil {
		err = value.Bounded(out)
	}
	if err != nil {
		at := e.Range()
		return cty.UnknownVal(want.WithoutOptionalAttributesDeep()), append(ds, &diag.Message{
			Code:    diag.CodeLangWrongType,
			Summary: "Incorrect value type",
			Detail:  "Invalid expression value: " + ErrorText(err) + ".",
			At:      &at,
		})
	}
	return out, ds
}

// evalRaw evaluates an expression. It returns an error for values that are too large for
// memory.
func evalRaw(t *demand.Task, s Scope, e *Expr) (cty.Value, diag.List) {
	e.once.Do(e.find)
	if e.tree == nil {
		if !e.stepless.Load() {
			if v, ok := e.run(t, s); ok && e.bounded(v) == nil {
				return v, nil
			}
		}
		v, ds := evalRaw(t, s, e.whole())
		if len(ds) == 0 {
			e.stepless.Store(true)
		}
		return v, ds
	}
	if huge := e.tree.huge; huge != nil {
		return cty.DynamicVal, tooLarge(huge.SrcRange, value.Bounded(huge.Val))
	}
	v, ds := evalUnbounded(t, s, e)
	if err := e.bounded(v); err != nil {
		return cty.DynamicVal, append(ds, tooLarge(e.Range(), err)...)
	}
	return v, ds
}

// bounded returns an error if a value of the expression is too large.
func (e *Expr) bounded(v cty.Value) error {
	err := value.Bounded(v)
	if err == nil && !e.named && (!e.constant || e.tree != nil && e.tree.loops != nil) { // a literal cannot be that long
		err = value.Measured(v)
	}
	return err
}

func tooLarge(at source.Range, err error) diag.List {
	return diag.List{{
		Code: diag.CodeLangTooLarge, Summary: "Value too large",
		Detail: "This expression has a value that cannot be worked with: " + err.Error() + ".",
		At:     &at,
	}}
}

func evalUnbounded(t *demand.Task, s Scope, e *Expr) (cty.Value, diag.List) {
	if e.constant {
		if err := e.tree.loops.Bounded(nil); err != nil {
			return cty.DynamicVal, tooLarge(e.Range(), err)
		}
		if v, ok := quick(e.tree.root, nil); ok {
			return v, nil
		}
		v, diags := e.tree.root.Value(nil)
		return v, diag.FromHCL(diags)
	}
	in := evaluation{t: t, scope: s, expr: e}
	if in.resolve(); in.ds.HasErrors() {
		return cty.DynamicVal, in.ds
	}
	if e.tree.loops.Deep() {
		if err := e.tree.loops.Bounded(in.context()); err != nil {
			return cty.DynamicVal, append(in.ds, tooLarge(e.Range(), err)...)
		}
	}
	if v, ok := quick(e.tree.root, &in); ok {
		return v, in.ds
	}
	ctx := in.context()
	if ctx == nil {
		return cty.DynamicVal, in.ds
	}
	v, diags := e.valueIn(ctx)
	if diags.HasErrors() && len(in.absent) > 0 {
		return v, append(in.ds, in.absent...)
	}
	return v, append(in.ds, diag.FromHCL(diags)...)
}

// valueIn evaluates the expression with HCL.
func (e *Expr) valueIn(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if _, late := e.Expression.(*hclnative.Late); late {
		return e.tree.root.Value(ctx) // the tree exists already
	}
	return e.Value(ctx)
}

// Absent returns the message of a scope that a reference names something that does not exist,
// if the expression decides whether that is an error: try() may handle it. The value that the
// scope returns with it lacks the missing part.
func Absent(at *source.Range, summary, format string, args ...any) diag.List {
	ds := diag.Errorf(diag.CodeLangUnsupportedAttribute, at, summary, format, args...)
	ds[0].Extra = absent{}
	return ds
}

// absent is the Extra of the messages that Absent returns.
type absent struct{}

// IsAbsent reports whether the only messages are those of Absent.
func IsAbsent(ds diag.List) bool {
	if len(ds) != 1 {
		return false
	}
	_, ok := ds[0].Extra.(absent)
	return ok
}

// Context resolves the references of expressions and returns the evaluation context for HCL.
func Context(t *demand.Task, s Scope, es ...*Expr) (*hcl.EvalContext, diag.List) {
	var root variables
	var provider []string
	var ds diag.List
	var last *Expr
	for _, e := range es {
		if e == nil {
			continue
		}
		e = e.whole()
		in := evaluation{t: t, scope: s, expr: e}
		in.resolve()
		ds = append(ds, in.ds...)
		in.into(&root)
		provider = append(provider, e.provider...)
		last = e
	}
	if ds.HasErrors() {
		return nil, ds
	}
	fns, more := functionsOf(t, s, provider, last)
	return &hcl.EvalContext{Variables: root.values(), Functions: fns}, append(ds, more...)
}

// functionsOf returns the functions of a scope for an expression.
func functionsOf(t *demand.Task, s Scope, provider []string, e *Expr) (map[string]function.Function, diag.List) {
	fns, ds := s.Functions(t, provider)
	if len(ds) > 0 {
		at := e.Range()
		ds = ds.Under(&at)
	}
	return fns, ds
}

// variables is a tree of resolved references by their steps.
type variables struct {
	names []string
	subs  []*variables
	value cty.Value
	leaf  bool
}

func (n *variables) put(ref hcl.Traversal, v cty.Value) {
	partial := ref.RootName() == "module" // scopes return partial objects only for modules
	for _, step := range ref {
		name := addr.StepName(step)
		i := slices.Index(n.names, name)
		if i < 0 {
			i = len(n.names)
			n.names = append(n.names, name)
			n.subs = append(n.subs, new(variables))
		}
		n = n.subs[i]
	}
	if n.leaf && partial {
		v = union(n.value, v)
	}
	n.value, n.leaf = v, true
}

// union merges two partial values of one object. Scopes return partial values if a reference
// uses only a part.
func union(a, b cty.Value) cty.Value {
	switch {
	case a.IsMarked() || b.IsMarked() || !a.IsKnown() || !b.IsKnown() || a.IsNull() || b.IsNull():
		return b
	case a.Type().IsObjectType() && b.Type().IsObjectType():
		vals := a.AsValueMap()
		if vals == nil {
			return b
		}
		for k, bv := range b.AsValueMap() {
			if av, ok := vals[k]; ok {
				bv = union(av, bv)
			}
			vals[k] = bv
		}
		return cty.ObjectVal(vals)
	case a.Type().IsTupleType() && b.Type().IsTupleType() && a.LengthInt() == b.LengthInt():
		as, bs := a.AsValueSlice(), b.AsValueSlice()
		for i := range as {
			as[i] = union(as[i], bs[i])
		}
		return cty.TupleVal(as)
	}
	return b
}

func (n *variables) values() map[string]cty.Value {
	out := make(map[string]cty.Value, len(n.names))
	for i, name := range n.names {
		out[name] = n.subs[i].object()
	}
	return out
}

func (n *variables) object() cty.Value {
	if n.leaf {
		return n.value
	}
	return cty.ObjectVal(n.values())
}

// ErrorText returns the text of an error about a value with the path in the value, such as
// `attribute "a": string required`.
func ErrorText(err error) string {
	if pe, ok := err.(cty.PathError); ok {
		if p := PathText(pe.Path); p != "" {
			return "attribute " + p + ": " + pe.Error()
		}
	}
	return err.Error()
}

// PathText formats a path in a value as in configuration: `a.b[0]["k"]`.
func PathText(p cty.Path) string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Name)
		case cty.IndexStep:
			switch {
			case !s.Key.IsKnown() || s.Key.IsNull():
				b.WriteString("[…]")
			case s.Key.Type() == cty.String:
				b.WriteString("[" + quote(s.Key.AsString()) + "]")
			case s.Key.Type() == cty.Number:
				b.WriteString("[" + s.Key.AsBigFloat().Text('f', -1) + "]")
			default:
				b.WriteString("[…]")
			}
		}
	}
	return b.String()
}
