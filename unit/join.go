package unit

import (
	"errors"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// A join merges the nodes that a lower and an upper layer have for a key.
type join func(c *evaluator, key string, lower, upper node) node

func replaceJoin(_ *evaluator, _ string, _, upper node) node { return upper }

// joined is a join that is computed on demand.
type joined struct {
	key          string
	lower, upper node
	how          join
}

func (n *joined) open(c *evaluator) node                      { return n.how(c, n.key, n.lower, n.upper).open(c) }
func (n *joined) value(c *evaluator) cty.Value                { return n.how(c, n.key, n.lower, n.upper).value(c) }
func (n *joined) child(c *evaluator, key string) node         { return n.open(c).child(c, key) }
func (n *joined) keys(c *evaluator) (names []string, ok bool) { return n.open(c).keys(c) }
func (n *joined) where() (*evaluation, *source.Range)         { return n.upper.where() }

// joinOf returns a deferred join if both layers have the key.
func joinOf(key string, lower, upper node, how join) node {
	switch {
	case lower == nil:
		return upper
	case upper == nil:
		return lower
	}
	return &joined{key, lower, upper, how}
}

// overlay is two mappings that are merged key by key.
type overlay struct {
	lower, upper node
	how          join
}

func (n *overlay) open(*evaluator) node                { return n }
func (n *overlay) value(c *evaluator) cty.Value        { return objectOf(c, n) }
func (n *overlay) where() (*evaluation, *source.Range) { return n.upper.where() }

func (n *overlay) child(c *evaluator, key string) node {
	u := n.upper.child(c, key)
	if c.needsLeaf {
		return nil
	}
	return joinOf(key, n.lower.child(c, key), u, n.how)
}

func (n *overlay) keys(c *evaluator) ([]string, bool) {
	low, ok := n.lower.keys(c)
	if !ok {
		return nil, false
	}
	up, ok := n.upper.keys(c)
	if !ok {
		return nil, false
	}
	names := slices.Clone(low)
	have := make(map[string]bool, len(low))
	for _, k := range low {
		have[k] = true
	}
	for _, k := range up {
		if !have[k] {
			names = append(names, k)
		}
	}
	return names, true
}

// mapsJoin merges two mappings key by key. A null mapping counts as not set.
func mapsJoin(how join) join {
	return func(c *evaluator, key string, lower, upper node) node {
		lo, uo := lower.open(c), upper.open(c)
		if c.stuck() {
			return valueNode{v: cty.DynamicVal}
		}
		_, lok := lo.keys(c)
		_, uok := uo.keys(c)
		switch {
		case lok && uok:
			return &overlay{lo, uo, how}
		case !uok && isNull(c, uo):
			return lo
		case !lok && isNull(c, lo):
			return uo
		case !uok && !unknownNode(c, uo):
			return c.notAMap(key, uo)
		case !lok && !unknownNode(c, lo):
			return c.notAMap(key, lo)
		}
		return valueNode{v: cty.DynamicVal}
	}
}

func isNull(c *evaluator, n node) bool {
	v, _ := n.value(c).Unmark()
	return !c.stuck() && v.IsNull()
}

func unknownNode(c *evaluator, n node) bool {
	v, _ := n.value(c).Unmark()
	return c.stuck() || !v.IsKnown()
}

func (c *evaluator) notAMap(key string, n node) node {
	_, at := n.where()
	v, _ := n.value(c).Unmark()
	c.errorf(at, diag.CodeUnitNotAMap, "Map expected", "%q must be a map or an object, to be merged with what other files give for it, but this is %s.", key, friendly(v.Type()))
	return valueNode{v: cty.DynamicVal}
}

func friendly(ty cty.Type) string {
	switch {
	case ty.IsTupleType():
		return "a list"
	case ty.IsObjectType():
		return "an object"
	}
	name := ty.FriendlyName()
	if name == "object" || name[0] == 'a' || name[0] == 'o' {
		return "an " + name
	}
	return "a " + name
}

// deepJoin merges recursively: mappings key by key, and lists by appending.
func deepJoin(c *evaluator, key string, lower, upper node) node {
	lo, uo := lower.open(c), upper.open(c)
	if c.stuck() {
		return valueNode{v: cty.DynamicVal}
	}
	_, lok := lo.keys(c)
	_, uok := uo.keys(c)
	if lok && uok {
		return &overlay{lo, uo, deepJoin}
	}
	a, b := lo.value(c), uo.value(c)
	e, at := upper.where()
	if c.stuck() {
		return valueNode{cty.DynamicVal, e, at}
	}
	v, err := value.DeepMerge(a, b)
	if err != nil {
		c.conflict(key, err, lower, upper)
		return valueNode{cty.DynamicVal, e, at}
	}
	return valueNode{v, e, at}
}

// conflict reports a map or list against something else.
func (c *evaluator) conflict(key string, err error, lower, upper node) {
	_, at := upper.where()
	_, below := lower.where()
	detail := "deep merge"
	var kinds *value.ConflictError
	if errors.As(err, &kinds) {
		name := syntax.Quote(key)
		if p := value.PathString(kinds.Path); p != "" {
			name = syntax.Quote(key + "." + p)
		}
		detail = name + " cannot be merged: it is " + kinds.Right + " here and " + kinds.Left + " in " + fileOf(below) + ". Make both of one kind, or give the key another name."
	}
	ds := codeErr(at, diag.CodeUnitDeepMergeConflict, "Values of different kinds cannot be merged", "%s", detail)
	if below != nil {
		ds.Note(below, "the other value")
	}
	c.add(ds)
}

func fileOf(at *source.Range) string {
	if at == nil {
		return "another file"
	}
	return at.Filename
}

// listJoin returns the join that concatenates two lists. If first is set, the upper layer's
// list comes first. If once is set, each element occurs once.
func listJoin(first, once bool) join {
	return func(c *evaluator, _ string, lower, upper node) node {
		a, b := lower.value(c), upper.value(c)
		e, at := upper.where()
		if c.stuck() {
			return valueNode{cty.DynamicVal, e, at}
		}
		if first {
			a, b = b, a
		}
		a, ma := a.Unmark()
		b, mb := b.Unmark()
		switch {
		case !a.IsKnown() || !b.IsKnown():
			return valueNode{cty.DynamicVal.WithMarks(ma, mb), e, at}
		case a.IsNull() || !a.CanIterateElements():
			return valueNode{b.WithMarks(ma, mb), e, at}
		case b.IsNull() || !b.CanIterateElements():
			return valueNode{a.WithMarks(ma, mb), e, at}
		}
		var all []cty.Value
		for _, v := range append(a.AsValueSlice(), b.AsValueSlice()...) {
			if !once || !slices.ContainsFunc(all, func(h cty.Value) bool { return h.RawEquals(v) }) {
				all = append(all, v)
			}
		}
		return valueNode{cty.TupleVal(all).WithMarks(ma, mb), e, at}
	}
}

// setJoin takes the upper value unless it is null, "" or an empty list.
func setJoin(c *evaluator, _ string, lower, upper node) node {
	v, _ := upper.value(c).Unmark()
	if c.stuck() || !v.IsKnown() {
		return upper
	}
	if v.IsNull() || syntax.IsString(v) && v.AsString() == "" || v.CanIterateElements() && v.LengthInt() == 0 {
		return lower
	}
	return upper
}

// mapped is a node whose members are passed through a function.
type mapped struct {
	n node
	f func(c *evaluator, key string, n node) node
}

func (n *mapped) open(c *evaluator) node {
	o := n.n.open(c)
	if _, ok := o.keys(c); !ok {
		return o
	}
	return &mapped{o, n.f}
}

func (n *mapped) value(c *evaluator) cty.Value {
	if _, ok := n.n.keys(c); !ok {
		return n.n.value(c)
	}
	return objectOf(c, n)
}

func (n *mapped) child(c *evaluator, key string) node {
	in := n.n.child(c, key)
	if in == nil {
		return nil
	}
	return n.f(c, key, in)
}

func (n *mapped) keys(c *evaluator) ([]string, bool)  { return n.n.keys(c) }
func (n *mapped) where() (*evaluation, *source.Range) { return n.n.where() }

// converted is a node whose value is passed through a function.
type converted struct {
	n node
	f func(c *evaluator, v cty.Value) cty.Value
}

func (n *converted) open(c *evaluator) node {
	e, at := n.n.where()
	return valueNode{n.value(c), e, at}
}

func (n *converted) value(c *evaluator) cty.Value {
	v := n.n.value(c)
	if c.stuck() {
		return cty.DynamicVal
	}
	return n.f(c, v)
}

func (n *converted) child(c *evaluator, key string) node { return n.open(c).child(c, key) }
func (n *converted) keys(c *evaluator) ([]string, bool)  { return n.open(c).keys(c) }
func (n *converted) where() (*evaluation, *source.Range) { return n.n.where() }
