package planfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// The binary form of a plan uses unsigned varints for numbers. Strings, byte slices and lists
// begin with their length. A string is written once, and then referred to by its number. A
// value is the number of its type followed by its msgpack encoding; a type is written once, as
// JSON.

var errTorn = errors.New("the plan file is damaged")

type encoder struct {
	buf     []byte
	strings map[string]uint64
	types   map[string]*typed
	last    *typed // type of the value that was written last
	key     []byte // buffer for a type
	packed  []byte // buffer for a value
	err     error
}

// typed is a type with its number in the file.
type typed struct {
	n     uint64
	codec *value.Codec
}

func newEncoder() *encoder {
	return &encoder{strings: make(map[string]uint64), types: make(map[string]*typed)}
}

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }
func (e *encoder) int(n int)     { e.uint(uint64(n)) }
func (e *encoder) byte(b byte)   { e.buf = append(e.buf, b) }

func (e *encoder) bool(b bool) {
	if b {
		e.byte(1)
		return
	}
	e.byte(0)
}

func (e *encoder) bytes(b []byte) {
	e.int(len(b))
	e.buf = append(e.buf, b...)
}

// str writes 0 and the string, or 1 + the number of a string that was written before.
func (e *encoder) str(s string) {
	if n, ok := e.strings[s]; ok {
		e.uint(n + 1)
		return
	}
	e.strings[s] = uint64(len(e.strings))
	e.uint(0)
	e.int(len(s))
	e.buf = append(e.buf, s...)
}

// value writes 0 for cty.NilVal, 1 and a new type, or 2 + the number of a type that was written
// before.
func (e *encoder) value(v cty.Value) {
	if v == cty.NilVal {
		e.uint(0)
		return
	}
	ty := v.Type()
	if e.last == nil || !e.last.codec.Type().Equals(ty) {
		e.key = appendType(e.key[:0], ty)
		e.last = e.types[string(e.key)]
	}
	if e.last != nil {
		e.uint(e.last.n + 2)
	} else {
		e.last = &typed{uint64(len(e.types)), value.NewCodec(ty)}
		e.types[string(e.key)] = e.last
		src, err := ctyjson.MarshalType(ty)
		e.fail(err)
		e.uint(1)
		e.bytes(src)
	}
	var err error
	e.packed, err = e.last.codec.Append(e.packed[:0], v)
	e.fail(err)
	e.bytes(e.packed)
}

func (e *encoder) fail(err error) {
	if e.err == nil && err != nil {
		e.err = err
	}
}

// appendType appends an encoding of a type that is unique to the type.
func appendType(b []byte, ty cty.Type) []byte {
	switch {
	case ty == cty.String:
		return append(b, 's')
	case ty == cty.Number:
		return append(b, 'n')
	case ty == cty.Bool:
		return append(b, 'b')
	case ty == cty.DynamicPseudoType:
		return append(b, 'd')
	case ty.IsListType():
		return appendType(append(b, 'L'), ty.ElementType())
	case ty.IsSetType():
		return appendType(append(b, 'S'), ty.ElementType())
	case ty.IsMapType():
		return appendType(append(b, 'M'), ty.ElementType())
	case ty.IsTupleType():
		b = append(b, 'T')
		for _, e := range ty.TupleElementTypes() {
			b = appendType(b, e)
		}
		return append(b, '.')
	case ty.IsObjectType():
		b = append(b, 'O')
		attrs := ty.AttributeTypes()
		for _, name := range sortedKeys(attrs) {
			b = append(binary.AppendUvarint(append(b, ':'), uint64(len(name))), name...)
			b = appendType(b, attrs[name])
		}
		return append(b, '.')
	}
	return append(b, '?')
}

func (e *encoder) path(p cty.Path) {
	e.int(len(p))
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			e.byte('a')
			e.str(s.Name)
		case cty.IndexStep:
			e.byte('i')
			e.value(s.Key)
		}
	}
}

func (e *encoder) paths(ps []cty.Path) {
	e.int(len(ps))
	for _, p := range ps {
		e.path(p)
	}
}

func (e *encoder) instanceKey(k addr.Key) {
	e.byte(byte(k.Kind))
	switch k.Kind {
	case addr.IntKey:
		e.int(k.Int)
	case addr.StringKey:
		e.str(k.Str)
	}
}

func (e *encoder) resource(r addr.Resource) {
	e.byte(byte(r.Mode))
	e.str(r.Type)
	e.str(r.Name)
}

func (e *encoder) instance(i addr.Instance) {
	e.str(string(i.Module))
	e.resource(i.Resource)
	e.instanceKey(i.Key)
}

func (e *encoder) provider(p addr.ProviderConfig) {
	e.str(string(p.Module))
	e.str(p.Provider.Host)
	e.str(p.Provider.Namespace)
	e.str(p.Provider.Type)
	e.str(p.Alias)
	e.instanceKey(p.Key)
}

// A decoder reads the output of an encoder. After the first error all results are zero.
type decoder struct {
	buf     []byte
	strings []string
	types   []*value.Codec
	err     error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.buf = nil
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.buf)
	if size <= 0 {
		d.fail(errTorn)
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

// int reads a number and checks that it does not exceed limit.
func (d *decoder) int(limit int) int {
	n := d.uint()
	if n > uint64(limit) {
		d.fail(errTorn)
		return 0
	}
	return int(n)
}

// length reads the length of a list whose elements take at least one byte each.
func (d *decoder) length() int { return d.int(len(d.buf)) }

func (d *decoder) byte() byte {
	if len(d.buf) == 0 {
		d.fail(errTorn)
		return 0
	}
	b := d.buf[0]
	d.buf = d.buf[1:]
	return b
}

func (d *decoder) bool() bool { return d.byte() == 1 }

func (d *decoder) bytes() []byte {
	n := d.length()
	b := d.buf[:min(n, len(d.buf))]
	d.buf = d.buf[len(b):]
	return b
}

// blob returns a copy of bytes; nil if the length is 0.
func (d *decoder) blob() []byte {
	b := d.bytes()
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

func (d *decoder) str() string {
	n := d.uint()
	if d.err != nil {
		return ""
	}
	if n == 0 {
		s := string(d.bytes())
		d.strings = append(d.strings, s)
		return s
	}
	if n > uint64(len(d.strings)) {
		d.fail(errTorn)
		return ""
	}
	return d.strings[n-1]
}

func (d *decoder) value() cty.Value {
	n := d.uint()
	if d.err != nil || n == 0 {
		return cty.NilVal
	}
	var codec *value.Codec
	switch {
	case n == 1:
		ty, err := ctyjson.UnmarshalType(d.bytes())
		if err != nil {
			d.fail(fmt.Errorf("%w: %w", errTorn, err))
			return cty.NilVal
		}
		codec = value.NewCodec(ty)
		d.types = append(d.types, codec)
	case n-2 < uint64(len(d.types)):
		codec = d.types[n-2]
	default:
		d.fail(errTorn)
		return cty.NilVal
	}
	v, err := codec.Read(d.bytes())
	if err != nil {
		d.fail(fmt.Errorf("%w: %w", errTorn, err))
		return cty.NilVal
	}
	return v
}

func (d *decoder) path() cty.Path {
	n := d.length()
	if n == 0 {
		return nil
	}
	p := make(cty.Path, 0, min(n, 16))
	for range n {
		switch d.byte() {
		case 'a':
			p = append(p, cty.GetAttrStep{Name: d.str()})
		case 'i':
			p = append(p, cty.IndexStep{Key: d.value()})
		default:
			d.fail(errTorn)
			return nil
		}
	}
	return p
}

func (d *decoder) paths() []cty.Path {
	return list(d, d.path)
}

// list reads a list; nil if the length is 0.
func list[T any](d *decoder, one func() T) []T {
	n := d.length()
	if n == 0 {
		return nil
	}
	out := make([]T, 0, min(n, 1<<16))
	for range n {
		if d.err != nil {
			return nil
		}
		out = append(out, one())
	}
	return out
}

func (d *decoder) key() addr.Key {
	switch k := addr.KeyKind(d.byte()); k {
	case addr.NoKey:
		return addr.Key{}
	case addr.IntKey:
		return addr.Int(d.int(min(1<<40, math.MaxInt)))
	case addr.StringKey:
		return addr.Str(d.str())
	}
	d.fail(errTorn)
	return addr.Key{}
}

func (d *decoder) resource() addr.Resource {
	m := d.byte()
	if m > byte(addr.Ephemeral) {
		d.fail(errTorn)
	}
	return addr.Resource{Mode: addr.Mode(m), Type: d.str(), Name: d.str()}
}

func (d *decoder) instance() addr.Instance {
	return addr.Instance{Module: addr.ModuleInstance(d.str()), Resource: d.resource(), Key: d.key()}
}

func (d *decoder) provider() addr.ProviderConfig {
	return addr.ProviderConfig{
		Module:   addr.Module(d.str()),
		Provider: addr.Provider{Host: d.str(), Namespace: d.str(), Type: d.str()},
		Alias:    d.str(),
		Key:      d.key(),
	}
}
