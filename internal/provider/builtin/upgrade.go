package builtin

import (
	"bytes"
	"context"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/zclconf/go-cty/cty"
)

// dataImplied is the type of terraform_data without the types of its values.
var dataImplied = sync.OnceValue(func() cty.Type { return dataBlock().ImpliedType() })

// UpgradeState decodes stored terraform_data; there is one version of its schema.
func (p *Provider) UpgradeState(_ context.Context, req provider.UpgradeRequest) (cty.Value, diag.List) {
	switch {
	case p.closed.Load():
		return cty.NilVal, p.check()
	case req.Type == remoteStateType:
		return decode(req.JSON, remoteStateBlock().ImpliedType())
	case req.Type != dataType:
		return cty.NilVal, unknownType(0, req.Type)
	case req.JSON == nil:
		return cty.NilVal, diag.Errorf(nil, "Unreadable object", "The stored attributes are in the form of a state format before version 4, which the type terraform_data never had.")
	}
	if v, ok := quick(req.JSON); ok {
		return v, nil
	}
	return decode(req.JSON, dataImplied())
}

func decode(src []byte, ty cty.Type) (cty.Value, diag.List) {
	v, err := state.Decode(src, ty)
	if err != nil {
		return cty.NilVal, diag.Errorf(nil, "Unreadable object", "The stored attributes do not fit the type: %s.", err)
	}
	return v, nil
}

// quick decodes terraform_data whose values are strings or null, as they are
// in most states, without the general decoder, which costs ten times as much.
// It takes nothing but the compact form without escapes and says so otherwise.
func quick(src []byte) (cty.Value, bool) {
	id, input, out, triggers := cty.NilVal, cty.NilVal, cty.NilVal, cty.NilVal
	src, ok := bytes.CutPrefix(src, []byte("{"))
	for ok && len(src) > 0 {
		var name []byte
		if name, src, ok = quickString(src); !ok {
			break
		}
		if src, ok = bytes.CutPrefix(src, []byte(":")); !ok {
			break
		}
		var v cty.Value
		switch string(name) {
		case "id":
			if s, rest, is := quickString(src); is {
				id, src = cty.StringVal(string(s)), rest
			} else if rest, null := bytes.CutPrefix(src, []byte("null")); null {
				id, src = cty.NullVal(cty.String), rest
			} else {
				ok = false
			}
		case "input":
			v, src, ok = quickDynamic(src)
			input = v
		case "output":
			v, src, ok = quickDynamic(src)
			out = v
		case "triggers_replace":
			v, src, ok = quickDynamic(src)
			triggers = v
		default:
			ok = false
		}
		if !ok || len(src) == 0 {
			break
		}
		if src[0] == '}' {
			all := len(src) == 1 && id != cty.NilVal && input != cty.NilVal && out != cty.NilVal && triggers != cty.NilVal
			if !all {
				return cty.NilVal, false
			}
			return object(id, input, out, triggers), true
		}
		src, ok = bytes.CutPrefix(src, []byte(","))
	}
	return cty.NilVal, false
}

// quickString reads a string without escapes and control characters.
func quickString(src []byte) (s, rest []byte, ok bool) {
	if len(src) == 0 || src[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			return src[1:i], src[i+1:], true
		case c == '\\' || c < 0x20 || c >= 0x80:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// quickDynamic reads null or {"value":"…","type":"string"}.
func quickDynamic(src []byte) (cty.Value, []byte, bool) {
	if rest, ok := bytes.CutPrefix(src, []byte("null")); ok {
		return nullValue, rest, true
	}
	src, ok := bytes.CutPrefix(src, []byte(`{"value":`))
	if !ok {
		return cty.NilVal, nil, false
	}
	s, src, ok := quickString(src)
	if !ok {
		return cty.NilVal, nil, false
	}
	src, ok = bytes.CutPrefix(src, []byte(`,"type":"string"}`))
	if !ok {
		return cty.NilVal, nil, false
	}
	return cty.StringVal(string(s)), src, true
}
