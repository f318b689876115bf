package lang

import (
	"maps"

	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// single reports whether there is at most one block of the type.
func single(nb *schema.NestedBlock) bool {
	return nb.Nesting == schema.Single || nb.Nesting == schema.Group
}

// markEach gives each block the marks of the collection that it was made for,
// and returns those that all blocks together must have: the elements of a set
// cannot have their own. A single block has what its arguments take from the
// collection, and for an argument that is written as blocks the marks go to what
// the content sets, as in OpenTofu.
func (bb *bodyBlocks) markEach(it *bodyItem, made []element, marks cty.ValueMarks) (all cty.ValueMarks) {
	switch {
	case single(bb.nb):
		return nil
	case bb.nb.Nesting == schema.Set:
		return marks
	}
	for i := range made {
		if bb.asAttr != nil {
			made[i].value = it.body.markSet(made[i].value, marks)
		} else {
			made[i].value = made[i].value.WithMarks(marks)
		}
	}
	return nil
}

// markSet marks the parts of the body's value that the body sets.
func (b *Body) markSet(v cty.Value, marks cty.ValueMarks) cty.Value {
	vals := v.AsValueMap()
	for i := range b.attrs {
		vals[b.attrs[i].name] = vals[b.attrs[i].name].WithMarks(marks)
	}
	for i := range b.blocks {
		vals[b.blocks[i].name] = vals[b.blocks[i].name].WithMarks(marks)
	}
	return cty.ObjectVal(vals)
}

// unknown is the block that a dynamic block may turn out to give: its arguments
// are unknown, and those that it does not set are null. As in OpenTofu, a type
// with at most one block is taken to have it until more is known.
func (b *Body) unknown() cty.Value {
	vals := maps.Clone(b.schema.Absent)
	for i := range b.attrs {
		vals[b.attrs[i].name] = cty.UnknownVal(b.attrs[i].ty)
	}
	for i := range b.blocks {
		vals[b.blocks[i].name] = b.blocks[i].unknown()
	}
	return cty.ObjectVal(vals)
}

func (bb *bodyBlocks) unknown() cty.Value {
	if single(bb.nb) && len(bb.items) == 1 {
		return bb.items[0].body.unknown()
	}
	elems := make([]element, len(bb.items))
	unknown := false
	for i := range bb.items {
		elems[i] = element{bb.items[i].label, bb.items[i].body.unknown()}
		unknown = unknown || bb.items[i].dynamic != nil
	}
	v, _ := bb.collect(elems, unknown) // what is wrong with the number is said where it is known
	return v
}
