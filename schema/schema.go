// Package schema defines the schemas of providers: of their configuration, resources and
// functions. It also contains the operations that only depend on a schema: the implied type of a
// block, conversion to that type, and checks of a value.
//
// Main types: Provider, Resource, Block and Attribute. The one rule: a schema is immutable
// after a provider has returned it, so that it can be shared by concurrent users.
package schema

import (
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/zclconf/go-cty/cty"
)

// A Provider contains everything that a provider declares. Resource schemas are decoded on
// first use.
type Provider struct {
	Config       *Block // never nil
	Meta         *Block // provider_meta; nil if there is none
	Functions    map[string]*Function
	Capabilities Capabilities

	Types  map[addr.Mode][]string            // names of the resource types, sorted
	Decode func(addr.Mode, string) *Resource // decodes one schema; returns nil for an unknown type

	// Why returns the reason for which Resource returned nil for a type in Types: the provider
	// sent an invalid schema. It is nil if that cannot happen.
	Why func(addr.Mode, string) error

	// Others returns the configuration schemas of types that are not resources, by their names,
	// for documents about the provider. nil means that there are none.
	Others func(OtherKind) (map[string]*Block, error)

	// Export returns the schema of the provider's configuration and those of some types, by
	// their names, in an encoding for saved plans. It ignores unknown names. nil means that
	// the schemas cannot be exported, because the provider is a part of the program.
	Export func(map[addr.Mode][]string) ([]byte, error)

	mu    sync.Mutex
	cache map[typeKey]*Resource
}

type typeKey struct {
	mode addr.Mode
	name string
}

// An OtherKind is a kind of types that providers have besides resources and functions.
type OtherKind uint8

// The kinds.
const (
	Actions     OtherKind = iota
	StateStores           // protocol 6 only
)

// Capabilities are optional features that a provider announces.
type Capabilities struct {
	PlanDestroy       bool // PlanResourceChange must be called before a destroy
	SchemaOptional    bool // other calls are possible without calling the schema method first
	MoveResourceState bool // it can move state from other resource types
	GenerateConfig    bool // it can generate the configuration of an object
}

// Resource returns the schema of a resource type, or nil if the provider does not have it. It
// is safe for concurrent use and returns the same schema each time.
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

// Invalid returns the reason for which Resource returned nil for a type in Types. It is nil if
// Resource did not, or if the provider does not have the type.
func (p *Provider) Invalid(mode addr.Mode, name string) error {
	if p.Why == nil {
		return nil
	}
	return p.Why(mode, name)
}

// A Resource is the schema of a managed resource, data source, ephemeral resource or list resource
// type. The block of a list resource is that of its config block.
type Resource struct {
	Version         int64
	Block           *Block
	Identity        *Object // nil if the type has no identity
	IdentityVersion int64
	// Newer means that the schema has parts that Terrace ignores, because they belong to a newer
	// version of the plugin protocol.
	Newer bool
}

// NoMessage is the deprecation message if a provider marks something as deprecated without a
// message.
const NoMessage = "deprecated"

// A Block is a group of arguments and nested blocks.
type Block struct {
	Attributes  map[string]*Attribute
	Blocks      map[string]*NestedBlock
	Description string
	Markdown    bool   // Description is Markdown
	Deprecated  string // deprecation message, which may be NoMessage; "" if not deprecated

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

// Nesting is the number of times that a nested block or object may occur, and the type of the
// result.
type Nesting uint8

// The nesting modes of the plugin protocol.
const (
	NestingInvalid Nesting = iota
	Single                 // at most one; an object or null
	Group                  // at most one; an object, never null
	List
	Set
	Map // one label, which is the key
)

// of returns the type of a collection of objects with this nesting.
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
	// OmitNull omits the block from stored attributes if it is null, so that programs that do not know
	// the block can read them.
	OmitNull bool
}

// An Object contains an attribute's nested attributes.
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

// ImpliedType returns the object type of the block's values. It is computed once.
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

// ImpliedType returns the type of the whole attribute that has the object.
func (o *Object) ImpliedType() cty.Type {
	attrs := make(map[string]cty.Type, len(o.Attributes))
	for name, a := range o.Attributes {
		attrs[name] = a.Type
	}
	obj := cty.Object(attrs)
	return o.Nesting.of(obj)
}

// Empty returns the value of a block in which nothing is set: null attributes, empty
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

// EmptyValue returns the value of a nested block type without blocks.
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
