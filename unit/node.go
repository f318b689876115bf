package unit

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
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

// xprNode is an expression of a file.
type xprNode struct {
	e  *ev
	x  *xpr
	at *source.Range // of the definition; nil: of the expression
}

func (n *xprNode) where() (*ev, *source.Range) {
	if n.at != nil {
		return n.e, n.at
	}
	at := n.x.at()
	return n.e, &at
}

func (n *xprNode) value(c *calc) cty.Value { return c.eval(n.e, n.x) }

func (n *xprNode) plain(c *calc) node {
	_, at := n.where()
	return valueNode{c.eval(n.e, n.x), n.e, at}
}

func (n *xprNode) open(c *calc) node {
	switch n.x.kind {
	case object:
		return n
	case constant:
		if n.x.items != nil {
			return n
		}
	case mergeCall, deepCall:
		return n.openMerge(c)
	case reference:
		if c.deep++; c.deep > maxFollow {
			c.add(n.e.cycleAt(n.x).ds)
			return valueNode{cty.DynamicVal, n.e, nil}
		}
		r := c.resolve(n.e, n.x.ref)
		if !c.stuck() && r.used == len(n.x.ref) && r.missing == "" {
			out := r.n.open(c)
			c.deep--
			return out
		}
		c.deep--
	case readCall:
		if r := c.readConfig(n.e, n.x); r != nil {
			return r
		}
		return valueNode{cty.DynamicVal, n.e, nil}
	case relative:
		base := (&xprNode{e: n.e, x: n.x.args[0]}).open(c)
		if r := c.descend(base, n.x.ref, 0); !c.stuck() && r.used == len(n.x.ref) && r.missing == "" {
			return r.n.open(c)
		}
	}
	if c.stuck() {
		return valueNode{cty.DynamicVal, n.e, nil}
	}
	return n.plain(c)
}

// maxFollow is how many references may lead to one another without anything
// being computed between them.
const maxFollow = 20000

// openMerge sees whether the arguments of a merge can be told apart.
func (n *xprNode) openMerge(c *calc) node {
	var out node
	for _, a := range n.x.args {
		an := (&xprNode{e: n.e, x: a}).open(c)
		if c.stuck() {
			return valueNode{cty.DynamicVal, n.e, nil}
		}
		if _, ok := an.keys(c); !ok {
			if v, _ := an.value(c).Unmark(); v.IsKnown() && v.IsNull() {
				continue
			}
			return n.plain(c) // unknown, or an error that the function tells
		}
		if out == nil {
			out = an
			continue
		}
		how := replaceJoin
		if n.x.kind == deepCall {
			how = deepJoin
		}
		out = &overlay{lower: out, upper: an, how: how}
	}
	if out == nil {
		return n.plain(c)
	}
	return &aliasNode{node: out, whole: n}
}

// aliasNode is a node whose members are another's but whose value as a whole is
// computed in its own way.
type aliasNode struct {
	node
	whole *xprNode
}

func (n *aliasNode) open(*calc) node             { return n }
func (n *aliasNode) value(c *calc) cty.Value     { return c.eval(n.whole.e, n.whole.x) }
func (n *aliasNode) where() (*ev, *source.Range) { return n.whole.where() }

func (n *xprNode) child(c *calc, key string) node {
	if n.x.items == nil && n.x.kind != object {
		return n.open(c).child(c, key)
	}
	for i := len(n.x.items) - 1; i >= 0; i-- {
		it := &n.x.items[i]
		k := it.key
		if it.keyX != nil {
			v, _ := c.eval(n.e, it.keyX).Unmark()
			if c.stuck() {
				return nil
			}
			if !isString(v) {
				return n.plain(c).child(c, key)
			}
			k = v.AsString()
		}
		if k == key {
			return &xprNode{e: n.e, x: it.x}
		}
	}
	return nil
}

func (n *xprNode) keys(c *calc) ([]string, bool) {
	if n.x.items == nil && n.x.kind != object {
		o := n.open(c)
		if o == node(n) {
			return nil, false
		}
		return o.keys(c)
	}
	names := make([]string, 0, len(n.x.items))
	for i := range n.x.items {
		it := &n.x.items[i]
		k := it.key
		if it.keyX != nil {
			v, _ := c.eval(n.e, it.keyX).Unmark()
			if c.stuck() || !isString(v) {
				return nil, false
			}
			k = v.AsString()
		}
		if it.keyX == nil || !slices.Contains(names, k) {
			names = append(names, k)
		}
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

// at is the place of the expression; none for the pseudo ones.
func (x *xpr) at() source.Range {
	if x.Expression == nil {
		return source.Range{}
	}
	return x.Range()
}

// eachRef calls f for every reference in an expression.
func (x *xpr) eachRef(f func(hcl.Traversal)) {
	for _, r := range x.refs {
		f(r)
	}
	if x.kind == reference {
		f(x.ref)
	}
	for _, a := range x.args {
		a.eachRef(f)
	}
	for _, it := range x.items {
		if it.keyX != nil {
			it.keyX.eachRef(f)
		}
		it.x.eachRef(f)
	}
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
