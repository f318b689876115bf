package provisioner

import (
	"math/big"

	"github.com/zclconf/go-cty/cty"
)

// attrs returns the attributes of a block's object.
func attrs(v cty.Value) attributes {
	if v == cty.NilVal {
		return attributes{cty.EmptyObjectVal}
	}
	v, _ = v.UnmarkDeep()
	return attributes{v}
}

type attributes struct{ v cty.Value }

// known returns an attribute's value. ok is false if it is unknown. An attribute that the
// object does not have is null.
func (a attributes) known(name string) (v cty.Value, ok bool) {
	switch {
	case !a.v.IsKnown():
		return cty.DynamicVal, false
	case a.v.IsNull() || !a.v.Type().IsObjectType() || !a.v.Type().HasAttribute(name):
		return cty.NullVal(cty.DynamicPseudoType), true
	}
	v = a.v.GetAttr(name)
	return v, v.IsKnown()
}

// text returns a string attribute. It returns "" if it is null or unknown.
func (a attributes) text(name string) string {
	if v, ok := a.known(name); ok && !v.IsNull() {
		return v.AsString()
	}
	return ""
}

// flag returns a bool attribute, or def if it is null or unknown.
func (a attributes) flag(name string, def bool) bool {
	if v, ok := a.known(name); ok && !v.IsNull() {
		return v.True()
	}
	return def
}

// list returns the known, non-null elements of a list of strings.
func (a attributes) list(name string) (out []string) {
	v, ok := a.known(name)
	if !ok || v.IsNull() {
		return nil
	}
	for it := v.ElementIterator(); it.Next(); {
		if _, el := it.Element(); el.IsKnown() && !el.IsNull() {
			out = append(out, el.AsString())
		}
	}
	return out
}

// table returns a map of strings, without null elements.
func (a attributes) table(name string) map[string]string {
	v, ok := a.known(name)
	if !ok || v.IsNull() {
		return nil
	}
	out := make(map[string]string, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		if k, el := it.Element(); el.IsKnown() && !el.IsNull() {
			out[k.AsString()] = el.AsString()
		}
	}
	return out
}

// port returns a port number, or 0 if it is not set.
func (a attributes) port(name string) int {
	v, ok := a.known(name)
	if !ok || v.IsNull() {
		return 0
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != big.Exact || n < 0 || n > 65535 {
		return -1
	}
	return int(n)
}

func (a attributes) validPort(name string) bool { return a.port(name) >= 0 }
