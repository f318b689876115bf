package unit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// scopeTree collects resolved references by their steps, to hand them to HCL.
type scopeTree struct {
	names []string
	subs  []*scopeTree
	v     cty.Value
	leaf  bool
}

func (n *scopeTree) put(ref hcl.Traversal, v cty.Value, leaf bool) {
	for _, step := range ref {
		name, _ := stepName(step)
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

// raw computes an expression: in its cell, or directly where it has none.
func (c *calc) raw(e *ev, x *xpr) cty.Value {
	switch x.kind {
	case constant:
		return x.v
	case object:
		return c.rawObject(e, x)
	case tuple:
		vals := make([]cty.Value, len(x.args))
		for i, a := range x.args {
			vals[i] = c.eval(e, a)
			if c.needsLeaf {
				return cty.DynamicVal
			}
		}
		return cty.TupleVal(vals)
	case reference:
		return c.rawReference(e, x)
	case mergeCall, deepCall:
		return c.rawMerge(e, x)
	case readCall:
		if n := c.readConfig(e, x); n != nil {
			return n.value(c)
		}
		return cty.DynamicVal
	case relative:
		base := (&xprNode{e: e, x: x.args[0]}).open(c)
		if c.stuck() {
			return cty.DynamicVal
		}
		r := c.descend(base, x.ref, 0)
		return c.rest(r, x.ref, x)
	default:
		return c.rawOpaque(e, x)
	}
}

func (c *calc) rawObject(e *ev, x *xpr) cty.Value {
	vals := make(map[string]cty.Value, len(x.items))
	var marks []cty.ValueMarks
	for i := range x.items {
		it := &x.items[i]
		k := it.key
		if it.keyX != nil {
			v, m := c.eval(e, it.keyX).Unmark()
			if c.needsLeaf {
				return cty.DynamicVal
			}
			marks = append(marks, m)
			at := it.keyX.at()
			kv := c.convert(v, cty.String, "key", at)
			switch {
			case c.failed || !kv.IsKnown():
				return cty.DynamicVal
			case kv.IsNull():
				return c.errorf(&at, "unit/null-key", "Null value as key", "Can't use a null value as a key.")
			}
			k = kv.AsString()
		}
		vals[k] = c.eval(e, it.x)
		if c.needsLeaf {
			return cty.DynamicVal
		}
	}
	return cty.ObjectVal(vals).WithMarks(marks...)
}

// rawReference is the value of a plain reference.
func (c *calc) rawReference(e *ev, x *xpr) cty.Value {
	if c.deep++; c.deep > maxFollow {
		c.add(e.cycleAt(x).ds)
		return cty.DynamicVal
	}
	defer func() { c.deep-- }()
	r := c.resolve(e, x.ref)
	if c.stuck() {
		return cty.DynamicVal
	}
	if r.n == nil {
		at := x.at()
		why := unknownRoot(x.ref.RootName())
		if !e.f.src.Shows(at.Start.Line, at.End.Line) {
			why = unknownName(why, &hclsyntax.ScopeTraversalExpr{Traversal: x.ref})
		}
		return c.errorf(&at, "unit/unknown-variable", unknownVariable, "%s", why)
	}
	return c.rest(r, x.ref, x)
}

// rest takes the steps of a reference that HCL knows better.
func (c *calc) rest(r resolved, ref hcl.Traversal, x *xpr) cty.Value {
	if r.missing != "" {
		at := ref[r.used].SourceRange()
		if c.tolerates(r, &at) {
			return cty.DynamicVal
		}
		return c.errorf(&at, "unit/unsupported-attribute", "Unsupported attribute", "%s", r.missing)
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
		at := x.at()
		if c.l.env.Tolerant && ofOutputs(ref) {
			return c.missingOutput(&at, ds[0].Detail)
		}
		c.add(ds.Under(&at))
	}
	return v
}

// ofOutputs tells references to the outputs of a dependency of the same file.
func ofOutputs(ref hcl.Traversal) bool {
	if ref.RootName() != "dependency" || len(ref) < 3 {
		return false
	}
	name, _ := stepName(ref[2])
	return name == "outputs"
}

// missingOutput warns of an output, or a part of one, that is missing where outputs
// need not exist.
func (c *calc) missingOutput(at *source.Range, why string) cty.Value {
	ds := diag.Warnf(at, "Missing output", "%s", why)
	ds[0].Code = "unit/missing-output"
	c.add(ds)
	c.needsOut = c.needsOut || !c.full
	return cty.DynamicVal
}

// rawOpaque lets HCL compute what only it knows, with the values of the
// references found first.
func (c *calc) rawOpaque(e *ev, x *xpr) cty.Value {
	var tree scopeTree
	var missing []resolved
	var missRefs []hcl.Traversal
	for _, ref := range x.refs {
		r := c.resolve(e, ref)
		if c.stuck() {
			return cty.DynamicVal
		}
		if r.n == nil {
			continue // HCL tells that the name is unknown, unless try() catches it
		}
		if r.missing != "" {
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
	ctx := c.l.functions(e.f, x.tables)
	ctx = ctx.NewChild()
	ctx.Variables = tree.values()
	if len(x.calls) > 0 {
		ctx.Functions = c.contextFunctions(e, x)
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
		c.add(diag.FromHCL(diags))
	}
	return v
}

// tolerates makes a warning of an output that is missing, where outputs need
// not exist.
func (c *calc) tolerates(r resolved, at *source.Range) bool {
	if _, ok := r.n.(*outputsView); !ok || !c.l.env.Tolerant {
		return false
	}
	c.missingOutput(at, r.missing)
	return true
}

// explainMissing makes HCL's errors about our own names tell more, and takes
// away those that are tolerated.
func (c *calc) explainMissing(diags hcl.Diagnostics, missing []resolved, refs []hcl.Traversal) hcl.Diagnostics {
	var out hcl.Diagnostics
next:
	for _, d := range diags {
		out = append(out, d)
		if d.Subject == nil {
			continue
		}
		if d.Summary == "Unknown variable" {
			for _, root := range [...]string{"local", "import", "include", "dependency", "feature", "values", "module"} {
				if strings.Contains(d.Detail, quote(root)) {
					d.Detail = unknownRoot(root)
				}
			}
			continue
		}
		for i, r := range missing {
			step := refs[i][r.used].SourceRange()
			if d.Subject.Overlaps(step) || d.Subject.Overlaps(refs[i].SourceRange()) {
				d.Detail = r.missing
				d.Expression, d.EvalContext = nil, nil // which holds no more than what stands before the step
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
