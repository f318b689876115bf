// Package schema is what a provider says of its configuration, resources and
// functions, and what follows from it alone: the implied type of a block,
// coercion to it, and checks of a value against it.
//
// Main types: Provider, Resource, Block and Attribute. The one rule: a schema
// never changes once a provider has handed it out, so that it can be shared by
// everything that runs at the same time.
package schema

import (
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/zclconf/go-cty/cty"
)

// A Provider is everything that a provider declares. Resource schemas are
// decoded when they are first asked for.
type Provider struct {
	Config       *Block // never nil
	Meta         *Block // provider_meta; nil if there is none
	Functions    map[string]*Function
	Capabilities Capabilities

	Types  map[addr.Mode][]string            // names of the resource types, sorted
	Decode func(addr.Mode, string) *Resource // builds one schema; nil result for an unknown type

	// Why tells why Resource returned nil for a type that Types has: the provider
	// sent a schema that cannot be used. Nil if that cannot be.
	Why func(addr.Mode, string) error

	mu    sync.Mutex
	cache map[typeKey]*Resource
}

type typeKey struct {
	mode addr.Mode
	name string
}

// Capabilities are the optional abilities that a provider announces.
type Capabilities struct {
	PlanDestroy       bool // it wants to be asked before a destroy is planned
	SchemaOptional    bool // it can serve other calls without the schema call first
	MoveResourceState bool // it can take over the state of other types
}

// Resource returns the schema of a resource type, or nil if the provider does
// not have it. It may be called concurrently and returns the same schema each time.
func (p *Provider) Resource(mode addr.Mode, name string) *Resource {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := typeKey{mode, name}
	if r, ok := p.cache[k]; ok {
		return r
	}
	if p.cache == nil {
		p.cache = make(map[typeKey]*Resource)
	}
	r := p.Decode(mode, name)
	p.cache[k] = r
	return r
}

// Invalid tells why Resource returned nil for a type that Types has; nil if it
// did not, or if the provider does not have the type.
func (p *Provider) Invalid(mode addr.Mode, name string) error {
	if p.Why == nil {
		return nil
	}
	return p.Why(mode, name)
}

// A Resource is the schema of a managed resource, data source or ephemeral resource type.
type Resource struct {
	Version         int64
	Block           *Block
	Identity        *Object // nil if the type has no identity
	IdentityVersion int64
}

// NoMessage stands for the message where a provider calls something deprecated
// and says no more about it.
const NoMessage = "deprecated"

// A Block is a group of arguments and nested blocks.
type Block struct {
	Attributes  map[string]*Attribute
	Blocks      map[string]*NestedBlock
	Description string
	Markdown    bool   // whether Description is Markdown
	Deprecated  string // "" or the message, which may be NoMessage

	once    sync.Once
	implied cty.Type

	factsOnce sync.Once
	known     facts

	readingOnce sync.Once
	reading     *Reading
}

// An Attribute is one argument or computed result.
type Attribute struct {
	Type        cty.Type // for an attribute with Nested: its implied type
	Nested      *Object  // nil unless the attribute has nested attributes
	Required    bool
	Optional    bool
	Computed    bool
	Sensitive   bool
	WriteOnly   bool
	Deprecated  string
	Description string
	Markdown    bool
}

// Nesting says how often a nested block or object may occur and what it becomes.
type Nesting uint8

// The nesting modes of the plugin protocol.
const (
	NestingInvalid Nesting = iota
	Single                 // at most one; an object or null
	Group                  // at most one; an object, never null
	List
	Set
	Map // one label, the key
)

// of is the type that objects of a type become.
func (n Nesting) of(obj cty.Type) cty.Type {
	switch n {
	case List:
		return cty.List(obj)
	case Set:
		return cty.Set(obj)
	case Map:
		return cty.Map(obj)
	default:
		return obj
	}
}

// A NestedBlock is a type of block inside a block.
type NestedBlock struct {
	*Block
	Nesting  Nesting
	MinItems int
	MaxItems int // 0 means no limit
}

// An Object is an attribute's nested attributes.
type Object struct {
	Attributes map[string]*Attribute
	Nesting    Nesting // Single, List, Set or Map
}

// A Function is the signature of a provider-defined function.
type Function struct {
	Params      []Parameter
	Variadic    *Parameter // nil if there is none
	Return      cty.Type
	Summary     string
	Description string
	Deprecated  string
}

// A Parameter is one parameter of a Function.
type Parameter struct {
	Name         string
	Type         cty.Type
	AllowNull    bool
	AllowUnknown bool
	Description  string
}

// ImpliedType is the object type that values of the block have. It is computed once.
func (b *Block) ImpliedType() cty.Type {
	b.once.Do(func() {
		attrs := make(map[string]cty.Type, len(b.Attributes)+len(b.Blocks))
		for name, a := range b.Attributes {
			attrs[name] = a.Type
		}
		for name, nb := range b.Blocks {
			ty := nb.Block.ImpliedType()
			switch nb.Nesting {
			case List:
				if ty.HasDynamicTypes() {
					ty = cty.DynamicPseudoType
				} else {
					ty = cty.List(ty)
				}
			case Set:
				ty = cty.Set(ty)
			case Map:
				if ty.HasDynamicTypes() {
					ty = cty.DynamicPseudoType
				} else {
					ty = cty.Map(ty)
				}
			}
			attrs[name] = ty
		}
		b.implied = cty.Object(attrs)
	})
	return b.implied
}

// ImpliedType is the type of the whole attribute that the object describes.
func (o *Object) ImpliedType() cty.Type {
	attrs := make(map[string]cty.Type, len(o.Attributes))
	for name, a := range o.Attributes {
		attrs[name] = a.Type
	}
	obj := cty.Object(attrs)
	return o.Nesting.of(obj)
}

// Empty is the value of a block in which nothing is set: null attributes, empty
// collections of nested blocks, null for Single and an empty value for Group.
func (b *Block) Empty() cty.Value {
	vals := make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))
	for name, a := range b.Attributes {
		vals[name] = cty.NullVal(a.Type)
	}
	for name, nb := range b.Blocks {
		vals[name] = nb.EmptyValue()
	}
	return cty.ObjectVal(vals)
}

// EmptyValue is the value of a nested block type of which there are no blocks.
func (nb *NestedBlock) EmptyValue() cty.Value {
	ty := nb.Block.ImpliedType()
	switch nb.Nesting {
	case Group:
		return nb.Block.Empty()
	case List:
		if ty.HasDynamicTypes() {
			return cty.EmptyTupleVal
		}
		return cty.ListValEmpty(ty)
	case Set:
		return cty.SetValEmpty(ty)
	case Map:
		if ty.HasDynamicTypes() {
			return cty.EmptyObjectVal
		}
		return cty.MapValEmpty(ty)
	default:
		return cty.NullVal(ty)
	}
}
