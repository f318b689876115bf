package unit

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Explaining
//
// Where a part of a unit comes from is found by following the path once more
// over the nodes that gave its value: an object constructor leads to the item, a
// merge to the layer that has the path, a reference to what it refers to, a
// conditional to the branch that is taken. Nothing is kept for it meanwhile.

// An Explanation tells where a part of a unit comes from.
type Explanation struct {
	// Value is the value of the part with its marks; cty.NilVal where it cannot be
	// computed.
	Value cty.Value
	// Steps begin with the place that gives the part and end where it was written.
	Steps []Step
}

// A Step is one station on the way from a part of a unit to where it was written.
type Step struct {
	Text string // such as "argument of merge"
	At   source.Range
	// Layer is the role of the file: base, or import with its block.
	Layer *source.Layer
	// Replaced reports that the step is not on the way: the value there lost to
	// the step before.
	Replaced bool
}

// Explain tells where a part of the unit comes from. path is as in expressions, for
// example inputs.tags.team, remote_state.config.key or local.region.
func (u *Unit) Explain(t *demand.Task, path string) (Explanation, diag.List) {
	c := u.on(t, u.l.env.Outputs != nil)
	ref, diags := hclsyntax.ParseTraversalAbs([]byte(path), "path", hcl.InitialPos)
	if diags.HasErrors() {
		return Explanation{}, codeErr(nil, "unit/explain-path", "Invalid path", "%q is no path in a unit, such as inputs.tags.team.", path)
	}
	w := &explainer{c: c, u: u}
	name := ref.RootName()
	var n node
	switch name {
	case "local", "locals":
		n = c.localsNode(u.e.env())
	case "import", "include", "feature", "values", "module", "dependency":
		n = c.root(u.e, ref)
	default:
		n = u.field(c, name)
	}
	if n == nil || !w.follow(n, ref[1:]) {
		if !c.stuck() {
			c.errorf(nil, "unit/explain-path", "Nothing to explain", "Nothing in this unit gives %s.", path)
		}
	}
	x := Explanation{Value: cty.NilVal, Steps: w.steps}
	if n != nil && !c.stuck() {
		if v := w.valueAt(n, ref[1:]); !c.stuck() {
			x.Value = v
		}
	}
	return x, c.ds
}

type explainer struct {
	c     *calc
	u     *Unit
	steps []Step
	deep  int
}

func (w *explainer) step(n node, text string) {
	e, at := n.where()
	if at == nil {
		return
	}
	w.stepAt(e, *at, text)
}

func (w *explainer) stepAt(e *ev, at source.Range, text string) {
	w.steps = append(w.steps, Step{Text: text, At: at, Layer: w.u.layerOf(w.c, e)})
}

// follow follows a path from a node on. It reports whether it leads anywhere.
func (w *explainer) follow(n node, path hcl.Traversal) bool {
	if w.deep++; w.deep > maxFollow || w.c.stuck() {
		return false
	}
	switch n := n.(type) {
	case *joined:
		return w.followTwo(n, n.lower, n.upper, path)
	case *overlay:
		return w.followTwo(n, n.lower, n.upper, path)
	case *aliasNode:
		return w.follow(n.whole, path)
	case *xprNode:
		return w.followXpr(n, path)
	case *converted:
		return w.follow(n.n, path)
	case *plainNode:
		return w.follow(n.n, path)
	case *assigned:
		return w.follow(n.n, path)
	case *mapped:
		if len(path) == 0 {
			return w.follow(n.n, path)
		}
	case *shape:
		return w.followMember(n.raw, path)
	case *outputsNode:
		w.step(n, fmt.Sprintf("output of the dependency %q", n.d.label))
		return true
	case *moduleOutputs:
		w.step(n, fmt.Sprintf("output of the module %q", n.m.name))
		return true
	}
	return w.followMember(n, path)
}

func (w *explainer) followMember(n node, path hcl.Traversal) bool {
	if len(path) == 0 {
		w.step(n, "set here")
		return true
	}
	key, ok := stepName(path[0])
	if !ok {
		w.step(n, "set here")
		return true
	}
	if in := n.child(w.c, key); in != nil {
		return w.follow(in, path[1:])
	}
	return false
}

// followTwo chooses between two layers by the value that came of them.
func (w *explainer) followTwo(both, lower, upper node, path hcl.Traversal) bool {
	switch {
	case !w.has(upper, path):
		return w.follow(lower, path)
	case !w.has(lower, path):
		return w.follow(upper, path)
	}
	v, low, up := w.valueAt(both, path), w.valueAt(lower, path), w.valueAt(upper, path)
	winner, loser, text := upper, lower, "replaced: "
	switch {
	case v.RawEquals(up):
	case v.RawEquals(low):
		winner, loser = lower, upper
	default:
		text = "merged with: "
	}
	if !w.follow(winner, path) {
		return false
	}
	at := len(w.steps)
	if !w.follow(loser, path) {
		w.steps = w.steps[:at]
	}
	for i := at; i < len(w.steps); i++ {
		w.steps[i].Replaced = text == "replaced: "
		w.steps[i].Text = text + w.steps[i].Text
	}
	return true
}

// valueAt is the value that a path leads to.
func (w *explainer) valueAt(n node, path hcl.Traversal) cty.Value {
	for i, s := range path {
		key, ok := stepName(s)
		if !ok {
			v, diags := path[i:].TraverseRel(n.value(w.c))
			if diags.HasErrors() {
				return cty.NilVal
			}
			return v
		}
		if n = n.open(w.c).child(w.c, key); n == nil {
			return cty.NilVal
		}
	}
	return n.value(w.c)
}

// followXpr follows into an expression.
func (w *explainer) followXpr(n *xprNode, path hcl.Traversal) bool {
	switch n.x.kind {
	case object:
		if len(path) == 0 {
			break
		}
		key, ok := stepName(path[0])
		if !ok {
			break
		}
		in := n.child(w.c, key)
		if in == nil {
			return false
		}
		return w.follow(in, path[1:])
	case mergeCall, deepCall:
		return w.followMerge(n, path)
	case reference:
		w.stepAt(n.e, n.x.at(), "refers to "+refText(n.x.ref))
		r := w.c.resolve(n.e, n.x.ref)
		if r.n == nil || r.missing != "" || w.c.stuck() {
			return true
		}
		at := len(w.steps)
		if !w.follow(r.n, append(append(hcl.Traversal{}, n.x.ref[r.used:]...), path...)) {
			w.steps = w.steps[:at]
		}
		return true
	case readCall, relative:
		w.stepAt(n.e, n.x.at(), "read by read_terragrunt_config")
		o := n.open(w.c)
		if _, plain := o.(valueNode); !plain {
			return w.follow(o, path)
		}
		return true
	}
	if x, ok := n.x.Expression.(*hclsyntax.ConditionalExpr); ok {
		return w.followConditional(n, x, path)
	}
	text := "set here"
	if n.x.kind == opaque {
		text = "computed here"
		var refs []string
		for _, ref := range n.x.refs {
			refs = append(refs, refText(ref))
		}
		if len(refs) > 0 {
			text += " from " + strings.Join(refs, ", ")
		}
	} else if len(path) > 0 && !w.has(n, path) {
		return false
	}
	e, at := n.where()
	if n.x.kind == constant && len(path) > 0 {
		if place := placeInside(n.x, path); place != nil {
			at = place
		}
	}
	w.stepAt(e, *at, text)
	return true
}

// has reports whether a path leads anywhere in a node's value.
func (w *explainer) has(n node, path hcl.Traversal) bool {
	for _, s := range path {
		key, ok := stepName(s)
		if !ok {
			return true
		}
		if n = n.open(w.c).child(w.c, key); n == nil {
			return false
		}
	}
	return true
}

// placeInside finds the item of a constant object that a path leads to.
func placeInside(x *xpr, path hcl.Traversal) *source.Range {
steps:
	for _, s := range path {
		key, ok := stepName(s)
		if !ok {
			break
		}
		for i := range x.items {
			if it := &x.items[i]; it.keyX == nil && it.key == key {
				x = it.x
				continue steps
			}
		}
		break
	}
	at := x.at()
	return &at
}

// followMerge finds the last argument of a merge that has the path.
func (w *explainer) followMerge(n *xprNode, path hcl.Traversal) bool {
	name := "merge"
	if n.x.kind == deepCall {
		name = "deep_merge"
	}
	if len(path) == 0 {
		w.stepAt(n.e, n.x.at(), "computed by "+name)
		return true
	}
	for i := len(n.x.args) - 1; i >= 0; i-- {
		arg := &xprNode{e: n.e, x: n.x.args[i]}
		if !w.has(arg, path) {
			continue
		}
		w.stepAt(n.e, arg.x.at(), "argument of "+name)
		at := len(w.steps)
		if w.follow(arg, path) {
			return true
		}
		w.steps = w.steps[:at]
	}
	return false
}

// followConditional takes the branch that the condition takes.
func (w *explainer) followConditional(n *xprNode, x *hclsyntax.ConditionalExpr, path hcl.Traversal) bool {
	r := &reader{f: &file{path: n.e.f.path, dir: n.e.f.dir}}
	v, _ := w.c.rawIn(n.e, r.compile(x.Condition)).Unmark()
	v, err := value.Convert(v, cty.Bool)
	at := x.Condition.Range()
	if w.c.stuck() || err != nil || !known(v) {
		w.stepAt(n.e, at, "hangs on a condition that is not known")
		return true
	}
	branch, text := x.TrueResult, "the condition is true"
	if v.False() {
		branch, text = x.FalseResult, "the condition is false"
	}
	w.stepAt(n.e, at, text)
	return w.follow(&xprNode{e: n.e, x: unnumbered(r.compile(branch))}, path)
}
