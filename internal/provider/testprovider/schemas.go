package testprovider

import (
	"sync"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

type attrs = map[string]*schema.Attribute

func required(ty cty.Type) *schema.Attribute { return &schema.Attribute{Type: ty, Required: true} }
func optional(ty cty.Type) *schema.Attribute { return &schema.Attribute{Type: ty, Optional: true} }
func computed(ty cty.Type) *schema.Attribute { return &schema.Attribute{Type: ty, Computed: true} }
func either(ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Type: ty, Optional: true, Computed: true}
}

func sensitive(a *schema.Attribute) *schema.Attribute {
	a.Sensitive = true
	return a
}

// A catalog contains the schemas of a server. It is immutable.
type catalog struct {
	provider, object, record, old, group, data, secret *schema.Block
	list, action, store                                *schema.Block
	identity                                           *schema.Object
	codecs                                             map[typed]*value.Codec
}

// typed is one of the schemas.
type typed interface{ ImpliedType() cty.Type }

var catalogs = map[int]func() *catalog{5: sync.OnceValue(func() *catalog { return newCatalog(5) }), 6: sync.OnceValue(func() *catalog { return newCatalog(6) })}

func newCatalog(protocol int) *catalog {
	c := &catalog{
		provider: &schema.Block{Attributes: attrs{
			"prefix": optional(cty.String), "record_path": optional(cty.String), "dump_path": optional(cty.String), "world": optional(cty.String),
			"delay_ms": optional(cty.Number), "answered_delay_ms": optional(cty.Number),
			"token": sensitive(optional(cty.String)), "misbehave": optional(cty.String),
		}},
		object: objectBlock(protocol),
		record: &schema.Block{Attributes: attrs{
			"id": computed(cty.String), "name": required(cty.String), "value": optional(cty.String),
			"triggers": optional(cty.Map(cty.String)), "sleep_ms": optional(cty.Number), "misbehave": optional(cty.String),
		}},
		old: oldBlock(protocol), group: groupBlock(),
		data: &schema.Block{Attributes: attrs{
			"name": required(cty.String), "any": optional(cty.DynamicPseudoType), "misbehave": optional(cty.String),
			"id": computed(cty.String), "result": computed(cty.String), "secret": sensitive(computed(cty.String)), "sleep_ms": optional(cty.Number),
		}},
		secret: &schema.Block{Attributes: attrs{
			"name": required(cty.String), "renew_ms": optional(cty.Number), "misbehave": optional(cty.String), "value": computed(cty.String),
		}},
		list:   &schema.Block{Attributes: attrs{"name": optional(cty.String), "number": optional(cty.Number), "misbehave": optional(cty.String)}},
		action: &schema.Block{Attributes: attrs{"name": required(cty.String)}},
		store:  &schema.Block{Attributes: attrs{"folder": required(cty.String)}},
		identity: &schema.Object{Nesting: schema.Single, Attributes: attrs{
			"id": required(cty.String), "region": optional(cty.String),
		}},
	}
	c.codecs = make(map[typed]*value.Codec)
	for _, of := range []typed{c.provider, c.object, c.record, c.old, c.group, c.data, c.secret, c.list, c.action, c.store, c.identity} {
		c.codecs[of] = value.NewCodec(of.ImpliedType())
	}
	return c
}

// deprecated marks an attribute as deprecated.
func deprecated(a *schema.Attribute) *schema.Attribute {
	a.Deprecated = "use something newer"
	return a
}

// groupBlock has attributes that may be written as blocks, like those of older provider
// libraries: lists and sets of objects without a nested schema.
func groupBlock() *schema.Block {
	entry := map[string]cty.Type{"key": cty.String, "value": cty.String}
	deep := cty.Object(map[string]cty.Type{"key": cty.String, "value": cty.String, "parts": cty.List(cty.Object(entry))})
	return &schema.Block{
		Attributes: attrs{
			"id": computed(cty.String), "name": optional(cty.String), "misbehave": optional(cty.String),
			"rules": either(cty.Set(deep)), "entries": either(cty.List(deep)), "plain": optional(cty.List(deep)),
		},
		Blocks: map[string]*schema.NestedBlock{
			"part": {Nesting: schema.List, Block: &schema.Block{Attributes: attrs{"key": optional(cty.String), "entries": optional(cty.List(deep))}}},
		},
	}
}

// oldBlock is deprecated, with all its parts.
func oldBlock(protocol int) *schema.Block {
	parts := func() attrs { return attrs{"key": optional(cty.String), "old_key": deprecated(optional(cty.String))} }
	b := &schema.Block{
		Deprecated: "use test_record",
		Attributes: attrs{
			"id": computed(cty.String), "name": optional(cty.String), "old_name": deprecated(optional(cty.String)), "misbehave": optional(cty.String),
		},
		Blocks: map[string]*schema.NestedBlock{
			"gone": {Nesting: schema.List, Block: &schema.Block{Deprecated: "use kept", Attributes: parts()}},
			"kept": {Nesting: schema.List, Block: &schema.Block{Attributes: parts(), Blocks: map[string]*schema.NestedBlock{
				"deep": {Nesting: schema.Set, Block: &schema.Block{Deprecated: "go up", Attributes: parts()}},
			}}},
		},
	}
	if protocol == 6 {
		o := &schema.Object{Nesting: schema.List, Attributes: parts()}
		b.Attributes["meta"] = &schema.Attribute{Type: o.ImpliedType(), Nested: o, Optional: true}
	}
	return b
}

func objectBlock(protocol int) *schema.Block {
	wo := func() *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, WriteOnly: true}
	}
	old := optional(cty.String)
	old.Deprecated = "use name"
	b := &schema.Block{
		Attributes: attrs{
			"id": computed(cty.String), "name": optional(cty.String), "number": optional(cty.Number), "bool": optional(cty.Bool),
			"map": optional(cty.Map(cty.String)), "list": optional(cty.List(cty.String)), "set": optional(cty.Set(cty.String)),
			"any": optional(cty.DynamicPseudoType), "secret": sensitive(optional(cty.String)), "force_new": optional(cty.String),
			"wo": wo(), "wo_version": optional(cty.Number), "wo_length": computed(cty.Number), "serial": either(cty.Number),
			"out": computed(cty.String), "old": old, "sleep_ms": optional(cty.Number), "misbehave": optional(cty.String),
		},
		Blocks: map[string]*schema.NestedBlock{
			"item": {Nesting: schema.List, Block: &schema.Block{Attributes: attrs{
				"key": required(cty.String), "value": optional(cty.String), "id": computed(cty.String), "wo": wo(),
			}}},
			"tag": {Nesting: schema.Set, Block: &schema.Block{Attributes: attrs{
				"key": required(cty.String), "value": optional(cty.String), "id": computed(cty.String),
			}}},
			"setting": {Nesting: schema.Single, Block: &schema.Block{Attributes: attrs{
				"enabled": optional(cty.Bool), "password": sensitive(optional(cty.String)),
			}}},
		},
	}
	if protocol == 5 {
		return b
	}
	o := &schema.Object{Nesting: schema.List, Attributes: attrs{
		"key": required(cty.String), "size": either(cty.Number), "secret": sensitive(optional(cty.String)),
	}}
	b.Attributes["meta"] = &schema.Attribute{Type: o.ImpliedType(), Nested: o, Optional: true}
	return b
}
