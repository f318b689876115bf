// Package view is how things are shown: plans, states, outputs, progress and
// messages, for people and as a stream of JSON objects.
//
// Main types: Human and Stream; main functions: Plan and State. The one rule:
// nothing here decides anything, and what is sensitive is not shown unless the
// user asked for it.
package view

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/zclconf/go-cty/cty"
)

// # How a change is shown
//
// A change is compared into a tree of nodes first and written afterwards,
// since what is written of an object depends on which of its parts changed.
// The comparison follows the schema as far as it goes; a value of a dynamic
// type is compared by the form that it would have as JSON: objects and maps
// are the same, and so are lists, sets and tuples.
//
// Absent and null are told apart by the place: an argument that is null is
// absent and not shown at all, whereas an element of a list or map and a part
// of a dynamic object are shown as null. An absent side is cty.NilVal here.

// op is what happens to one part of an object.
type op uint8

const (
	same op = iota
	create
	update
	remove
)

// kind tells how a node is written.
type kind uint8

const (
	leaf      kind = iota // before and after
	text                  // a string of several lines on one side at least
	encoded               // a string of JSON: inner
	object                // kids with bare names
	mapping               // kids with quoted names
	sequence              // kids without names
	unknown               // inner is what was there before, if anything
	secret                // not shown
	converted             // inner became after, of another kind
	writeOnly
	blockBody // kids are arguments, groups are blocks
)

// A node is one part of a change.
type node struct {
	op     op
	kind   kind
	forces bool // it forces replacement

	bare      bool // mapping, sequence: no surroundings of unchanged parts; mapping: names are not aligned
	showNull  bool // removed kids end in "-> null"
	warn      warning
	secretSet bool // blockBody: nothing of it is shown
	empty     bool // blockBody: the block has no blocks inside by its schema

	before, after cty.Value
	inner, other  *node
	kids          []kid
	groups        []group
}

type kid struct {
	name string
	node *node
}

// A group is the blocks of one type.
type group struct {
	name   string
	forces bool
	kids   []kid // name is the label of a block in a map
}

// warning is said above an attribute that becomes or ceases to be sensitive.
type warning uint8

const (
	noWarning warning = iota
	becomesSecret
	becomesSecretSame
	becomesPlain
	becomesPlainSame
	blockBecomesSecret
	blockBecomesPlain
)

// A pair is the two sides of a part, and what is said of it by path.
type pair struct {
	before, after   cty.Value      // cty.NilVal where absent
	beforeS, afterS *value.PathSet // sensitive parts
	replace         *value.PathSet
}

// present turns a null argument into an absent one.
func present(v cty.Value) cty.Value {
	if v == cty.NilVal || v.IsKnown() && v.IsNull() {
		return cty.NilVal
	}
	return v
}

func (p pair) op() op {
	switch {
	case p.before == cty.NilVal && p.after == cty.NilVal:
		return same
	case p.before == cty.NilVal:
		return create
	case p.after == cty.NilVal:
		return remove
	case equal(p.before, p.after):
		return same
	}
	return update
}

// start is the operation of a collection before its kids are known.
func (p pair) start() op {
	switch {
	case p.before == cty.NilVal && p.after != cty.NilVal:
		return create
	case p.after == cty.NilVal && p.before != cty.NilVal:
		return remove
	}
	return same
}

func (n *node) add(name string, k *node) {
	n.kids = append(n.kids, kid{name, k})
	n.fold(k.op)
}

// fold makes the operation of a collection an update if a kid's is another.
func (n *node) fold(k op) {
	if k != same && k != n.op {
		n.op = update
	}
}

// attr gives the pair of an argument of an object.
func (p pair) attr(name string) pair {
	return pair{
		before: present(getAttr(p.before, name)), after: present(getAttr(p.after, name)),
		beforeS: p.beforeS.Attr(name), afterS: p.afterS.Attr(name), replace: p.replace.Attr(name),
	}
}

// getAttr is cty.NilVal too where the value has no such attribute, as when a
// plan was made with another version of the provider than the schema is of.
func getAttr(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	if !v.IsKnown() {
		return cty.UnknownVal(v.Type().AttributeType(name))
	}
	return v.GetAttr(name)
}

// A differ compares; reveal shows what is sensitive. It is used by one
// goroutine.
type differ struct {
	reveal bool
	names  map[*schema.Block][2][]string // sorted names of arguments and of blocks
}

// namesOf gives the sorted names of a block's arguments and of its blocks.
func (d *differ) namesOf(b *schema.Block) (attrs, blocks []string) {
	n, ok := d.names[b]
	if !ok {
		if d.names == nil {
			d.names = make(map[*schema.Block][2][]string)
		}
		n = [2][]string{sortedNames(b.Attributes), sortedNames(b.Blocks)}
		d.names[b] = n
	}
	return n[0], n[1]
}

// block compares two values of a block's type.
func (d *differ) block(p pair, b *schema.Block) *node {
	n := &node{kind: blockBody, op: p.start(), forces: p.replace.Marked(), empty: len(b.Blocks) == 0, showNull: true}
	attrs, blocks := d.namesOf(b)
	n.kids = make([]kid, 0, len(attrs))
	for _, name := range attrs {
		a := b.Attributes[name]
		if k := d.attribute(p.attr(name), a); k != nil {
			n.add(name, k)
		}
	}
	n.settleWriteOnly()
	for _, name := range blocks {
		g := d.blocks(pair{
			before: getAttr(p.before, name), after: getAttr(p.after, name),
			beforeS: p.beforeS.Attr(name), afterS: p.afterS.Attr(name), replace: p.replace.Attr(name),
		}, b.Blocks[name])
		g.name = name
		for _, k := range g.kids {
			n.fold(k.node.op)
		}
		n.groups = append(n.groups, g)
	}
	return n
}

// settleWriteOnly gives write-only arguments the operation of the arguments
// beside them: what they were and will be, nobody knows.
func (n *node) settleWriteOnly() {
	for _, k := range n.kids {
		if k.node.kind != writeOnly {
			continue
		}
		k.node.op = n.op
		if n.op == same && k.node.forces {
			k.node.op = update
		}
	}
}

// attribute compares an argument; nil means that there is nothing to show.
func (d *differ) attribute(p pair, a *schema.Attribute) *node {
	if a.WriteOnly {
		return &node{kind: writeOnly, forces: p.replace.Marked()} // see settleWriteOnly
	}
	if b, is := stringOf(p.before); is && b == "" && (p.after == cty.NilVal || !p.after.IsKnown()) {
		p.before = cty.NilVal // to old providers an empty string is no string
	}
	if p.before == cty.NilVal && p.after == cty.NilVal {
		return nil
	}
	switch {
	case a.Nested == nil:
		return d.value(p, a.Type, a.Sensitive)
	case a.Sensitive || a.Nested.Nesting == schema.Set && a.Nested.HasSensitive():
		if n := d.hidden(p, true); n != nil {
			return n
		}
	default:
		if n := d.hidden(p, false); n != nil {
			return n
		}
	}
	return d.nested(p, a.Nested)
}

// hidden gives the node of a part that is not shown since either side is
// sensitive, or nil.
func (d *differ) hidden(p pair, declared bool) *node {
	b, a := declared || p.beforeS.Marked(), declared || p.afterS.Marked()
	if d.reveal || !b && !a {
		return nil
	}
	n := &node{kind: secret, op: p.op(), forces: p.replace.Marked()}
	if p.before == cty.NilVal || p.after == cty.NilVal || a == b {
		return n
	}
	switch {
	case b && n.op == same:
		n.warn = becomesPlainSame
	case b:
		n.warn = becomesPlain
	case n.op == same:
		n.warn = becomesSecretSame
	default:
		n.warn = becomesSecret
	}
	n.op = update
	return n
}

// pending makes the node of a part that is known after apply; f compares what
// was there before with nothing.
func pending(p pair, f func(pair) *node) *node {
	n := &node{kind: unknown, op: create, forces: p.replace.Marked()}
	if p.before != cty.NilVal {
		n.op = update
		n.inner = f(pair{before: p.before, beforeS: p.beforeS})
	}
	return n
}

func (p pair) isPending() bool { return p.after != cty.NilVal && !p.after.IsKnown() }

// typed compares values of a type without schema.
func (d *differ) typed(p pair, ty cty.Type) *node { return d.value(p, ty, false) }

// value is typed for an argument that may be declared sensitive.
func (d *differ) value(p pair, ty cty.Type, declared bool) *node {
	if n := d.hidden(p, declared); n != nil {
		return n
	}
	if p.isPending() {
		return pending(p, func(p pair) *node { return d.known(p, ty) })
	}
	return d.known(p, ty)
}

func (d *differ) known(p pair, ty cty.Type) *node {
	switch {
	case ty == cty.DynamicPseudoType:
		return d.dynamic(p)
	case ty.IsPrimitiveType():
		return d.primitive(p)
	case bothNull(p):
		return d.primitive(p)
	case ty.IsObjectType():
		n := &node{kind: object, op: p.start(), forces: p.replace.Marked()}
		attrs := ty.AttributeTypes()
		for _, name := range sortedNames(attrs) {
			k := p.attr(name)
			if k.before != cty.NilVal || k.after != cty.NilVal {
				n.add(name, d.typed(k, attrs[name]))
			}
		}
		return n
	case ty.IsMapType():
		return d.mapping(p, mapping, func(p pair) *node { return d.typed(p, ty.ElementType()) })
	case ty.IsListType():
		return d.list(p, func(p pair) *node { return d.typed(p, ty.ElementType()) })
	case ty.IsSetType():
		return d.set(p, func(p pair) *node { return d.typed(p, ty.ElementType()) })
	case ty.IsTupleType():
		return d.list(p, func(p pair) *node { return d.typed(p, cty.DynamicPseudoType) })
	}
	return d.primitive(p)
}

// bothNull reports whether a side is an explicit null of a collection, which
// is shown as a plain value.
func bothNull(p pair) bool {
	b := p.before == cty.NilVal || p.before.IsNull()
	a := p.after == cty.NilVal || p.after.IsKnown() && p.after.IsNull()
	return b && a
}

// dynamic compares values whose type is known by the values alone.
func (d *differ) dynamic(p pair) *node {
	b, a := shapeOf(p.before), shapeOf(p.after)
	shape := a
	if a == shapeNone {
		shape = b
	}
	if b != shapeNone && a != shapeNone && b != a && (b >= shapeList || a >= shapeList) {
		return &node{
			kind: converted, op: update, forces: p.replace.Marked(),
			inner: d.dynamic(pair{before: p.before, beforeS: p.beforeS}),
			other: d.dynamic(pair{after: p.after, afterS: p.afterS}),
		}
	}
	sub := func(p pair) *node { return d.typed(p, cty.DynamicPseudoType) }
	switch shape {
	case shapeList:
		return d.list(p, sub)
	case shapeObject:
		return d.mapping(p, object, sub)
	}
	return d.primitive(p)
}

// shape is the form that a value has as JSON.
type shape uint8

const (
	shapeNone shape = iota
	shapeNull
	shapePrimitive
	shapeList
	shapeObject
)

func shapeOf(v cty.Value) shape {
	if v == cty.NilVal {
		return shapeNone
	}
	ty := v.Type()
	switch {
	case v.IsNull():
		return shapeNull
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		return shapeList
	case ty.IsMapType() || ty.IsObjectType():
		return shapeObject
	}
	return shapePrimitive
}

// primitive compares what has no parts, and strings that hold JSON.
func (d *differ) primitive(p pair) *node {
	n := &node{kind: leaf, op: p.op(), before: p.before, after: p.after, forces: p.replace.Marked()}
	b, bIs := stringOf(p.before)
	a, aIs := stringOf(p.after)
	if bIs || aIs {
		if j := d.json(n, b, a, bIs, aIs); j != nil {
			return j
		}
		if bIs && strings.Contains(b, "\n") || aIs && strings.Contains(a, "\n") {
			if (bIs || p.before == cty.NilVal) && (aIs || p.after == cty.NilVal) {
				n.kind = text
				return n
			}
			n.kind = converted
			n.inner = d.primitive(pair{before: p.before})
			n.other = d.primitive(pair{after: p.after})
		}
	}
	return n
}

func stringOf(v cty.Value) (string, bool) {
	if v == cty.NilVal || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return "", false
	}
	return v.AsString(), true
}

// mapping compares maps, and objects whose parts are no arguments.
func (d *differ) mapping(p pair, k kind, f func(pair) *node) *node {
	n := &node{kind: k, op: p.start(), forces: p.replace.Marked()}
	b, a := elements(p.before), elements(p.after)
	for _, name := range unionNames(b, a) {
		sub := pair{before: nilIfMissing(b, name), after: nilIfMissing(a, name)}
		sub.beforeS, sub.afterS, sub.replace = p.beforeS.Named(name), p.afterS.Named(name), p.replace.Named(name)
		n.add(name, f(sub))
	}
	n.showNull = k == mapping && n.op != remove
	n.bare = k == mapping && len(n.kids) > 0 && objectLike(n.kids[0].node)
	return n
}

// objectLike reports whether a node is written in braces with an object's names.
func objectLike(n *node) bool {
	for n.kind == unknown && n.inner != nil {
		n = n.inner
	}
	return n.kind == object
}

// elements gives the parts of a map or object by name.
func elements(v cty.Value) map[string]cty.Value {
	if v == cty.NilVal || !v.IsKnown() || shapeOf(v) != shapeObject {
		return nil
	}
	return v.AsValueMap()
}

func nilIfMissing(m map[string]cty.Value, name string) cty.Value {
	if v, ok := m[name]; ok {
		return v
	}
	return cty.NilVal
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func unionNames[V any](a, b map[string]V) []string {
	names := make([]string, 0, max(len(a), len(b)))
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// equal compares two values as their JSON would be: whether a part is a list
// or a tuple makes no difference.
func equal(a, b cty.Value) bool {
	if !a.IsKnown() || !b.IsKnown() {
		return !a.IsKnown() && !b.IsKnown()
	}
	sa, sb := shapeOf(a), shapeOf(b)
	if sa != sb {
		return false
	}
	switch sa {
	case shapeNull:
		return true
	case shapePrimitive:
		return equalPrimitive(a, b)
	case shapeObject:
		return equalParts(elements(a), elements(b))
	}
	if a.Type().IsSetType() && b.Type().Equals(a.Type()) {
		return a.RawEquals(b)
	}
	as, bs := slice(a), slice(b)
	return slices.EqualFunc(as, bs, equal)
}

func equalPrimitive(a, b cty.Value) bool {
	ty := a.Type()
	if !ty.Equals(b.Type()) {
		return false
	}
	switch ty {
	case cty.String:
		return a.AsString() == b.AsString()
	case cty.Number:
		return a.AsBigFloat().Cmp(b.AsBigFloat()) == 0
	}
	return a.RawEquals(b)
}

func equalParts(a, b map[string]cty.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		w, ok := b[name]
		if !ok || !equal(v, w) {
			return false
		}
	}
	return true
}

// slice gives the parts of a list, set or tuple.
func slice(v cty.Value) []cty.Value {
	if v == cty.NilVal || !v.IsKnown() || shapeOf(v) != shapeList {
		return nil
	}
	return v.AsValueSlice()
}

// number writes a number as JSON would, without exponent.
func number(f *big.Float) string {
	if n, acc := f.Int64(); acc == big.Exact {
		return strconv.FormatInt(n, 10)
	}
	if f.IsInt() {
		return f.Text('f', 0)
	}
	return f.Text('f', -1)
}
