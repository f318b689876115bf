package remote

import (
	"encoding/json"
	"fmt"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// wireOutputs is the serialized form of a unit's outputs.
type wireOutputs struct {
	Type   json.RawMessage `json:"type,omitempty"` // missing if there are no outputs
	Value  []byte          `json:"value,omitempty"`
	Hidden []string        `json:"hidden,omitempty"` // names of outputs that must not be shown
}

// EncodeOutputs serializes the outputs of a unit, known or unknown, in the form that package
// outputs returns.
func EncodeOutputs(v cty.Value) ([]byte, error) {
	var w wireOutputs
	if v != cty.NilVal {
		if t := v.Type(); t.IsObjectType() && v.IsKnown() && !v.IsNull() {
			for name := range t.AttributeTypes() {
				if value.ContainsSecret(v.GetAttr(name)) {
					w.Hidden = append(w.Hidden, name)
				}
			}
		}
		v, _ = v.UnmarkDeep()
		var err error
		if w.Type, err = ctyjson.MarshalType(v.Type()); err == nil {
			w.Value, err = msgpack.Marshal(v, v.Type())
		}
		if err != nil {
			return nil, fmt.Errorf("the outputs cannot be encoded: %w", err)
		}
	}
	return json.Marshal(w)
}

// DecodeOutputs deserializes the result of EncodeOutputs.
func DecodeOutputs(b []byte) (cty.Value, error) {
	var w wireOutputs
	if err := json.Unmarshal(b, &w); err != nil {
		return cty.NilVal, fmt.Errorf("the outputs of a unit cannot be read: %w", err)
	}
	if len(w.Type) == 0 {
		return cty.NilVal, nil
	}
	t, err := ctyjson.UnmarshalType(w.Type)
	if err == nil {
		err = value.CheckMsgpack(w.Value)
	}
	var v cty.Value
	if err == nil {
		v, err = msgpack.Unmarshal(w.Value, t)
	}
	if err == nil {
		err = value.BoundedNumbers(v)
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("the outputs of a unit cannot be read: %w", err)
	}
	if len(w.Hidden) == 0 {
		return v, nil
	}
	all := v.AsValueMap()
	for _, name := range w.Hidden {
		if x, ok := all[name]; ok {
			all[name] = x.Mark(value.Hidden)
		}
	}
	return cty.ObjectVal(all), nil
}
