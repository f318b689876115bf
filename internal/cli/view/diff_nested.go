package view

import (
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// nested compares an argument with a nested schema.
func (d *differ) nested(p pair, o *schema.Object) *node {
	one := func(p pair) *node {
		if n := d.hidden(p, false); n != nil {
			return n
		}
		if p.isPending() {
			return d.nestedUnknown(p, o)
		}
		return d.nestedObject(p, o)
	}
	if o.Nesting == schema.Single || o.Nesting == schema.Group {
		return one(p)
	}
	f := func(p pair) *node {
		switch o.Nesting {
		case schema.Map:
			n := d.mapping(p, mapping, one)
			n.bare, n.showNull = true, false
			return n
		case schema.Set:
			n := d.set(p, one)
			n.bare = true
			return n
		default:
			n := d.byIndex(p, one)
			n.bare = true
			return n
		}
	}
	if p.isPending() {
		return pending(p, f)
	}
	return f(p)
}

func (d *differ) nestedObject(p pair, o *schema.Object) *node {
	n := &node{kind: object, op: p.start(), forces: p.replace.Marked(), showNull: true}
	for _, name := range sortedNames(o.Attributes) {
		if k := d.attribute(p.attr(name), o.Attributes[name]); k != nil {
			n.add(name, k)
		}
	}
	n.settleWriteOnly()
	return n
}

// nestedUnknown returns the node for an object that is known after apply. It shows every
// attribute as unknown.
func (d *differ) nestedUnknown(p pair, o *schema.Object) *node {
	n := &node{kind: unknown, op: create, forces: p.replace.Marked()}
	if p.before == cty.NilVal {
		return n
	}
	n.op = update
	parts := make(map[string]cty.Value, len(o.Attributes))
	for name, a := range o.Attributes {
		parts[name] = cty.UnknownVal(a.Type)
	}
	p.after = cty.ObjectVal(parts)
	n.inner = d.nestedObject(p, o)
	return n
}

// byIndex compares lists element by element, as OpenTofu compares blocks.
func (d *differ) byIndex(p pair, f func(pair) *node) *node {
	n := &node{kind: sequence, op: p.start(), forces: p.replace.Marked()}
	b, a := slice(p.before), slice(p.after)
	for i := range max(len(b), len(a)) {
		sub := pair{beforeS: p.beforeS.At(i), afterS: p.afterS.At(i), replace: p.replace.At(i)}
		if i < len(b) {
			sub.before = b[i]
		}
		if i < len(a) {
			sub.after = a[i]
		}
		n.add("", f(sub))
	}
	return n
}

// blocks compares the blocks of one type.
func (d *differ) blocks(p pair, nb *schema.NestedBlock) group {
	g := group{forces: p.replace.Marked(), single: nb.Nesting == schema.Single || nb.Nesting == schema.Group}
	isSet := nb.Nesting == schema.Set
	declared := isSet && nb.Block.HasSensitive()
	hideB := !d.reveal && (declared || p.beforeS.Marked() || isSet && p.beforeS.Any())
	hideA := !d.reveal && (declared || p.afterS.Marked() || isSet && p.afterS.Any())
	hide := func(n *node, p pair) *node {
		before := p.before != cty.NilVal && (hideB || !d.reveal && p.beforeS.Marked())
		after := p.after != cty.NilVal && (hideA || !d.reveal && p.afterS.Marked())
		if n.secretSet = before || after; n.secretSet {
			n.hideBlock(before, after)
		}
		return n
	}
	one := func(p pair) *node {
		n := d.block(p, nb.Block)
		n.forces = n.forces || g.forces
		return hide(n, p)
	}
	add := func(name string, n *node) { g.children = append(g.children, child{name, n}) }
	unknownAfter := p.isPending()
	if unknownAfter { // the blocks before are shown as removed
		p.after, p.afterS = cty.NilVal, nil
	}
	switch nb.Nesting {
	case schema.Single, schema.Group:
		p.before, p.after = present(p.before), present(p.after)
		if p.before != cty.NilVal || p.after != cty.NilVal {
			add("", one(p))
		}
	case schema.Map:
		for _, k := range d.mapping(p, mapping, one).children {
			add(k.name, k.node)
		}
	case schema.Set:
		for _, k := range d.set(p, one).children {
			add("", k.node)
		}
	default:
		for _, k := range d.byIndex(p, one).children {
			add("", k.node)
		}
	}
	if unknownAfter {
		add("", &node{kind: unknown, op: create, forces: g.forces})
	}
	return g
}

// hideBlock sets the warning for a block that becomes or ceases to be sensitive.
func (n *node) hideBlock(before, after bool) {
	if before == after || n.op == create || n.op == remove {
		return
	}
	n.op, n.warn = update, blockBecomesSecret
	if before {
		n.warn = blockBecomesPlain
	}
}
