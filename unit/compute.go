package unit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/similar"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// scopeTree collects resolved references as a tree of their steps, from which HCL's
// variables are made.
type scopeTree struct {
	names []string
	subs  []*scopeTree
	v     cty.Value
	leaf  bool
}

func (n *scopeTree) put(ref hcl.Traversal, v cty.Value, leaf bool) {
	for _, step := range ref {
		name, ok := syntax.StepName(step)
		if !ok {
			name, _ = numberStep(step)
		}
		i := slices.Index(n.names, name)
		if i < 0 {
			i = len(n.names)
			n.names = append(n.names, name)
			n.subs = append(n.subs, new(scopeTree))
		}
		n = n.subs[i]
	}
	if leaf {
		n.v, n.leaf = v, true
	}
}

func (n *scopeTree) values() map[string]cty.Value {
	out := make(map[string]cty.Value, len(n.names))
	for i, name := range n.names {
		sub := n.subs[i]
		if sub.leaf {
			out[name] = sub.v
		} else {
			out[name] = cty.ObjectVal(sub.values())
		}
	}
	return out
}

// maxParts is the maximum number of values within one value of a unit. Each of them is
// rendered and copied several times.
const maxParts = 1 << 20

// raw computes an expression in its cell, or directly if it has none. A value with more
// than maxParts parts is an error.
func (c *evaluator) raw(e *evaluation, x *syntax.Expr) cty.Value {
	if e.changes.Touch(x) {
		c.note()
	}
	v := c.unmeasured(e, x)
	if c.stuck() || x.Kind == syntax.Constant || x.Kind == syntax.Reference {
		return v
	}
	if err := value.MeasuredBy(v, maxParts); err != nil {
		return c.tooLarge(x, err)
	}
	return v
}

func (c *evaluator) tooLarge(x *syntax.Expr, err error) cty.Value {
	at := x.At()
	return c.errorf(&at, diag.CodeUnitTooLarge, "Value too large", "This expression has a value that cannot be worked with: %s.", err)
}

func (c *evaluator) unmeasured(e *evaluation, x *syntax.Expr) cty.Value {
	switch x.Kind {
	case syntax.Constant:
		return x.ConstantValue
	case syntax.Object:
		return c.rawObject(e, x)
	case syntax.Tuple:
		vals := make([]cty.Value, len(x.Args))
		for i, a := range x.Args {
			vals[i] = c.eval(e, a)
			if c.needsLeaf {
				return cty.DynamicVal
			}
		}
		return cty.TupleVal(vals)
	case syntax.Reference:
		return c.rawReference(e, x)
	case syntax.MergeCall, syntax.DeepCall:
		return c.rawMerge(e, x)
	case syntax.ReadCall:
		if n := c.readConfig(e, x); n != nil {
			return n.value(c)
		}
		return cty.DynamicVal
	case syntax.Relative:
		base := (&exprNode{e: e, x: x.Args[0]}).open(c)
		if c.stuck() {
			return cty.DynamicVal
		}
		r := c.descend(base, x.Ref, 0)
		return c.rest(r, x.Ref, x)
	default:
		return c.rawOpaque(e, x)
	}
}

func (c *evaluator) rawObject(e *evaluation, x *syntax.Expr) cty.Value {
	vals := make(map[string]cty.Value, len(x.Items))
	var marks []cty.ValueMarks
	for i := range x.Items {
		it := &x.Items[i]
		k := it.Key
		if it.KeyX != nil {
			v, m := c.eval(e, it.KeyX).Unmark()
			if c.needsLeaf {
				return cty.DynamicVal
			}
			marks = append(marks, m)
			at := it.KeyX.At()
			kv := c.convert(v, cty.String, "key", at)
			switch {
			case c.failed || !kv.IsKnown():
				return cty.DynamicVal
			case kv.IsNull():
				return c.errorf(&at, diag.CodeUnitNullKey, "Null value as key", "Can't use a null value as a key.")
			}
			k = kv.AsString()
		}
		vals[k] = c.eval(e, it.X)
		if c.needsLeaf {
			return cty.DynamicVal
		}
	}
	return cty.ObjectVal(vals).WithMarks(marks...)
}

// rawReference returns the value of a plain reference.
func (c *evaluator) rawReference(e *evaluation, x *syntax.Expr) cty.Value {
	if c.deep++; c.deep > maxFollow {
		c.add(e.cycleAt(x).ds)
		return cty.DynamicVal
	}
	defer func() { c.deep-- }()
	r := c.resolve(e, x.Ref)
	if c.stuck() {
		return cty.DynamicVal
	}
	if r.n == nil {
		at := x.At()
		why := unknownRoot(x.Ref.RootName())
		if !e.file().Src.Shows(at.Start.Line, at.End.Line) {
			why = unknownName(why, &hclsyntax.ScopeTraversalExpr{Traversal: x.Ref})
		}
		return c.errorf(&at, diag.CodeUnitUnknownVariable, unknownVariable, "%s", why)
	}
	return c.rest(r, x.Ref, x)
}

// rest applies the remaining steps of a reference, using HCL.
func (c *evaluator) rest(r resolved, ref hcl.Traversal, x *syntax.Expr) cty.Value {
	if r.missing != "" {
		at := ref[r.used].SourceRange()
		if c.tolerates(r, &at) {
			return cty.DynamicVal
		}
		return c.errorf(&at, diag.CodeUnitUnsupportedAttribute, "Unsupported attribute", "%s", r.missing)
	}
	v := r.n.value(c)
	if c.stuck() || r.used == len(ref) {
		return v
	}
	v, diags := ref[r.used:].TraverseRel(v)
	for _, d := range diags {
		d.Expression, d.EvalContext = nil, nil
	}
	if ds := diag.FromHCL(diags); len(ds) > 0 {
		at := x.At()
		if c.l.env.Tolerant && ofOutputs(ref) {
			return c.missingOutput(&at, ds[0].Detail)
		}
		c.add(ds.Under(&at))
	}
	return v
}

// ofOutputs reports whether a reference reads the outputs of a dependency of the same file.
func ofOutputs(ref hcl.Traversal) bool {
	if ref.RootName() != "dependency" || len(ref) < 3 {
		return false
	}
	name, _ := syntax.StepName(ref[2])
	return name == "outputs"
}

// missingOutput warns about a missing output, or a missing part of one, if missing outputs
// are allowed.
func (c *evaluator) missingOutput(at *source.Range, why string) cty.Value {
	ds := diag.Warnf(diag.CodeUnitMissingOutput, at, "Missing output", "%s", why)
	c.add(ds)
	c.needsOut = c.needsOut || !c.full
	return cty.DynamicVal
}

// rawOpaque evaluates an expression with HCL. It resolves the references in the expression
// first.
func (c *evaluator) rawOpaque(e *evaluation, x *syntax.Expr) cty.Value {
	var tree scopeTree
	var missing []resolved
	var missRefs []hcl.Traversal
	for _, ref := range x.Refs {
		r := c.resolve(e, ref)
		if c.stuck() {
			return cty.DynamicVal
		}
		if r.n == nil {
			continue // HCL reports the unknown name, unless try() catches the error
		}
		if r.missing != "" {
			tree.put(ref[:r.used], cty.NilVal, false)
			missing, missRefs = append(missing, r), append(missRefs, ref)
			continue
		}
		if out, ok := r.n.(*outputsNode); ok && c.l.env.Rendering && r.used == len(ref) && out.without(c) { // makes try() fail over if there are no outputs
			r = resolved{n: out.d.noOutputs(), used: len(ref) - 1, missing: fmt.Sprintf("The dependency %q has no outputs.", out.d.label)}
			tree.put(ref[:r.used], cty.NilVal, false)
			missing, missRefs = append(missing, r), append(missRefs, ref)
			continue
		}
		v := r.n.value(c)
		if c.stuck() {
			return cty.DynamicVal
		}
		tree.put(ref[:r.used], v, true)
	}
	ctx := c.l.functions(e.file(), x.Tables)
	ctx = ctx.NewChild()
	ctx.Variables = tree.values()
	if len(x.Calls) > 0 {
		ctx.Functions = c.contextFunctions(e, x)
	}
	if x.Deep() {
		err := x.Bounded(ctx)
		if c.needsLeaf {
			return cty.DynamicVal
		}
		if err != nil {
			return c.tooLarge(x, err)
		}
	}
	v, diags := x.Expression.Value(ctx)
	if c.needsLeaf {
		return cty.DynamicVal
	}
	if len(diags) > 0 {
		diags = c.explainMissing(c.withheld(e, x, ctx, diags), missing, missRefs)
		if !diags.HasErrors() && v == cty.NilVal {
			v = cty.DynamicVal
		}
		c.add(diag.FromHCL(suggestFunctions(diags, ctx)))
	}
	return v
}

// suggestFunctions adds the nearest function of the unit language to messages about unknown
// functions. The evaluation context does not have these functions; if one of its own is similar,
// HCL has suggested that.
func suggestFunctions(diags hcl.Diagnostics, ctx *hcl.EvalContext) hcl.Diagnostics {
	for _, d := range diags {
		unknown, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d)
		if !ok {
			continue
		}
		name := unknown.CalledFunctionName()
		suggested := false
		for c := ctx; c != nil && !suggested; c = c.Parent() {
			suggested = similar.Nearest(name, maps.Keys(c.Functions)) != ""
		}
		if near := syntax.Nearest(name, syntax.ContextFunctions()); near != "" && !suggested {
			d.Detail += fmt.Sprintf(" Did you mean %q?", near)
		}
	}
	return diags
}

// tolerates reports whether a missing output is allowed here, and turns it into a warning.
func (c *evaluator) tolerates(r resolved, at *source.Range) bool {
	out, ok := r.n.(*outputsView)
	switch {
	case !ok || !c.l.env.Tolerant:
		return false
	case out.none:
		c.needsOut = c.needsOut || !c.full
	default:
		c.missingOutput(at, r.missing)
	}
	return true
}

// explainMissing improves HCL's errors about names of the unit language, and removes those
// about tolerated missing outputs.
func (c *evaluator) explainMissing(diags hcl.Diagnostics, missing []resolved, refs []hcl.Traversal) hcl.Diagnostics {
	var out hcl.Diagnostics
next:
	for _, d := range diags {
		out = append(out, d)
		if d.Subject == nil {
			continue
		}
		if d.Summary == "Unknown variable" {
			for _, r := range roots() {
				if r.only != stackFiles && strings.Contains(d.Detail, syntax.Quote(r.name)) {
					d.Detail = unknownRoot(r.name)
				}
			}
			continue
		}
		for i, r := range missing {
			step := refs[i][r.used].SourceRange()
			if d.Subject.Overlaps(step) || d.Subject.Overlaps(refs[i].SourceRange()) {
				d.Detail = r.missing
				d.Expression, d.EvalContext = nil, nil // these contain only the part before the step
				if c.tolerates(r, d.Subject) {
					out = out[:len(out)-1]
				}
				continue next
			}
		}
	}
	return out
}

func unknownRoot(name string) string {
	if name == "var" {
		return "There is no variable named \"var\" in unit files. Use local values, inputs or values."
	}
	return fmt.Sprintf("There is no variable named %q.", name)
}
