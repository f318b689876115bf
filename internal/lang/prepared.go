package lang

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// prepared is what reading and evaluating bodies needs of a schema. Every body
// with that schema shares it: a resource type may have hundreds of attributes.
// It is immutable.
type prepared struct {
	hcl      *hcl.BodySchema
	required []string                       // attributes, by name
	types    map[string]cty.Type            // what the expression of an attribute is converted to
	asBlocks map[string]*schema.NestedBlock // attributes that may be written as blocks
	absent   map[string]cty.Value           // what each attribute and nested block type is where the body has none
}

func prepare(b *schema.Block) *prepared {
	return b.Derived(func(b *schema.Block) any {
		p := &prepared{types: make(map[string]cty.Type, len(b.Attributes)), absent: make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))}
		p.hcl, p.asBlocks = hclSchema(b)
		for name, a := range b.Attributes {
			p.types[name] = inputType(a)
			p.absent[name] = cty.NullVal(a.Type)
			if a.Required {
				p.required = append(p.required, name)
			}
		}
		slices.Sort(p.required)
		for name, nb := range b.Blocks {
			p.absent[name] = nb.EmptyValue()
		}
		return p
	}).(*prepared)
}

// inputType is the type that configuration of an attribute is converted to:
// nested attributes that are not required may be left out.
func inputType(a *schema.Attribute) cty.Type {
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
	switch a.Nested.Nesting {
	case schema.List:
		return cty.List(obj)
	case schema.Set:
		return cty.Set(obj)
	case schema.Map:
		return cty.Map(obj)
	default:
		return obj
	}
}

func hclSchema(b *schema.Block) (*hcl.BodySchema, map[string]*schema.NestedBlock) {
	hs := &hcl.BodySchema{}
	asBlocks := map[string]*schema.NestedBlock{}
	for name, a := range b.Attributes {
		hs.Attributes = append(hs.Attributes, hcl.AttributeSchema{Name: name})
		if nb := attrAsBlocks(a); nb != nil {
			asBlocks[name] = nb
			hs.Blocks = append(hs.Blocks, hcl.BlockHeaderSchema{Type: name})
		}
	}
	for name, nb := range b.Blocks {
		h := hcl.BlockHeaderSchema{Type: name}
		if nb.Nesting == schema.Map {
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
func attrAsBlocks(a *schema.Attribute) *schema.NestedBlock {
	if a.Nested != nil || !(a.Type.IsListType() || a.Type.IsSetType()) || !a.Type.ElementType().IsObjectType() {
		return nil
	}
	inner := &schema.Block{Attributes: map[string]*schema.Attribute{}}
	for name, ty := range a.Type.ElementType().AttributeTypes() {
		inner.Attributes[name] = &schema.Attribute{Type: ty, Optional: true}
	}
	nb := &schema.NestedBlock{Block: inner, Nesting: schema.List}
	if a.Type.IsSetType() {
		nb.Nesting = schema.Set
	}
	return nb
}
