package unit

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Expansion
//
// An expansion block in a dependency, unit or stack block declares one instance of the
// block for each element of for_each, or for each number below count. The arguments of an
// instance are evaluated with each or count defined. They belong to an evaluation of their
// own, which differs from that of the file only in these two names.

// instance is one instance of a block.
type instance struct {
	key   string
	each  cty.Value     // each.*; NilVal without for_each
	count cty.Value     // count.*; NilVal without count
	at    *source.Range // of for_each or count
}

// address returns the key of the instance in an address, such as ["a"] or [0].
func (i *instance) address() addr.Key {
	if i.count == cty.NilVal {
		return addr.Str(i.key)
	}
	n, _ := i.count.GetAttr("index").AsBigFloat().Int64()
	return addr.Int(int(n))
}

// maxInstances is the largest number of instances of one block. A mistake in an expression
// must not fill the memory or the disk.
const maxInstances = 10000

// expansion returns the instances that an expansion block declares. what is the type of the
// block that contains it. The result is empty after an error.
func (c *evaluator) expansion(b node, what string) []instance {
	_, at := b.where()
	each, count := b.child(c, "for_each"), b.child(c, "count")
	switch {
	case c.stuck():
		return nil
	case (each == nil) == (count == nil):
		c.errorf(at, diag.CodeUnitExpansion, "Invalid expansion", "The expansion of a %s must have either for_each or count.", what)
		return nil
	case count != nil:
		return c.expandCount(count)
	}
	return c.expandEach(each, what)
}

func (c *evaluator) expandCount(n node) []instance {
	_, at := n.where()
	v := c.static(n, cty.Number, "count")
	if c.stuck() {
		return nil
	}
	f := cty.Zero.AsBigFloat()
	if v.IsKnown() && !v.IsNull() {
		f = v.AsBigFloat()
	}
	number, exact := f.Int64()
	if v.IsNull() || !f.IsInt() || number < 0 || exact != 0 || number > maxInstances {
		c.errorf(at, diag.CodeUnitExpansion, "Invalid count value", "The count of an expansion must be a whole number from 0 to %d.", maxInstances)
		return nil
	}
	out := make([]instance, number)
	for i := range out {
		out[i] = instance{key: strconv.Itoa(i), count: cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(int64(i))}), at: at}
	}
	return out
}

// expandEach returns an instance for each element of a map or set, in the order of the keys.
func (c *evaluator) expandEach(n node, what string) []instance {
	_, at := n.where()
	v := c.static(n, cty.DynamicPseudoType, "for_each")
	if c.stuck() || v == cty.NilVal {
		return nil
	}
	ty := v.Type()
	if v.IsNull() || !(ty.IsObjectType() || ty.IsMapType() || ty.IsSetType() || ty.IsTupleType() && v.LengthInt() == 0) {
		c.errorf(at, diag.CodeUnitForEach, "Invalid for_each value", "The for_each of a %s must be a map, an object, or a set of strings.", what)
		return nil
	}
	if n := v.LengthInt(); n > maxInstances {
		c.errorf(at, diag.CodeUnitForEach, "Invalid for_each value", "The for_each of a %s has %d elements. At most %d are possible.", what, n, maxInstances)
		return nil
	}
	var out []instance
	for it := v.ElementIterator(); it.Next(); {
		k, item := it.Element()
		if ty.IsSetType() {
			k = item
		}
		k, _ = k.Unmark()
		if what != "module" && k.Type() == cty.Number && syntax.Known(k) && !syntax.HugeNumber(k) {
			k = cty.StringVal(k.AsBigFloat().Text('f', -1))
		}
		if !syntax.IsString(k) {
			c.errorf(at, diag.CodeUnitForEach, "Invalid for_each value", "The keys of for_each must be strings that are known.")
			return nil
		}
		out = append(out, instance{key: k.AsString(), each: cty.ObjectVal(map[string]cty.Value{"key": k, "value": item}), at: at})
	}
	return out
}

// in returns the evaluation of a file's expressions for one instance of a block. owner is
// the evaluation whose effective configuration contains the block; name identifies the
// block there. Equal arguments yield the same evaluation, so that its cells are computed
// once and cycles are found.
func (i *instance) in(e, owner *evaluation, name string) *evaluation {
	owner.cache.mu.Lock()
	defer owner.cache.mu.Unlock()
	k := instanceKey{e, name, i.key}
	same := func(a, b cty.Value) bool {
		if a == cty.NilVal || b == cty.NilVal {
			return a == cty.NilVal && b == cty.NilVal
		}
		return a.RawEquals(b)
	}
	for _, in := range owner.cache.instances[k] {
		if same(in.of.each, i.each) && same(in.of.count, i.count) {
			return in
		}
	}
	if e.l.changes != nil {
		e.l.changes.unsure.Store(true) // the values of each and count carry no notes
	}
	in := newEvaluation(e.l, e.file(), e.role, e.dir)
	in.leaf, in.child, in.label, in.id, in.vals, in.placing = e.leaf, e.child, e.label, e.id, e.vals, e.placing
	in.of = partOf{top: e.env(), each: i.each, count: i.count, eachAt: i.at, instance: true}
	if owner.cache.instances == nil {
		owner.cache.instances = map[instanceKey][]*evaluation{}
	}
	owner.cache.instances[k] = append(owner.cache.instances[k], in)
	return in
}

// instanceKey identifies the evaluations of an instance of a block. There are several if
// the units that share the block give the instance different values.
type instanceKey struct {
	of        *evaluation
	name, key string
}

// wholeFile returns the evaluation of the whole file that contains an expression of an instance.
func (e *evaluation) wholeFile() *evaluation {
	if e != nil && e.of.instance {
		return e.of.top
	}
	return e
}

// moved returns a node whose expressions are evaluated for one instance.
func (i *instance) moved(n node, owner *evaluation, name string) node {
	move := func(n node) node { return i.moved(n, owner, name) }
	switch n := n.(type) {
	case *exprNode:
		return &exprNode{e: i.in(n.e, owner, name), x: n.x, at: n.at}
	case *blockNode:
		return &blockNode{i.in(n.e, owner, name), n.b}
	case *assigned:
		return &assigned{move(n.n), i.in(n.e, owner, name), n.at}
	case *joined:
		return &joined{n.key, move(n.lower), move(n.upper), n.how}
	case *overlay:
		return &overlay{move(n.lower), move(n.upper), n.how}
	case *mapped:
		return &mapped{move(n.n), n.f}
	case *converted:
		return &converted{move(n.n), n.f}
	case *group:
		g := newGroup(n.e, n.at)
		for _, k := range n.names {
			g.put(k, move(n.member(k)))
		}
		return g
	}
	return n
}

// expandedNode is a block with an expansion. Its members are the instances, by key.
type expandedNode struct {
	raw   node
	owner *evaluation
	what  string // the type of the block
	label string
	as    func(i *instance, b node) node // the member for the block of an instance
}

// expanded returns the instances of a block of the effective configuration of owner, or nil
// if the block has no expansion.
func (c *evaluator) expanded(raw node, owner *evaluation, what, label string, as func(i *instance, b node) node) *expandedNode {
	if raw.child(c, "expansion") == nil {
		return nil
	}
	return &expandedNode{raw, owner, what, label, as}
}

func (n *expandedNode) instances(c *evaluator) []instance {
	return c.expansion(n.raw.child(c, "expansion"), n.what)
}

func (n *expandedNode) open(*evaluator) node                { return n }
func (n *expandedNode) value(c *evaluator) cty.Value        { return objectOf(c, n) }
func (n *expandedNode) where() (*evaluation, *source.Range) { return n.raw.where() }
func (n *expandedNode) numbered()                           {}

func (n *expandedNode) keys(c *evaluator) ([]string, bool) {
	names := []string{}
	for _, i := range n.instances(c) {
		names = append(names, i.key)
	}
	return names, true
}

func (n *expandedNode) child(c *evaluator, key string) node {
	all := n.instances(c)
	i := slices.IndexFunc(all, func(i instance) bool { return i.key == key })
	if i < 0 {
		return nil
	}
	return n.of(&all[i])
}

func (n *expandedNode) lacks(key string) string {
	return fmt.Sprintf("The %s %q has no instance %s.", n.what, n.label, syntax.Quote(key))
}

// of returns the member for one instance.
func (n *expandedNode) of(i *instance) node {
	return n.as(i, &instanceNode{i.moved(n.raw, n.owner, n.what+" "+n.label)})
}

// instanceNode is the block of one instance, without its expansion.
type instanceNode struct{ node }

func (n *instanceNode) open(c *evaluator) node {
	return &instanceNode{n.node.open(c)}
}

func (n *instanceNode) value(c *evaluator) cty.Value { return objectOf(c, n) }

func (n *instanceNode) child(c *evaluator, key string) node {
	if key == "expansion" {
		return nil
	}
	return n.node.child(c, key)
}

func (n *instanceNode) keys(c *evaluator) ([]string, bool) {
	names, ok := n.node.keys(c)
	return slices.DeleteFunc(slices.Clone(names), func(k string) bool { return k == "expansion" }), ok
}

// numbers is a node whose members can be selected by number, as in dependency.shard[0].
type numbers interface{ numbered() }

// stepName returns the name of the member of a node that a step of a reference selects. ok
// is false for other steps.
func stepName(c *evaluator, n node, step hcl.Traverser) (name string, ok bool) {
	if name, ok := syntax.StepName(step); ok {
		return name, true
	}
	if _, ok := n.open(c).(numbers); ok && !c.stuck() {
		return numberStep(step)
	}
	return "", false
}

// numberStep returns the number by which a step selects an element, as text.
func numberStep(step hcl.Traverser) (string, bool) {
	i, ok := step.(hcl.TraverseIndex)
	if !ok || !syntax.Known(i.Key) || i.Key.Type() != cty.Number || syntax.HugeNumber(i.Key) {
		return "", false
	}
	return i.Key.AsBigFloat().Text('f', -1), true
}
