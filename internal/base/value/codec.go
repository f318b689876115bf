package value

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// Codec encodes and decodes values of one type in cty's form of MessagePack, as in the
// plugin protocol. It is immutable and may be used concurrently.
//
// It handles the common cases itself and computes everything that follows from the type
// once. All other values (dynamic types, numbers with a fraction, refined unknown values,
// values that do not conform) go through cty's functions. So the bytes, values and errors
// are exactly cty's, at a lower cost.
type Codec struct {
	ty            cty.Type
	kind          form
	names         []string       // the names of an object's attributes, sorted
	parts         []*Codec       // the codecs of an object's attributes, in the order of names, or of a tuple's elements
	index         map[string]int // the index in names of an object's attribute
	elem          *Codec         // the codec of a collection's elements
	null, unknown cty.Value
}

type form uint8

const (
	other form = iota // encoded and decoded by cty
	dynamic
	text
	number
	boolean
	list
	set
	dictionary
	object
	tuple
)

// NewCodec returns the codec of a type.
func NewCodec(ty cty.Type) *Codec {
	c := &Codec{ty: ty, null: cty.NullVal(ty), unknown: cty.UnknownVal(ty)}
	switch {
	case ty == cty.DynamicPseudoType:
		c.kind = dynamic
	case ty == cty.String:
		c.kind = text
	case ty == cty.Number:
		c.kind = number
	case ty == cty.Bool:
		c.kind = boolean
	case ty.IsCollectionType() && !ty.HasDynamicTypes(): // with dynamic types, all elements together determine the type
		c.elem = NewCodec(ty.ElementType())
		switch {
		case ty.IsListType():
			c.kind = list
		case ty.IsSetType():
			c.kind = set
		default:
			c.kind = dictionary
		}
	case ty.IsObjectType():
		c.kind = object
		attrs := ty.AttributeTypes()
		c.names = slices.Sorted(maps.Keys(attrs))
		c.index = make(map[string]int, len(c.names))
		for i, name := range c.names {
			c.parts = append(c.parts, NewCodec(attrs[name]))
			c.index[name] = i
		}
	case ty.IsTupleType():
		c.kind = tuple
		for _, elem := range ty.TupleElementTypes() {
			c.parts = append(c.parts, NewCodec(elem))
		}
	}
	return c
}

// Append appends the encoding of a value to b. The value must conform to the type.
func (c *Codec) Append(b []byte, v cty.Value) ([]byte, error) {
	if out, ok := c.append(b, v); ok {
		return out, nil
	}
	out, err := msgpack.Marshal(v, c.ty)
	return append(b, out...), err
}

// Read decodes the single value in b. It never panics, and it allocates memory in
// proportion to the length of b.
func (c *Codec) Read(b []byte) (v cty.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = cty.NilVal, fmt.Errorf("the value cannot be decoded: %v", r)
		}
	}()
	if v, rest, ok := c.read(b); ok && len(rest) == 0 {
		return v, nil
	}
	if err := CheckMsgpack(b); err != nil {
		return cty.NilVal, err
	}
	if v, err = msgpack.Unmarshal(b, c.ty); err != nil {
		return v, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return v, BoundedNumbers(v)
}

// ErrForm is returned for bytes that do not encode a value of the type.
var ErrForm = errors.New("the value does not have the form of its type")

// Type returns the type of the values.
func (c *Codec) Type() cty.Type { return c.ty }
