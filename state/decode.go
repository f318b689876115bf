package state

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// errSlow makes Decode fall back to cty's decoder, which is slower but supports every
// conversion and reports paths in errors.
var errSlow = errors.New("not of the usual form")

// Decode reads a value of type ty from JSON that was written by Encode or OpenTofu. A missing
// attribute becomes null. An attribute that ty does not have is an error.
func Decode(raw []byte, ty cty.Type) (cty.Value, error) {
	if rawjson.Deeper(raw, maxDepth) {
		return cty.NilVal, fmt.Errorf("the value is nested more than %d deep", maxDepth)
	}
	d := decoders.Get().(*decoder)
	v, err := d.decodeAll(raw, ty)
	decoders.Put(d)
	if err == nil || errors.Is(err, errNumber) {
		return v, err
	}
	return decodeSlow(raw, ty)
}

// maxDepth is the maximum nesting depth of stored values. Decoding takes time proportional to
// length times depth.
const maxDepth = 500

// decoder decodes values. It caches the last type that it decoded, since values stored with
// their type mostly have the same type as the previous one.
type decoder struct {
	raw string
	ty  cty.Type
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// typeOf is like decodeType with a cache of the last type.
func (d *decoder) typeOf(raw []byte) (cty.Type, error) {
	if d.raw == string(raw) && d.raw != "" {
		return d.ty, nil
	}
	ty, err := decodeType(raw)
	if err == nil && len(raw) <= longestType {
		d.raw, d.ty = string(raw), ty
	}
	return ty, err
}

// longestType is the length, in bytes, of the longest type that is cached.
const longestType = 4 << 10

func (d *decoder) decodeAll(raw []byte, ty cty.Type) (cty.Value, error) {
	s := rawjson.NewScanner(raw)
	v, err := d.decode(s, ty)
	if err == nil {
		err = s.End()
	}
	return v, err
}

// decodeSlow decodes with cty's decoder and recovers from its panics. cty panics if elements of
// a collection have different types, which a stored dynamic value makes possible.
func decodeSlow(raw []byte, ty cty.Type) (v cty.Value, err error) {
	defer func() {
		if recover() != nil {
			v, err = cty.NilVal, errors.New("the stored value contradicts the type that is stored with it")
		}
	}()
	if v, err = ctyjson.Unmarshal(raw, ty); err != nil {
		return v, err
	}
	return v, value.BoundedNumbers(v)
}

func (d *decoder) decode(s *rawjson.Scanner, ty cty.Type) (cty.Value, error) {
	c := s.Peek()
	if c == 'n' {
		if !s.Null() {
			return cty.NilVal, errSlow
		}
		return cty.NullVal(ty), nil
	}
	switch {
	case ty == cty.String && c == '"':
		text, err := s.String()
		return cty.StringVal(text), err
	case ty == cty.Number && c != '"':
		text, err := s.Number()
		if err != nil {
			return cty.NilVal, err
		}
		return parseNumber(text)
	case ty == cty.Number:
		text, err := s.Bytes()
		if err != nil {
			return cty.NilVal, err
		}
		return parseNumber(text)
	case ty == cty.Bool && c != '"':
		b, err := s.Bool()
		return cty.BoolVal(b), err
	case ty == cty.DynamicPseudoType:
		return d.decodeDynamic(s)
	case ty.IsObjectType():
		return d.decodeObject(s, ty)
	case ty.IsMapType():
		return d.decodeMap(s, ty.ElementType())
	case ty.IsListType(), ty.IsSetType():
		return d.decodeElements(s, ty)
	case ty.IsTupleType():
		return d.decodeTuple(s, ty.TupleElementTypes())
	}
	return cty.NilVal, errSlow
}

// errNumber is the error for numbers with too many digits: printing 1e99999999 takes minutes.
var errNumber = errors.New("the value holds a number with too many digits")

// maxDigits is the maximum number of digits of a number, written without an exponent.
const maxDigits = 10000

func parseNumber(text []byte) (cty.Value, error) {
	if len(text) > 2*maxDigits {
		return cty.NilVal, errNumber
	}
	if e := bytes.LastIndexAny(text, "eE"); e >= 0 {
		exp, err := strconv.Atoi(string(text[e+1:]))
		if err != nil || exp > maxDigits || exp < -maxDigits {
			return cty.NilVal, errNumber
		}
	}
	return cty.ParseNumberVal(string(text))
}

// decodeDynamic reads {"value":…,"type":…} with the properties in any order.
func (d *decoder) decodeDynamic(s *rawjson.Scanner) (cty.Value, error) {
	var rawType, rawValue []byte
	err := s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "value":
			rawValue, err = s.Skip()
		case "type":
			rawType, err = s.Skip()
		default:
			err = errSlow
		}
		return err
	})
	if err != nil || rawType == nil || rawValue == nil {
		return cty.NilVal, errSlow
	}
	ty, err := d.typeOf(rawType)
	if err != nil {
		return cty.NilVal, err
	}
	return d.decodeAll(rawValue, ty)
}

// DecodeType reads a type from JSON that was written by EncodeType or OpenTofu.
func DecodeType(raw []byte) (cty.Type, error) {
	if rawjson.Deeper(raw, maxDepth) {
		return cty.NilType, fmt.Errorf("the type is nested more than %d deep", maxDepth)
	}
	return decodeType(raw)
}

func decodeType(raw []byte) (cty.Type, error) {
	switch string(raw) {
	case `"string"`:
		return cty.String, nil
	case `"number"`:
		return cty.Number, nil
	case `"bool"`:
		return cty.Bool, nil
	}
	if ty, err := typeQuick(raw); err == nil {
		return ty, nil
	}
	return typeSlow(raw)
}

// typeSlow decodes a type with cty's decoder and recovers from its panics. cty panics if an
// optional attribute is not declared.
func typeSlow(raw []byte) (ty cty.Type, err error) {
	defer func() {
		if recover() != nil {
			ty, err = cty.NilType, errors.New("it is not the type of a value")
		}
	}()
	ty, err = ctyjson.UnmarshalType(raw)
	if err != nil {
		return cty.NilType, err
	}
	return ty.WithoutOptionalAttributesDeep(), nil
}

func (d *decoder) decodeObject(s *rawjson.Scanner, ty cty.Type) (cty.Value, error) {
	atys := ty.AttributeTypes()
	attrs := make(map[string]cty.Value, len(atys))
	err := s.Object(func(key []byte) error {
		aty, ok := atys[string(key)]
		if !ok {
			return errSlow
		}
		v, err := d.decode(s, aty)
		attrs[string(key)] = v
		return err
	})
	if err != nil {
		return cty.NilVal, err
	}
	if len(attrs) < len(atys) {
		for name, aty := range atys {
			if _, ok := attrs[name]; !ok {
				attrs[name] = cty.NullVal(aty)
			}
		}
	}
	return cty.ObjectVal(attrs), nil
}

func (d *decoder) decodeMap(s *rawjson.Scanner, ety cty.Type) (cty.Value, error) {
	elems := make(map[string]cty.Value)
	err := s.Object(func(key []byte) error {
		name := string(key) // before the value is read
		v, err := d.decode(s, ety)
		elems[name] = v
		return err
	})
	switch {
	case err != nil:
		return cty.NilVal, err
	case len(elems) == 0:
		return cty.MapValEmpty(ety), nil
	case !cty.CanMapVal(elems):
		return cty.NilVal, errSlow
	}
	return cty.MapVal(elems), nil
}

func (d *decoder) decodeElements(s *rawjson.Scanner, ty cty.Type) (cty.Value, error) {
	ety := ty.ElementType()
	var elems []cty.Value
	err := s.Array(func() error {
		v, err := d.decode(s, ety)
		elems = append(elems, v)
		return err
	})
	switch set := ty.IsSetType(); {
	case err != nil:
		return cty.NilVal, err
	case len(elems) == 0 && set:
		return cty.SetValEmpty(ety), nil
	case len(elems) == 0:
		return cty.ListValEmpty(ety), nil
	case set && cty.CanSetVal(elems):
		return cty.SetVal(elems), nil
	case !set && cty.CanListVal(elems):
		return cty.ListVal(elems), nil
	}
	return cty.NilVal, errSlow
}

func (d *decoder) decodeTuple(s *rawjson.Scanner, etys []cty.Type) (cty.Value, error) {
	elems := make([]cty.Value, 0, len(etys))
	err := s.Array(func() error {
		if len(elems) == len(etys) {
			return errSlow
		}
		v, err := d.decode(s, etys[len(elems)])
		elems = append(elems, v)
		return err
	})
	if err != nil || len(elems) < len(etys) {
		return cty.NilVal, errSlow
	}
	return cty.TupleVal(elems), nil
}
