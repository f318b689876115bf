package value

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// A Codec writes and reads the values of one type in cty's form of MessagePack, which the
// plugin protocol has. It never changes and may be used concurrently.
//
// What almost all values are made of it knows how to write and read itself, with
// what follows from the type found out beforehand. Everything else (values of
// any type, numbers that are no integers, unknown values of which something is
// known, whatever does not fit) it leaves to cty's own functions, which thus
// decide what is right and what is said of what is wrong: the bytes and values
// are the same, only sooner.
type Codec struct {
	ty            cty.Type
	kind          form
	names         []string       // of an object's attributes, sorted
	parts         []*Codec       // of an object's attributes, in the order of names, or of a tuple's elements
	index         map[string]int // of an object's attributes
	elem          *Codec         // of a collection
	null, unknown cty.Value
}

type form uint8

const (
	other form = iota // left to cty
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

// NewCodec makes the codec of a type.
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
	case ty.IsCollectionType() && !ty.HasDynamicTypes(): // else the elements decide what is right together
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

// Append writes a value that conforms to the type behind b.
func (c *Codec) Append(b []byte, v cty.Value) ([]byte, error) {
	if out, ok := c.append(b, v); ok {
		return out, nil
	}
	out, err := msgpack.Marshal(v, c.ty)
	return append(b, out...), err
}

// Read reads a value, which is all that b holds. It never panics and allocates in
// proportion to what b holds.
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
	return v, nil
}

// ErrForm is the error of a value of another form.
var ErrForm = errors.New("the value does not have the form of its type")

// Type is the type of the values.
func (c *Codec) Type() cty.Type { return c.ty }
