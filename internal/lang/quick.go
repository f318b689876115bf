package lang

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// evaluation is one evaluation of an expression: the values of its references, and the context
// for HCL, which is created when it is needed.
type evaluation struct {
	t     *demand.Task
	scope Scope
	expr  *Expr

	refs   []resolved // as in the expression
	absent diag.List  // messages of Absent
	ds     diag.List  // all other messages
	ctx    *hcl.EvalContext
	fns    map[string]function.Function
	bound  []binding // the variables of the for expressions around the one that is evaluated
}

// binding is a variable of a for expression with its value for one element.
type binding struct {
	name  string
	value cty.Value
}

// variable returns the value of a variable of a for expression.
func (in *evaluation) variable(name string) (v cty.Value, ok bool) {
	for i := len(in.bound) - 1; i >= 0; i-- {
		if in.bound[i].name == name {
			return in.bound[i].value, true
		}
	}
	return cty.NilVal, false
}

// resolved is the value of the first used steps of a reference; used is 0 if the value is
// unknown.
type resolved struct {
	value cty.Value
	used  int
}

// resolve resolves all references with the scope.
func (in *evaluation) resolve() {
	refs := in.expr.Refs()
	if len(refs) == 0 {
		return
	}
	in.refs = make([]resolved, len(refs))
	for i := range refs {
		v, used, ds := in.scope.Resolve(in.t, refs[i].Traversal, &refs[i].At)
		if IsAbsent(ds) {
			in.absent = append(in.absent, ds...)
			ds = nil
		}
		in.ds = append(in.ds, ds...)
		if !ds.HasErrors() {
			in.refs[i] = resolved{v, used}
		}
	}
}

// into adds the values of references to the variables for HCL.
func (in *evaluation) into(root *variables) {
	for i, r := range in.refs {
		if r.used > 0 {
			root.put(in.expr.refs[i].Traversal[:r.used], r.value)
		}
	}
}

// functions returns the functions; nil if they are not available, with messages that contain
// the reason.
func (in *evaluation) functions() map[string]function.Function {
	if in.fns == nil {
		fns, ds := functionsOf(in.t, in.scope, in.expr.provider, in.expr)
		if in.ds = append(in.ds, ds...); ds.HasErrors() {
			return nil
		}
		in.fns = fns
	}
	return in.fns
}

// context returns the context for HCL; nil if it is not available, with messages that contain
// the reason.
func (in *evaluation) context() *hcl.EvalContext {
	if in == nil || in.ds.HasErrors() {
		return nil
	}
	if in.ctx != nil {
		return in.ctx
	}
	fns := in.functions()
	if in.ds.HasErrors() {
		return nil
	}
	var root variables
	in.into(&root)
	in.ctx = &hcl.EvalContext{Variables: root.values(), Functions: fns}
	return in.ctx
}

// quick evaluates the common forms of expressions with the same result as HCL. Everything else
// is left to HCL. If something fails, ok is false: HCL must then create the message, or ignore
// the failure, for example in a branch that is not taken. quick avoids the object of all
// referenced values and its type, which HCL needs for each evaluation, and HCL's slow
// conversion of numbers to text. in is nil for an expression without references and functions.
func quick(x hcl.Expression, in *evaluation) (v cty.Value, ok bool) {
	switch x := x.(type) {
	case *hclsyntax.ObjectConsExpr:
		if plainKeys(x) {
			return quickObject(x, in)
		}
	case *hclsyntax.TupleConsExpr:
		return quickTuple(x, in)
	case *hclsyntax.TemplateExpr:
		return quickTemplate(x, in)
	case *hclsyntax.LiteralValueExpr:
		return x.Val, true
	case *hclsyntax.ParenthesesExpr:
		return quick(x.Expression, in)
	case *hclsyntax.TemplateWrapExpr:
		return quick(x.Wrapped, in)
	case *hclsyntax.ConditionalExpr:
		return quickConditional(x, in)
	case *hclsyntax.UnaryOpExpr:
		return quickUnary(x, in)
	case *hclsyntax.RelativeTraversalExpr:
		return quickRelative(x, in)
	case *hclsyntax.ScopeTraversalExpr:
		return quickRef(x, in)
	case *hclsyntax.IndexExpr:
		return quickIndex(x, in)
	case *hclsyntax.BinaryOpExpr:
		return quickBinary(x, in)
	case *hclsyntax.FunctionCallExpr:
		return quickCall(x, in)
	case *hclsyntax.ForExpr:
		return quickFor(x, in)
	}
	return asHCL(x, in)
}

// asHCL evaluates an expression with HCL.
func asHCL(x hcl.Expression, in *evaluation) (cty.Value, bool) {
	ctx := in.context()
	if ctx == nil && in != nil {
		return cty.DynamicVal, false
	}
	if in != nil && len(in.bound) > 0 {
		ctx = ctx.NewChild()
		ctx.Variables = make(map[string]cty.Value, len(in.bound))
		for _, b := range in.bound {
			ctx.Variables[b.name] = b.value
		}
	}
	v, diags := x.Value(ctx)
	return v, len(diags) == 0
}

func quickRef(x *hclsyntax.ScopeTraversalExpr, in *evaluation) (cty.Value, bool) {
	if in == nil {
		return asHCL(x, in)
	}
	if v, ok := in.variable(x.Traversal.RootName()); ok {
		v, diags := x.Traversal[1:].TraverseRel(v)
		return v, len(diags) == 0
	}
	i, ok := in.expr.index(x.Traversal)
	if !ok || in.refs[i].used == 0 {
		return asHCL(x, in)
	}
	v, rest := in.refs[i].value, x.Traversal[in.refs[i].used:]
	if len(rest) == 0 {
		return v, true
	}
	v, diags := rest.TraverseRel(v)
	return v, len(diags) == 0
}

func quickIndex(x *hclsyntax.IndexExpr, in *evaluation) (cty.Value, bool) {
	coll, ok := quick(x.Collection, in)
	if !ok {
		return cty.DynamicVal, false
	}
	key, ok := quick(x.Key, in)
	if !ok {
		return cty.DynamicVal, false
	}
	v, diags := hcl.Index(coll, key, &x.BracketRange)
	return v, len(diags) == 0
}

// computed evaluates an expression with HCL after its parts were evaluated and replaced by
// literals. HCL then needs no variables.
func computed(x hclsyntax.Expression) (cty.Value, bool) {
	v, diags := x.Value(nil)
	return v, len(diags) == 0
}

func literal(v cty.Value) *hclsyntax.LiteralValueExpr { return &hclsyntax.LiteralValueExpr{Val: v} }

func quickUnary(x *hclsyntax.UnaryOpExpr, in *evaluation) (cty.Value, bool) {
	v, ok := quick(x.Val, in)
	if !ok {
		return cty.DynamicVal, false
	}
	return unary(x.Op, v)
}

func unary(op *hclsyntax.Operation, v cty.Value) (cty.Value, bool) {
	if op == hclsyntax.OpNegate && v.Type() == cty.Number && plain(v) {
		return v.Negate(), true
	}
	return computed(&hclsyntax.UnaryOpExpr{Op: op, Val: literal(v)})
}

func quickConditional(x *hclsyntax.ConditionalExpr, in *evaluation) (cty.Value, bool) {
	parts := [3]hclsyntax.Expression{x.Condition, x.TrueResult, x.FalseResult}
	var vals [3]cty.Value
	for i := range parts {
		v, ok := quick(parts[i], in)
		if !ok {
			return cty.DynamicVal, false
		}
		vals[i] = v
	}
	return conditional(vals[0], vals[1], vals[2])
}

func conditional(cond, yes, no cty.Value) (cty.Value, bool) {
	return computed(&hclsyntax.ConditionalExpr{Condition: literal(cond), TrueResult: literal(yes), FalseResult: literal(no)})
}

func quickRelative(x *hclsyntax.RelativeTraversalExpr, in *evaluation) (cty.Value, bool) {
	v, ok := quick(x.Source, in)
	if !ok {
		return cty.DynamicVal, false
	}
	v, diags := x.Traversal.TraverseRel(v)
	return v, len(diags) == 0
}

// quickFor evaluates a for expression whose collection, conditions and keys are known and not marked.
// HCL evaluates other ones.
func quickFor(x *hclsyntax.ForExpr, in *evaluation) (cty.Value, bool) {
	if in != nil {
		depth := len(in.bound)
		v, ok := quickLoop(x, in, depth)
		if in.bound = in.bound[:depth]; ok {
			return v, true
		}
	}
	return asHCL(x, in)
}

// quickLoop is quickFor without HCL, except that HCL evaluates the condition once more, with unknown
// elements, to find errors in it. It leaves variables in in.bound, which had the length depth.
func quickLoop(x *hclsyntax.ForExpr, in *evaluation, depth int) (cty.Value, bool) {
	coll, ok := quick(x.CollExpr, in)
	if !ok || !plain(coll) || !coll.CanIterateElements() {
		return cty.DynamicVal, false
	}
	bind := func(k, v cty.Value) {
		in.bound = in.bound[:depth]
		if x.KeyVar != "" {
			in.bound = append(in.bound, binding{x.KeyVar, k})
		}
		in.bound = append(in.bound, binding{x.ValVar, v})
	}
	if x.CondExpr != nil {
		bind(cty.DynamicVal, cty.DynamicVal)
		v, ok := asHCL(x.CondExpr, in)
		if v, _ = v.Unmark(); !ok || v.IsNull() || v.Type() != cty.Bool && v.Type() != cty.DynamicPseudoType {
			return cty.DynamicVal, false
		}
	}
	n := coll.LengthInt()
	var vals []cty.Value
	var named map[string]cty.Value
	var groups map[string][]cty.Value
	switch {
	case x.KeyExpr == nil:
		vals = make([]cty.Value, 0, n)
	case x.Group:
		groups = make(map[string][]cty.Value, n)
	default:
		named = make(map[string]cty.Value, n)
	}
	for it := coll.ElementIterator(); it.Next(); {
		bind(it.Element())
		if x.CondExpr != nil {
			v, ok := quick(x.CondExpr, in)
			if !ok || !plain(v) || v.Type() != cty.Bool {
				return cty.DynamicVal, false
			}
			if v.False() {
				continue
			}
		}
		key := ""
		if x.KeyExpr != nil {
			v, ok := quick(x.KeyExpr, in)
			if !ok || !plain(v) || !v.Type().IsPrimitiveType() {
				return cty.DynamicVal, false
			}
			if key, ok = primitiveText(v); !ok {
				return cty.DynamicVal, false
			}
		}
		v, ok := quick(x.ValExpr, in)
		if !ok {
			return cty.DynamicVal, false
		}
		switch {
		case x.KeyExpr == nil:
			vals = append(vals, v)
		case x.Group:
			groups[key] = append(groups[key], v)
		default:
			if _, twice := named[key]; twice {
				return cty.DynamicVal, false
			}
			named[key] = v
		}
	}
	if x.KeyExpr == nil {
		return cty.TupleVal(vals), true
	}
	if x.Group {
		named = make(map[string]cty.Value, len(groups))
		for key, all := range groups {
			named[key] = cty.TupleVal(all)
		}
	}
	return cty.ObjectVal(named), true
}

// plain reports whether a value is known, not null and not marked.
func plain(v cty.Value) bool { return !v.IsMarked() && v.IsKnown() && !v.IsNull() }

func quickBinary(x *hclsyntax.BinaryOpExpr, in *evaluation) (cty.Value, bool) {
	a, ok := quick(x.LHS, in)
	if !ok {
		return cty.DynamicVal, false
	}
	b, ok := quick(x.RHS, in)
	if !ok {
		return cty.DynamicVal, false
	}
	return binary(x.Op, a, b)
}

// binary computes with plain numbers, and leaves everything else to HCL.
func binary(op *hclsyntax.Operation, a, b cty.Value) (cty.Value, bool) {
	if a.Type() != cty.Number || b.Type() != cty.Number || !plain(a) || !plain(b) || a.AsBigFloat().IsInf() || b.AsBigFloat().IsInf() {
		return computed(&hclsyntax.BinaryOpExpr{LHS: literal(a), Op: op, RHS: literal(b)})
	}
	switch op {
	case hclsyntax.OpAdd:
		return a.Add(b), true
	case hclsyntax.OpSubtract:
		return a.Subtract(b), true
	case hclsyntax.OpMultiply:
		return a.Multiply(b), true
	case hclsyntax.OpLessThan:
		return a.LessThan(b), true
	case hclsyntax.OpLessThanOrEqual:
		return a.LessThanOrEqualTo(b), true
	case hclsyntax.OpGreaterThan:
		return a.GreaterThan(b), true
	case hclsyntax.OpGreaterThanOrEqual:
		return a.GreaterThanOrEqualTo(b), true
	}
	if op != hclsyntax.OpModulo || b.AsBigFloat().Sign() == 0 {
		return computed(&hclsyntax.BinaryOpExpr{LHS: literal(a), Op: op, RHS: literal(b)})
	}
	return a.Modulo(b), true
}

// quickCall calls a function with a fixed number of arguments.
func quickCall(x *hclsyntax.FunctionCallExpr, in *evaluation) (cty.Value, bool) {
	if in == nil || x.ExpandFinal {
		return asHCL(x, in)
	}
	f, ok := in.functions()[x.Name]
	if !ok {
		return asHCL(x, in)
	}
	params, more := f.Params(), f.VarParam()
	if takesExpressions(params, more) {
		return quickAttempt(x, in)
	}
	if len(x.Args) < len(params) || len(x.Args) > len(params) && more == nil {
		return cty.DynamicVal, false
	}
	args := make([]cty.Value, len(x.Args))
	for i, arg := range x.Args {
		if args[i], ok = quick(arg, in); !ok {
			return cty.DynamicVal, false
		}
	}
	return call(f, args)
}

// quickAttempt computes a call of try() or can() whose first argument is a known value. HCL evaluates
// other calls.
func quickAttempt(x *hclsyntax.FunctionCallExpr, in *evaluation) (cty.Value, bool) {
	name := strings.TrimPrefix(x.Name, "core::")
	if name == "try" && len(x.Args) > 0 || name == "can" && len(x.Args) == 1 {
		if v, ok := quick(x.Args[0], in); ok && v.IsWhollyKnown() && !v.ContainsMarked() {
			if name == "can" {
				return cty.True, true
			}
			return v, true
		}
	}
	return asHCL(x, in)
}

// call calls a function.
func call(f function.Function, given []cty.Value) (cty.Value, bool) {
	params, more := f.Params(), f.VarParam()
	if len(given) < len(params) || len(given) > len(params) && more == nil {
		return cty.DynamicVal, false
	}
	args := make([]cty.Value, len(given))
	for i, v := range given {
		want := more
		if i < len(params) {
			want = &params[i]
		}
		v, err := convert.Convert(v, want.Type)
		if err != nil {
			return cty.DynamicVal, false
		}
		args[i] = v
	}
	v, err := f.Call(args)
	return v, err == nil
}

// takesExpressions reports whether a function receives expressions instead of values, like
// try() and can().
func takesExpressions(params []function.Parameter, more *function.Parameter) bool {
	for i := range params {
		if params[i].Type.IsCapsuleType() {
			return true
		}
	}
	return more != nil && more.Type.IsCapsuleType()
}

// keyName returns the key of an object item if it is a plain name.
func keyName(item *hclsyntax.ObjectConsItem) string {
	k, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
	if !ok {
		return ""
	}
	if literal, ok := k.Wrapped.(*hclsyntax.LiteralValueExpr); ok && literal.Val.Type() == cty.String {
		return literal.Val.AsString() // from JSON syntax
	}
	if k.ForceNonLiteral {
		return ""
	}
	return hcl.ExprAsKeyword(k.Wrapped)
}

func plainKeys(x *hclsyntax.ObjectConsExpr) bool {
	for i := range x.Items {
		if keyName(&x.Items[i]) == "" {
			return false
		}
	}
	return true
}

func quickObject(x *hclsyntax.ObjectConsExpr, in *evaluation) (cty.Value, bool) {
	vals := make(map[string]cty.Value, len(x.Items))
	for i := range x.Items {
		v, ok := quick(x.Items[i].ValueExpr, in)
		if !ok {
			return cty.DynamicVal, false
		}
		vals[keyName(&x.Items[i])] = v
	}
	return cty.ObjectVal(vals), true
}

func quickTuple(x *hclsyntax.TupleConsExpr, in *evaluation) (cty.Value, bool) {
	vals := make([]cty.Value, len(x.Exprs))
	for i, item := range x.Exprs {
		v, ok := quick(item, in)
		if !ok {
			return cty.DynamicVal, false
		}
		vals[i] = v
	}
	return cty.TupleVal(vals), true
}

func quickTemplate(x *hclsyntax.TemplateExpr, in *evaluation) (cty.Value, bool) {
	var room [8]cty.Value
	parts := room[:0]
	for _, part := range x.Parts {
		v, ok := quick(part, in)
		if !ok {
			return cty.DynamicVal, false
		}
		parts = append(parts, v)
	}
	return template(parts)
}

// primitiveText converts a known primitive value to a string.
func primitiveText(v cty.Value) (string, bool) {
	switch v.Type() {
	case cty.String:
		return v.AsString(), true
	case cty.Number:
		if f := v.AsBigFloat(); f.IsInt() && !(f.Sign() == 0 && f.Signbit()) {
			if n, exact := f.Int64(); exact == 0 {
				return strconv.FormatInt(n, 10), true
			}
		}
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() || !s.IsKnown() || s.IsMarked() {
		return "", false
	}
	return s.AsString(), true
}
