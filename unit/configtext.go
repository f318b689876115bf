package unit

import (
	"bytes"
	"slices"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/zclconf/go-cty/cty"
)

// configText writes arguments and blocks with values in HCL. The result is the same as that
// of hclwrite, but without a token tree, which takes some hundred bytes per value. Values
// must be wholly known and unmarked.
type configText struct{ b bytes.Buffer }

// attribute writes an argument of the innermost open block.
func (t *configText) attribute(name string, v cty.Value) {
	t.b.WriteString(name)
	t.b.WriteString(" = ")
	t.value(v)
	t.b.WriteByte('\n')
}

// block writes a block. body writes its content.
func (t *configText) block(kind string, labels []string, body func()) {
	t.b.WriteString(kind)
	for _, l := range labels {
		t.b.WriteByte(' ')
		t.string(l)
	}
	t.b.WriteString(" {\n")
	body()
	t.b.WriteString("}\n")
}

// value writes a value as an expression.
func (t *configText) value(v cty.Value) {
	ty := v.Type()
	switch {
	case v.IsNull():
		t.b.WriteString("null")
	case ty == cty.String:
		t.string(v.AsString())
	case ty.IsObjectType() || ty.IsMapType():
		t.b.WriteByte('{')
		if v.LengthInt() > 0 {
			t.b.WriteByte('\n')
		}
		for it := v.ElementIterator(); it.Next(); {
			k, in := it.Element()
			if name := k.AsString(); value.IsIdentifier(name) {
				t.b.WriteString(name)
			} else {
				t.string(name)
			}
			t.b.WriteString(" = ")
			t.value(in)
			t.b.WriteByte('\n')
		}
		t.b.WriteByte('}')
	case ty.IsTupleType() || ty.IsListType() || ty.IsSetType():
		t.b.WriteByte('[')
		for it, first := v.ElementIterator(), true; it.Next(); first = false {
			if !first {
				t.b.WriteString(", ")
			}
			_, in := it.Element()
			t.value(in)
		}
		t.b.WriteByte(']')
	default:
		t.b.Write(hclwrite.TokensForValue(v).Bytes())
	}
}

// string writes a quoted string.
func (t *configText) string(s string) {
	plain := func(c byte) bool { return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '$' && c != '%' }
	if slices.IndexFunc([]byte(s), func(c byte) bool { return !plain(c) }) >= 0 {
		t.b.Write(hclwrite.TokensForValue(cty.StringVal(s)).Bytes())
		return
	}
	t.b.WriteByte('"')
	t.b.WriteString(s)
	t.b.WriteByte('"')
}

// formatted returns the text in canonical format.
func (t *configText) formatted() []byte {
	if out, ok := hclnative.Format(t.b.Bytes(), ""); ok {
		return out
	}
	return hclwrite.Format(t.b.Bytes()) // not a valid name: written as it is
}
