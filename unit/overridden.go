package unit

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// An Overridden is an argument or block in a file that a unit merges, whose value a later layer
// replaces.
type Overridden struct {
	Path string       // such as inputs.tags.team
	At   source.Range // the replaced argument or block
	By   source.Range // what replaces it
}

// Overridden returns the arguments and blocks whose values do not reach the unit because a later
// layer replaces them, in the order of their positions. Values that are merged with others are not
// replaced: only their parts can be. Outputs of dependencies are unknown here, so that a map whose
// keys depend on them is not examined.
func (u *Unit) Overridden(t *demand.Task) []Overridden {
	w := &overrides{u: u, t: t}
	g := u.fields(u.on(t, false))
	for _, name := range g.names {
		w.node(g.member(name), name, 0)
	}
	slices.SortStableFunc(w.out, func(a, b Overridden) int {
		return cmp.Or(cmp.Compare(a.At.Filename, b.At.Filename), cmp.Compare(a.At.Start.Byte, b.At.Start.Byte), cmp.Compare(a.Path, b.Path))
	})
	return slices.Compact(w.out)
}

// overrides collects the arguments and blocks of a unit that a later layer replaces.
type overrides struct {
	u   *Unit
	t   *demand.Task
	out []Overridden
}

// node examines one node of the merged configuration and the nodes below it.
func (w *overrides) node(n node, path string, deep int) {
	if deep > maxFollow {
		return
	}
	c := w.u.on(w.t, false) // an error in one part does not affect the others
	if j, ok := n.(*joined); ok {
		r := j.how(c, j.key, j.lower, j.upper)
		if c.stuck() {
			return
		}
		if replaces(c, r, j) {
			w.replaced(c, j.lower, j.upper, path)
			w.node(j.upper, path, deep+1)
			return
		}
		n = r
	}
	o := n.open(c)
	if c.stuck() {
		return
	}
	names, ok := o.keys(c)
	if !ok {
		return
	}
	for _, name := range names {
		if in := o.child(c, name); in != nil && !c.stuck() {
			w.node(in, path+pathStep(name), deep+1)
		}
	}
}

// replaces reports whether the result of a join is the upper value alone.
func replaces(c *evaluator, r node, j *joined) bool {
	v, made := r.(valueNode)
	if !made {
		_, made = j.upper.(valueNode)
		return !made && r == j.upper
	}
	// A deep merge makes a value: the upper one, unless both are lists or mappings.
	bare, _ := v.v.Unmark()
	if bare == cty.NilVal || !bare.IsKnown() || bare.IsNull() || !bare.Type().IsPrimitiveType() {
		return false
	}
	upper, _ := j.upper.value(c).Unmark()
	return !c.stuck() && upper.IsKnown() && !upper.IsNull() && upper.RawEquals(bare)
}

// replaced records a lower layer, and those below it.
func (w *overrides) replaced(c *evaluator, lower, upper node, path string) {
	_, by := upper.where()
	for ; lower != nil; lower = below(c, lower) {
		if _, at := lower.where(); at != nil && by != nil && *at != *by {
			w.out = append(w.out, Overridden{Path: path, At: *at, By: *by})
		}
	}
}

// pathStep returns a step of a path as text.
func pathStep(name string) string {
	if value.IsIdentifier(name) {
		return "." + name
	}
	return "[" + syntax.Quote(name) + "]"
}
