package lang

import (
	"maps"

	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// single reports whether the type has at most one block.
func single(nb *schema.NestedBlock) bool {
	return nb.Nesting == schema.Single || nb.Nesting == schema.Group
}

// markEach adds to each block of a dynamic block the marks of its collection. It returns the
// marks for the whole collection of blocks, because elements of a set cannot have marks. If the
// type has at most one block, only the arguments that use the collection are marked. For an
// attribute that is written as blocks, the arguments that the content sets are marked, as in
// OpenTofu.
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

// markSet marks the parts of a value that the body sets.
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

// unknown returns a block that a dynamic block with an unknown collection may produce. Its
// arguments are unknown; those that it does not set are null. As in OpenTofu, a type with at
// most one block is assumed to have one.
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
	v, _ := bb.collect(elems, unknown) // errors about the number of blocks are reported when it is known
	return v
}
