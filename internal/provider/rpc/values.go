package rpc

import (
	"errors"
	"fmt"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

var errNoValue = errors.New("there is no value in the answer")

// Encode encodes a value that conforms to the codec's type. It returns nil for NilVal.
func Encode(c *value.Codec, v cty.Value) (*pb6.Value, error) {
	if v == cty.NilVal {
		return nil, nil
	}
	b, err := c.Append(make([]byte, 0, 256), v)
	if err != nil {
		return nil, err
	}
	return &pb6.Value{Msgpack: b}, nil
}

// Decode decodes a value from a plugin. It never panics, and it allocates memory in
// proportion to the encoding. A missing value is an error.
func Decode(c *value.Codec, in *pb6.Value) (v cty.Value, err error) {
	ty := c.Type()
	switch {
	case len(in.GetMsgpack()) > 0:
		v, err = c.Read(in.Msgpack)
	case len(in.GetJson()) > 0:
		v, err = fromJSON(in.Json, ty)
	default:
		return cty.NilVal, errNoValue
	}
	if err != nil {
		return cty.NilVal, err
	}
	if !v.Type().Equals(ty) { // the decoder accepts an empty object for any object type
		if errs := v.Type().TestConformance(ty); len(errs) > 0 {
			return cty.NilVal, fmt.Errorf("%w: %w", value.ErrForm, errs[0])
		}
	}
	return v, nil
}

// fromJSON decodes a value from JSON. It recovers from panics of cty.
func fromJSON(src []byte, ty cty.Type) (v cty.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = cty.NilVal, fmt.Errorf("the value cannot be decoded: %v", r)
		}
	}()
	if v, err = ctyjson.Unmarshal(src, ty); err != nil {
		return v, fmt.Errorf("%w: %w", value.ErrForm, err)
	}
	return v, value.BoundedNumbers(v)
}
