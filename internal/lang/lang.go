// Package lang evaluates expressions and bodies of the configuration language
// in a scope: it finds the references of an expression, asks the scope for
// their values, and lets HCL do the rest.
//
// Main types: Expr, Body and Scope. The one rule: a failed reference has been
// reported by whoever failed, so an expression that reads it yields a
// placeholder and adds no message.
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

// A Scope gives references their meaning.
type Scope interface {
	// Resolve returns the value of the first used steps of a reference. Messages
	// of a failed reference come once, from its owner; here they are those about
	// the reference itself, or demand.Fail. at is the place of the reference, as
	// recorded reads keep it.
	Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (v cty.Value, used int, ds diag.List)
	// Functions returns the function table, with the provider functions of the
	// given names (with colons) added.
	Functions(t *demand.Task, provider []string) (map[string]function.Function, diag.List)
}

// An Expr is an expression with its references, which are found when they are
// first asked for: much of a large configuration may never be. It may be used
// concurrently.
type Expr struct {
	hcl.Expression

	once     sync.Once
	constant bool        // neither references nor functions
	named    bool        // it is a reference and nothing else
	stepless atomic.Bool // the steps fail where the tree does not
	refs     []Ref
	provider []string        // provider-defined functions, by full name
	code     *hclnative.Code // what is evaluated; nil if that is the tree
	tree     *tree           // nil if there are steps
	last     lastWhole       // the expression with its tree, if there are steps
}

// tree is an expression that is evaluated by its tree.
type tree struct {
	root  hcl.Expression              // of native syntax, if there is a way to say it
	at    map[*hcl.Traverser]int      // the index in refs of each reference, by its first step; nil where there are few
	huge  *hclsyntax.LiteralValueExpr // that cannot be worked with; nil if there is none
	loops *value.Loops                // nil if the expression has none
}

// lastWhole is an expression that may be dropped while nobody uses it.
type lastWhole struct {
	mu sync.Mutex
	x  weak.Pointer[Expr]
}

// Refs are the references of the expression: each distinct prefix that scopes
// look at, once.
func (e *Expr) Refs() []Ref {
	e.once.Do(e.find)
	return e.refs
}

// OfProviders reports whether the expression calls functions of providers.
func (e *Expr) OfProviders() bool {
	e.once.Do(e.find)
	return len(e.provider) > 0
}

// A Ref is a reference and its place. The steps of one of an expression that is evaluated
// by steps have no places of their own.
type Ref = hclnative.Ref

// Compile makes an Expr of an expression. A nil expression gives nil.
func Compile(x hcl.Expression) *Expr {
	if x == nil {
		return nil
	}
	if e, ok := x.(*Expr); ok {
		return e
	}
	return &Expr{Expression: x}
}

// manyRefs is how many references are looked through to find one again.
const manyRefs = 8

// find looks through the expression.
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

// provided notes the name of a function if it is one of a provider.
func (e *Expr) provided(name string) {
	if strings.HasPrefix(name, "provider::") && !slices.Contains(e.provider, name) {
		e.provider = append(e.provider, name)
	}
}

// distinct drops references that are the same as one before, as far as scopes look at
// them. It is for few.
func distinct(refs []hcl.Traversal) []hcl.Traversal {
	out := refs[:0]
	for _, ref := range refs {
		if !slices.ContainsFunc(out, func(had hcl.Traversal) bool { return sameRef(had, ref) }) {
			out = append(out, ref)
		}
	}
	return out
}

// same is the index in refs of the reference that is the same as far as scopes look at
// it, len(refs) if there is none. It is for few.
func (e *Expr) same(ref hcl.Traversal) int {
	for i := range e.refs {
		if &e.refs[i].Traversal[0] == &ref[0] || sameRef(e.refs[i].Traversal, ref) {
			return i
		}
	}
	return len(e.refs)
}

// index is the index in refs of a reference of the tree; false for one that is none, as
// the name of the element inside of a for expression.
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

// Eval evaluates an expression and converts the result to a type;
// cty.DynamicPseudoType keeps it as it is. With errors the value is unknown.
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

// evalRaw evaluates an expression, and refuses results that would fill the memory.
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

// bounded says why a value of the expression cannot be worked with.
func (e *Expr) bounded(v cty.Value) error {
	err := value.Bounded(v)
	if err == nil && !e.named && (!e.constant || e.tree != nil && e.tree.loops != nil) { // what is written out cannot be that long
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

// valueIn has HCL evaluate the expression.
func (e *Expr) valueIn(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if _, late := e.Expression.(*hclnative.Late); late {
		return e.tree.root.Value(ctx) // built already
	}
	return e.Value(ctx)
}

// Absent makes the message of a scope about something that a reference names and that does not
// exist, if it depends on the expression whether that is a mistake: try() may ask for it. The
// value that comes with the message lacks what was asked for.
func Absent(at *source.Range, summary, format string, args ...any) diag.List {
	ds := diag.Errorf(diag.CodeLangUnsupportedAttribute, at, summary, format, args...)
	ds[0].Extra = absent{}
	return ds
}

// absent is the Extra of a message of Absent.
type absent struct{}

// IsAbsent reports whether messages are one of Absent.
func IsAbsent(ds diag.List) bool {
	if len(ds) != 1 {
		return false
	}
	_, ok := ds[0].Extra.(absent)
	return ok
}

// Context resolves the references of expressions and returns what HCL needs to
// evaluate them.
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

// functionsOf is the function table of a scope for an expression.
func functionsOf(t *demand.Task, s Scope, provider []string, e *Expr) (map[string]function.Function, diag.List) {
	fns, ds := s.Functions(t, provider)
	if len(ds) > 0 {
		at := e.Range()
		ds = ds.Under(&at)
	}
	return fns, ds
}

// variables collects resolved references by their steps.
type variables struct {
	names []string
	subs  []*variables
	value cty.Value
	leaf  bool
}

func (n *variables) put(ref hcl.Traversal, v cty.Value) {
	partial := ref.RootName() == "module" // the one kind of object of which scopes return parts
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

// union joins two partial values of one object, as scopes return them where
// only a part was asked for.
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

// ErrorText writes an error about a value with the path inside it, as in
// `attribute "a": string required`.
func ErrorText(err error) string {
	if pe, ok := err.(cty.PathError); ok {
		if p := PathText(pe.Path); p != "" {
			return "attribute " + p + ": " + pe.Error()
		}
	}
	return err.Error()
}

// PathText writes a path inside a value as in configuration: `a.b[0]["k"]`.
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
