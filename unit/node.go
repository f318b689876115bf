package unit

import (
	"slices"

	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Nodes
//
// A node is a part of a configuration that can be asked for one of its members
// without computing the others: a block, an object constructor, what several
// files give for one name. References, merging, rendering and explaining all
// walk over nodes.

type node interface {
	// open is the node that this one stands for: of a reference, what it refers
	// to. The result has members, or is a plain value.
	open(c *calc) node
	// value is all of it.
	value(c *calc) cty.Value
	// child is a member, or nil if there is none.
	child(c *calc, key string) node
	// keys lists the members, in order; ok is false for what has none.
	keys(c *calc) (names []string, ok bool)
	// where is the place that gives it, and the evaluation that it belongs to.
	where() (*ev, *source.Range)
}

// valueNode is a value that is already known.
type valueNode struct {
	v  cty.Value
	e  *ev
	at *source.Range
}

func (n valueNode) open(*calc) node             { return n }
func (n valueNode) value(*calc) cty.Value       { return n.v }
func (n valueNode) where() (*ev, *source.Range) { return n.e, n.at }

func (n valueNode) child(_ *calc, key string) node {
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

func (n valueNode) keys(*calc) ([]string, bool) { return valueKeys(n.v) }

func valueKeys(v cty.Value) ([]string, bool) {
	v, _ = v.Unmark()
	if !known(v) || !(v.Type().IsObjectType() || v.Type().IsMapType()) {
		return nil, false
	}
	names := make([]string, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		k, _ := it.Element()
		names = append(names, k.AsString())
	}
	return names, true
}

// blockNode is a block with its arguments and nested blocks.
type blockNode struct {
	e *ev
	b *block
}

func (n *blockNode) open(*calc) node             { return n }
func (n *blockNode) where() (*ev, *source.Range) { return n.e, &n.b.at }

func (n *blockNode) child(_ *calc, key string) node {
	if a := n.b.attr(key); a != nil {
		return &xprNode{e: n.e, x: a.x, at: &a.at}
	}
	bs := n.b.of(key)
	switch {
	case len(bs) == 0:
		return nil
	case bs[0].spec.label == noLabel:
		return &blockNode{n.e, bs[0]}
	}
	return labelNodes(n.e, bs)
}

func (n *blockNode) keys(*calc) ([]string, bool) {
	var names []string
	for _, a := range n.b.attrs {
		names = append(names, a.name)
	}
	for _, b := range n.b.blocks {
		if !slices.Contains(names, b.spec.name) {
			names = append(names, b.spec.name)
		}
	}
	return names, true
}

func (n *blockNode) value(c *calc) cty.Value { return objectOf(c, n) }

// objectOf computes all members of a node.
func objectOf(c *calc, n node) cty.Value {
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

// touch computes all members of a node for what they meet, and makes no value of
// them.
func touch(c *calc, n node) {
	switch n := n.(type) {
	case *blockNode:
		for _, a := range n.b.attrs {
			if c.eval(n.e, a.x); c.needsLeaf {
				return
			}
		}
		for _, b := range n.b.blocks {
			if touch(c, &blockNode{n.e, b}); c.needsLeaf {
				return
			}
		}
	case *group:
		for _, k := range n.names {
			if touch(c, n.members[k]); c.needsLeaf {
				return
			}
		}
	default:
		n.value(c)
	}
}

// group is members by name, in order.
type group struct {
	names   []string
	members map[string]node
	e       *ev
	at      *source.Range
}

func newGroup(e *ev, at *source.Range) *group {
	return &group{members: map[string]node{}, e: e, at: at}
}

func (g *group) put(name string, n node) {
	if _, again := g.members[name]; !again {
		g.names = append(g.names, name)
	}
	g.members[name] = n
}

func (g *group) open(*calc) node             { return g }
func (g *group) where() (*ev, *source.Range) { return g.e, g.at }
func (g *group) value(c *calc) cty.Value     { return objectOf(c, g) }
func (g *group) keys(*calc) ([]string, bool) { return g.names, true }

func (g *group) child(_ *calc, key string) node {
	if n, ok := g.members[key]; ok {
		return n
	}
	return nil
}

// labelNodes is blocks by label; of several with one label the last counts.
func labelNodes(e *ev, bs []*block) node {
	g := newGroup(e, &bs[0].at)
	for _, b := range bs {
		g.put(b.label, &blockNode{e, b})
	}
	return g
}

// assigned is a block that is written as an attribute with an object: wherever
// the object comes from, its paths count from the file that assigns it.
type assigned struct {
	n  node
	e  *ev
	at *source.Range
}

func (n *assigned) value(c *calc) cty.Value       { return n.n.value(c) }
func (n *assigned) keys(c *calc) ([]string, bool) { return n.n.keys(c) }
func (n *assigned) where() (*ev, *source.Range)   { return n.e, n.at }

func (n *assigned) open(c *calc) node {
	o := n.n.open(c)
	if v, ok := o.(valueNode); ok {
		v.e, v.at = n.e, n.at
		return v
	}
	return &assigned{o, n.e, n.at}
}

func (n *assigned) child(c *calc, key string) node {
	in := n.n.child(c, key)
	if in == nil {
		return nil
	}
	return &assigned{in, n.e, n.at}
}
