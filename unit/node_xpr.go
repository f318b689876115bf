package unit

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

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
