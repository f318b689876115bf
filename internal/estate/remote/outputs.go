package remote

import (
	"encoding/json"
	"fmt"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// wireOutputs are the outputs of a unit as they travel.
type wireOutputs struct {
	Type   json.RawMessage `json:"type,omitempty"` // missing: there are no outputs
	Value  []byte          `json:"value,omitempty"`
	Hidden []string        `json:"hidden,omitempty"` // outputs that are not to be shown
}

// EncodeOutputs writes the outputs of a unit, known or not, as package outputs has them.
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

// DecodeOutputs reads what EncodeOutputs wrote.
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
