package lang

import (
	"maps"

	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/zclconf/go-cty/cty"
)

// single reports whether there is at most one block of the type.
func single(nb *schema.NestedBlock) bool {
	return nb.Nesting == schema.Single || nb.Nesting == schema.Group
}

// unknown is the block that a dynamic block may turn out to give: its arguments
// are unknown, and those that it does not set are null. As in OpenTofu, a type
// with at most one block is taken to have it until more is known.
func (b *Body) unknown() cty.Value {
	vals := maps.Clone(b.schema.absent)
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
