package schema

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// A Reading is what reading and evaluating bodies of a block needs of its schema. Every
// body of the block shares it: a resource type may have hundreds of attributes. It must
// not be changed.
type Reading struct {
	HCL      *hcl.BodySchema
	Required []string                // attributes, by name
	Types    map[string]cty.Type     // what the expression of an attribute is converted to
	AsBlocks map[string]*NestedBlock // attributes that may be written as blocks
	Absent   map[string]cty.Value    // what each attribute and nested block type is where the body has none
}

// Reading is made when it is first asked for.
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

// inputType is the type that configuration of an attribute is converted to:
// nested attributes that are not required may be left out.
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

// attrAsBlocks is the block form of an attribute whose type is a list or set of
// objects: older provider libraries let it be written either way.
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
