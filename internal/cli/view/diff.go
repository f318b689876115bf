// Package view formats plans, states, outputs, progress and messages, as text for people and
// as a stream of JSON objects.
//
// Main types: Human and Stream; main functions: Plan and State. The one rule: this package
// makes no decisions, and shows a sensitive value only if the user requests it.
package view

import (
	"strings"

	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// # How a change is shown
//
// A change is first compared into a tree of nodes and then written, since the text for an
// object depends on which of its parts changed. The comparison follows the schema as far as
// possible. Values of a dynamic type are compared by their JSON form, in which objects and
// maps are the same, and so are lists, sets and tuples.
//
// Null has two meanings. A null argument counts as absent and is not shown. A null element of
// a list or map, and a null part of a dynamic object, are shown as null. An absent value is
// cty.NilVal in this package.

// A differ compares values. With reveal, it shows sensitive values. It must not be used
// concurrently.
type differ struct {
	reveal bool
	names  map[*schema.Block][2][]string // sorted names of arguments and of blocks
}

// namesOf returns the sorted names of a block's arguments and of its nested blocks.
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
	n.children = make([]child, 0, len(attrs))
	for _, name := range attrs {
		of := p.attr(name)
		of.before, of.after = written(of.before), written(of.after)
		if k := d.attribute(of, b.Attributes[name]); k != nil {
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
		for _, k := range g.children {
			n.fold(k.node.op)
		}
		n.groups = append(n.groups, g)
	}
	return n
}

// settleWriteOnly sets the operation of write-only arguments to that of the node, because
// their values are unknown.
func (n *node) settleWriteOnly() {
	for _, k := range n.children {
		if k.node.kind != writeOnly {
			continue
		}
		k.node.op = n.op
		if n.op == same && k.node.forces {
			k.node.op = update
		}
	}
}

// attribute compares an argument. It returns nil if there is nothing to show.
func (d *differ) attribute(p pair, a *schema.Attribute) *node {
	if a.WriteOnly {
		return &node{kind: writeOnly, forces: p.replace.Marked()} // settleWriteOnly sets the operation
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

// hidden returns the node for a part that must not be shown, since its value before or after
// is sensitive. It returns nil if the part may be shown. declared means that the schema
// declares the part as sensitive.
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

// pending returns the node for a part that is known after apply. f compares the value before
// with an absent one.
func pending(p pair, f func(pair) *node) *node {
	n := &node{kind: unknown, op: create, forces: p.replace.Marked()}
	if p.before != cty.NilVal {
		n.op = update
		n.inner = f(pair{before: p.before, beforeS: p.beforeS})
	}
	return n
}

func (p pair) isPending() bool { return p.after != cty.NilVal && !p.after.IsKnown() }

// typed compares values of a type without a schema.
func (d *differ) typed(p pair, ty cty.Type) *node { return d.value(p, ty, false) }

// value is typed for an argument that the schema may declare as sensitive.
func (d *differ) value(p pair, ty cty.Type, declared bool) *node {
	if n := d.hidden(p, declared); n != nil {
		return n
	}
	if p.isPending() {
		if p.before != cty.NilVal && p.before.IsNull() { // counts as absent, as in OpenTofu
			p.before = cty.NilVal
		}
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

// bothNull reports whether each side is null or absent. A collection is then shown as a plain
// value.
func bothNull(p pair) bool {
	b := p.before == cty.NilVal || p.before.IsNull()
	a := p.after == cty.NilVal || p.after.IsKnown() && p.after.IsNull()
	return b && a
}

// dynamic compares values by their own types. It does not mark parts that force replacement,
// because OpenTofu does not, and programs read both outputs.
func (d *differ) dynamic(p pair) *node {
	p.replace = nil
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

// primitive compares values without parts, and strings that contain JSON.
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

// mapping compares maps, and objects without a schema.
func (d *differ) mapping(p pair, k kind, f func(pair) *node) *node {
	n := &node{kind: k, op: p.start(), forces: p.replace.Marked()}
	b, a := elements(p.before), elements(p.after)
	for _, name := range unionNames(b, a) {
		sub := pair{before: nilIfMissing(b, name), after: nilIfMissing(a, name)}
		sub.beforeS, sub.afterS, sub.replace = p.beforeS.Named(name), p.afterS.Named(name), p.replace.Named(name)
		n.add(name, f(sub))
	}
	n.showNull = k == mapping && n.op != remove
	n.bare = k == mapping && len(n.children) > 0 && objectLike(n.children[0].node)
	return n
}

// objectLike reports whether a node is written in braces with the names of an object's
// attributes.
func objectLike(n *node) bool {
	for n.kind == unknown && n.inner != nil {
		n = n.inner
	}
	return n.kind == object
}
