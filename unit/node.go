package unit

import (
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Nodes
//
// A node is a part of a configuration whose members can be computed separately: a block, an
// object constructor, or the merged values of several files. References, merging, rendering
// and explaining all walk over nodes.

type node interface {
	// open resolves a reference to the node that it refers to. The result has members, or
	// is a plain value.
	open(c *evaluator) node
	// value computes the whole value.
	value(c *evaluator) cty.Value
	// child returns a member, or nil if there is none.
	child(c *evaluator, key string) node
	// keys returns the names of the members, in order. ok is false for a node without
	// members.
	keys(c *evaluator) (names []string, ok bool)
	// where returns the range of the definition and the evaluation of its file.
	where() (*evaluation, *source.Range)
}

// valueNode is a computed value.
type valueNode struct {
	v  cty.Value
	e  *evaluation
	at *source.Range
}

func (n valueNode) open(*evaluator) node                { return n }
func (n valueNode) value(*evaluator) cty.Value          { return n.v }
func (n valueNode) where() (*evaluation, *source.Range) { return n.e, n.at }

func (n valueNode) child(_ *evaluator, key string) node {
	v, marks := n.v.Unmark()
	ty := v.Type()
	switch {
	case !v.IsKnown():
		if ty == cty.DynamicPseudoType || ty.IsMapType() || ty.IsObjectType() && ty.HasAttribute(key) {
			return valueNode{cty.DynamicVal, n.e, n.at}
		}
		return nil
	case v.IsNull():
		return nil
	case ty.IsObjectType():
		if ty.HasAttribute(key) {
			return valueNode{v.GetAttr(key).WithMarks(marks), n.e, n.at}
		}
	case ty.IsMapType():
		k := cty.StringVal(key)
		if v.HasIndex(k).True() {
			return valueNode{v.Index(k).WithMarks(marks), n.e, n.at}
		}
	}
	return nil
}

func (n valueNode) keys(*evaluator) ([]string, bool) { return valueKeys(n.v) }

func valueKeys(v cty.Value) ([]string, bool) {
	v, _ = v.Unmark()
	if !hasKeys(v) {
		return nil, false
	}
	if v.Type().IsObjectType() {
		return slices.Sorted(maps.Keys(v.Type().AttributeTypes())), true
	}
	names := make([]string, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		k, _ := it.Element()
		names = append(names, k.AsString())
	}
	return names, true
}

// hasKeys reports whether a value without marks is a known object or map. NilVal is none.
func hasKeys(v cty.Value) bool {
	return syntax.Known(v) && (v.Type().IsObjectType() || v.Type().IsMapType())
}

// blockNode is a block with its arguments and nested blocks.
type blockNode struct {
	e *evaluation
	b *syntax.Block
}

func (n *blockNode) open(*evaluator) node                { return n }
func (n *blockNode) where() (*evaluation, *source.Range) { return n.e, &n.b.At }

func (n *blockNode) child(c *evaluator, key string) node {
	n.noteLocals(c)
	if a := n.b.Attr(key); a != nil {
		return &exprNode{e: n.e, x: a.Expr, at: &a.At}
	}
	bs := n.b.Of(key)
	switch {
	case len(bs) == 0:
		return nil
	case bs[0].Spec.Label == syntax.NoLabel:
		return &blockNode{n.e, bs[0]}
	}
	return labelNodes(n.e, bs)
}

// noteLocals notes that the block has local values that differ in the other version.
func (n *blockNode) noteLocals(c *evaluator) {
	if n.b.Spec.Name == "locals" && n.e.changes.Locals() {
		c.note()
	}
}

func (n *blockNode) keys(c *evaluator) ([]string, bool) {
	n.noteLocals(c)
	var names []string
	for _, a := range n.b.Attrs {
		names = append(names, a.Name)
	}
	for _, b := range n.b.Blocks {
		if !slices.Contains(names, b.Spec.Name) {
			names = append(names, b.Spec.Name)
		}
	}
	return names, true
}

func (n *blockNode) value(c *evaluator) cty.Value { return objectOf(c, n) }

// objectOf computes all members of a node.
func objectOf(c *evaluator, n node) cty.Value {
	names, _ := n.keys(c)
	vals := make(map[string]cty.Value, len(names))
	for _, k := range names {
		m := n.child(c, k)
		if m == nil {
			if c.needsLeaf {
				return cty.DynamicVal
			}
			continue
		}
		vals[k] = m.value(c)
		if c.needsLeaf {
			return cty.DynamicVal
		}
	}
	return cty.ObjectVal(vals)
}

// touch computes all members of a node to record their facts, and discards the values.
func touch(c *evaluator, n node) {
	switch n := n.(type) {
	case *blockNode:
		n.noteLocals(c)
		for _, a := range n.b.Attrs {
			if c.eval(n.e, a.Expr); c.needsLeaf {
				return
			}
		}
		for _, b := range n.b.Blocks {
			if b.Spec.Name == "expansion" {
				continue // read where the instances are made
			}
			if touch(c, &blockNode{n.e, b}); c.needsLeaf {
				return
			}
		}
	case *instanceNode:
		touch(c, n.node)
	case *group:
		for _, k := range n.names {
			if touch(c, n.member(k)); c.needsLeaf {
				return
			}
		}
	default:
		n.value(c)
	}
}

// group is an ordered set of named members.
type group struct {
	names []string
	nodes []node         // of the names
	index map[string]int // of the names, if there are many
	e     *evaluation
	at    *source.Range
}

// fewMembers is the number of members up to which a group needs no index. Most have less than ten.
const fewMembers = 16

func newGroup(e *evaluation, at *source.Range) *group { return &group{e: e, at: at} }

func (g *group) put(name string, n node) {
	if i := g.find(name); i >= 0 {
		g.nodes[i] = n
		return
	}
	g.names, g.nodes = append(g.names, name), append(g.nodes, n)
	switch {
	case g.index != nil:
		g.index[name] = len(g.names) - 1
	case len(g.names) > fewMembers:
		g.index = make(map[string]int, 2*len(g.names))
		for i, name := range g.names {
			g.index[name] = i
		}
	}
}

// find returns the index of a member, or -1.
func (g *group) find(name string) int {
	if g.index == nil {
		return slices.Index(g.names, name)
	}
	if i, ok := g.index[name]; ok {
		return i
	}
	return -1
}

// member returns a member, or nil.
func (g *group) member(name string) node {
	if i := g.find(name); i >= 0 {
		return g.nodes[i]
	}
	return nil
}

func (g *group) open(*evaluator) node                { return g }
func (g *group) where() (*evaluation, *source.Range) { return g.e, g.at }
func (g *group) value(c *evaluator) cty.Value        { return objectOf(c, g) }
func (g *group) keys(*evaluator) ([]string, bool)    { return g.names, true }

func (g *group) child(_ *evaluator, key string) node { return g.member(key) }

// labelNodes returns blocks by label. Of several blocks with one label the last is used.
func labelNodes(e *evaluation, bs []*syntax.Block) node {
	g := newGroup(e, &bs[0].At)
	for _, b := range bs {
		g.put(b.Label, &blockNode{e, b})
	}
	return g
}

// assigned is a block that is written as an attribute. Relative paths in the object are
// resolved from the directory of the file with the attribute, wherever the object comes
// from.
type assigned struct {
	n  node
	e  *evaluation
	at *source.Range
}

func (n *assigned) value(c *evaluator) cty.Value        { return n.n.value(c) }
func (n *assigned) keys(c *evaluator) ([]string, bool)  { return n.n.keys(c) }
func (n *assigned) where() (*evaluation, *source.Range) { return n.e, n.at }

func (n *assigned) open(c *evaluator) node {
	o := n.n.open(c)
	if v, ok := o.(valueNode); ok {
		v.e, v.at = n.e, n.at
		return v
	}
	return &assigned{o, n.e, n.at}
}

func (n *assigned) child(c *evaluator, key string) node {
	in := n.n.child(c, key)
	if in == nil {
		return nil
	}
	return &assigned{in, n.e, n.at}
}
