package unit

import (
	"slices"

	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// An exprNode is an expression of a file.
type exprNode struct {
	e  *evaluation
	x  *syntax.Expr
	at *source.Range // the definition; nil: the range of the expression
}

// constantOf returns the value of a constant expression, or NilVal for other nodes. Values and autoinclude files
// have none, since their constants may be handed in.
func constantOf(n node) cty.Value {
	x, ok := n.(*exprNode)
	if !ok || x.x.Kind != syntax.Constant || x.e.role == valuesRole || x.e.role == autoRole {
		return cty.NilVal
	}
	return x.x.ConstantValue
}

func (n *exprNode) where() (*evaluation, *source.Range) {
	if n.at != nil {
		return n.e, n.at
	}
	at := n.x.At()
	return n.e, &at
}

func (n *exprNode) value(c *evaluator) cty.Value { return c.eval(n.e, n.x) }

func (n *exprNode) plain(c *evaluator) node {
	_, at := n.where()
	return valueNode{c.eval(n.e, n.x), n.e, at}
}

func (n *exprNode) open(c *evaluator) node {
	if n.e.changes.Within(n.x) {
		c.note()
	}
	switch n.x.Kind {
	case syntax.Object:
		return n
	case syntax.Constant:
		if n.x.Items != nil {
			return n
		}
	case syntax.MergeCall, syntax.DeepCall:
		return n.openMerge(c)
	case syntax.Reference:
		if c.deep++; c.deep > maxFollow {
			c.add(n.e.cycleAt(n.x).ds)
			return valueNode{cty.DynamicVal, n.e, nil}
		}
		r := c.resolve(n.e, n.x.Ref)
		if !c.stuck() && r.used == len(n.x.Ref) && r.missing == "" {
			out := r.n.open(c)
			c.deep--
			return out
		}
		c.deep--
	case syntax.ReadCall:
		if r := c.readConfig(n.e, n.x); r != nil {
			return r
		}
		return valueNode{cty.DynamicVal, n.e, nil}
	case syntax.Relative:
		base := (&exprNode{e: n.e, x: n.x.Args[0]}).open(c)
		if r := c.descend(base, n.x.Ref, 0); !c.stuck() && r.used == len(n.x.Ref) && r.missing == "" {
			return r.n.open(c)
		}
	}
	if c.stuck() {
		return valueNode{cty.DynamicVal, n.e, nil}
	}
	return n.plain(c)
}

// maxFollow is the maximum number of references that are followed in a row without
// computing a cell.
const maxFollow = 20000

// openMerge returns a node that evaluates the arguments of a merge call separately, if
// possible.
func (n *exprNode) openMerge(c *evaluator) node {
	var out node
	for _, a := range n.x.Args {
		an := (&exprNode{e: n.e, x: a}).open(c)
		if c.stuck() {
			return valueNode{cty.DynamicVal, n.e, nil}
		}
		if _, ok := an.keys(c); !ok {
			if v, _ := an.value(c).Unmark(); v.IsKnown() && v.IsNull() {
				continue
			}
			return n.plain(c) // unknown, or an error that the function reports
		}
		if out == nil {
			out = an
			continue
		}
		how := replaceJoin
		if n.x.Kind == syntax.DeepCall {
			how = deepJoin
		}
		out = &overlay{lower: out, upper: an, how: how}
	}
	if out == nil {
		return n.plain(c)
	}
	return &aliasNode{node: out, whole: n}
}

// aliasNode has the members of another node, and computes its value as a whole itself.
type aliasNode struct {
	node
	whole *exprNode
}

func (n *aliasNode) open(*evaluator) node                { return n }
func (n *aliasNode) value(c *evaluator) cty.Value        { return c.eval(n.whole.e, n.whole.x) }
func (n *aliasNode) where() (*evaluation, *source.Range) { return n.whole.where() }

func (n *exprNode) child(c *evaluator, key string) node {
	if n.e.changes.Within(n.x) {
		c.note()
	}
	if n.x.Items == nil && n.x.Kind != syntax.Object {
		return n.open(c).child(c, key)
	}
	for i := len(n.x.Items) - 1; i >= 0; i-- {
		it := &n.x.Items[i]
		k := it.Key
		if it.KeyX != nil {
			v, _ := c.eval(n.e, it.KeyX).Unmark()
			if c.stuck() {
				return nil
			}
			if !syntax.IsString(v) {
				return n.plain(c).child(c, key)
			}
			k = v.AsString()
		}
		if k == key {
			return &exprNode{e: n.e, x: it.X}
		}
	}
	return nil
}

func (n *exprNode) keys(c *evaluator) ([]string, bool) {
	if n.e.changes.Within(n.x) {
		c.note()
	}
	if n.x.Items == nil && n.x.Kind != syntax.Object {
		o := n.open(c)
		if o == node(n) {
			return nil, false
		}
		return o.keys(c)
	}
	names := make([]string, 0, len(n.x.Items))
	for i := range n.x.Items {
		it := &n.x.Items[i]
		k := it.Key
		if it.KeyX != nil {
			v, _ := c.eval(n.e, it.KeyX).Unmark()
			if c.stuck() || !syntax.IsString(v) {
				return nil, false
			}
			k = v.AsString()
		}
		if it.KeyX == nil || !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	return names, true
}
