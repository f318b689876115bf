package schema

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// A Reading contains the parts of a block's schema that decoding and evaluating its bodies require.
// All bodies of the block share one Reading, because a resource type may have hundreds of
// attributes. It must not be modified.
type Reading struct {
	HCL      *hcl.BodySchema
	Required []string                // names of required attributes, sorted
	Types    map[string]cty.Type     // type to which the expression of an attribute is converted
	AsBlocks map[string]*NestedBlock // attributes that may be written as blocks
	Absent   map[string]cty.Value    // value of each attribute and nested block type that is missing in the body
}

// Reading returns the block's Reading, which is created once.
func (b *Block) Reading() *Reading {
	b.readingOnce.Do(func() { b.reading = readingOf(b) })
	return b.reading
}

func readingOf(b *Block) *Reading {
	r := &Reading{Types: make(map[string]cty.Type, len(b.Attributes)), Absent: make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))}
	r.HCL, r.AsBlocks = hclSchema(b)
	for name, a := range b.Attributes {
		r.Types[name] = inputType(a)
		r.Absent[name] = cty.NullVal(a.Type)
		if a.Required {
			r.Required = append(r.Required, name)
		}
	}
	slices.Sort(r.Required)
	for name, nb := range b.Blocks {
		r.Absent[name] = nb.EmptyValue()
	}
	return r
}

// inputType returns the type to which the configuration of an attribute is converted: nested
// attributes that are not required are optional.
func inputType(a *Attribute) cty.Type {
	if a.Nested == nil {
		return a.Type
	}
	attrs := make(map[string]cty.Type, len(a.Nested.Attributes))
	var optional []string
	for name, na := range a.Nested.Attributes {
		attrs[name] = inputType(na)
		if !na.Required {
			optional = append(optional, name)
		}
	}
	obj := cty.ObjectWithOptionalAttrs(attrs, optional)
	return a.Nested.Nesting.of(obj)
}

func hclSchema(b *Block) (*hcl.BodySchema, map[string]*NestedBlock) {
	hs := &hcl.BodySchema{}
	asBlocks := map[string]*NestedBlock{}
	for name, a := range b.Attributes {
		hs.Attributes = append(hs.Attributes, hcl.AttributeSchema{Name: name})
		if nb := attrAsBlocks(a); nb != nil {
			asBlocks[name] = nb
			hs.Blocks = append(hs.Blocks, hcl.BlockHeaderSchema{Type: name})
		}
	}
	for name, nb := range b.Blocks {
		h := hcl.BlockHeaderSchema{Type: name}
		if nb.Nesting == Map {
			h.LabelNames = []string{"key"}
		}
		hs.Blocks = append(hs.Blocks, h)
	}
	if len(b.Blocks) > 0 || len(asBlocks) > 0 {
		hs.Blocks = append(hs.Blocks, hcl.BlockHeaderSchema{Type: "dynamic", LabelNames: []string{"type"}})
	}
	return hs, asBlocks
}

// attrAsBlocks returns the block form of an attribute whose type is a list or set of objects.
// Older provider libraries allow both forms.
func attrAsBlocks(a *Attribute) *NestedBlock {
	if a.Nested != nil || !(a.Type.IsListType() || a.Type.IsSetType()) || !a.Type.ElementType().IsObjectType() {
		return nil
	}
	inner := &Block{Attributes: map[string]*Attribute{}}
	for name, ty := range a.Type.ElementType().AttributeTypes() {
		inner.Attributes[name] = &Attribute{Type: ty, Optional: true}
	}
	nb := &NestedBlock{Block: inner, Nesting: List}
	if a.Type.IsSetType() {
		nb.Nesting = Set
	}
	return nb
}
