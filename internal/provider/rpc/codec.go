package rpc

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// A Codec writes and reads the values of one type as the protocol has them. It
// never changes and may be used concurrently.
//
// What almost all values are made of it knows how to write and read itself, with
// what follows from the type found out beforehand. Everything else (values of
// any type, numbers that are no integers, unknown values of which something is
// known, whatever does not fit) it leaves to cty's own functions, which thus
// decide what is right and what is said of what is wrong: the bytes and values
// are the same, only sooner.
type Codec struct {
	ty            cty.Type
	kind          kind
	names         []string       // of an object's attributes, sorted
	parts         []*Codec       // of an object's attributes, in the order of names
	index         map[string]int // of an object's attributes
	elem          *Codec         // of a collection
	null, unknown cty.Value
}

type kind uint8

const (
	other kind = iota // left to cty
	dynamic
	text
	number
	boolean
	list
	set
	dictionary
	object
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
	}
	return c
}

var errNoValue = errors.New("there is no value in the answer")

// Encode makes the wire form of a value that conforms to the type. NilVal gives nil.
func (c *Codec) Encode(v cty.Value) (*pb6.Value, error) {
	if v == cty.NilVal {
		return nil, nil
	}
	if b, ok := c.append(make([]byte, 0, 256), v); ok {
		return &pb6.Value{Msgpack: b}, nil
	}
	b, err := msgpack.Marshal(v, c.ty)
	if err != nil {
		return nil, err
	}
	return &pb6.Value{Msgpack: b}, nil
}

// Decode reads a value of a plugin. It never panics and allocates in proportion
// to what was sent. A value that is missing gives an error.
func (c *Codec) Decode(in *pb6.Value) (v cty.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = cty.NilVal, fmt.Errorf("the value cannot be decoded: %v", r)
		}
	}()
	switch {
	case len(in.GetMsgpack()) > 0:
		if v, rest, ok := c.read(in.Msgpack); ok && len(rest) == 0 {
			return v, nil
		}
		if err := value.CheckMsgpack(in.Msgpack); err != nil {
			return cty.NilVal, err
		}
		v, err = msgpack.Unmarshal(in.Msgpack, c.ty)
	case len(in.GetJson()) > 0:
		v, err = ctyjson.Unmarshal(in.Json, c.ty)
	default:
		return cty.NilVal, errNoValue
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("the value does not have the form that the schema tells: %w", err)
	}
	if !v.Type().Equals(c.ty) { // the decoder takes an empty object for any
		if errs := v.Type().TestConformance(c.ty); len(errs) > 0 {
			return cty.NilVal, fmt.Errorf("the value does not have the form that the schema tells: %w", errs[0])
		}
	}
	return v, nil
}
