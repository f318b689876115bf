package funcs

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// Results that would use all memory are rejected before they are computed.
func TestBounds(t *testing.T) {
	fs := Table(Config{})
	list := func(n int) cty.Value {
		vs := make([]cty.Value, n)
		for i := range vs {
			vs[i] = cty.NumberIntVal(int64(i))
		}
		return cty.ListVal(vs)
	}
	text := func(n int) cty.Value { return cty.StringVal(strings.Repeat("x", n)) }
	huge := cty.MustParseNumberVal("1e100000000")
	for _, c := range []struct {
		name string
		args []cty.Value
		want string
	}{
		{"setproduct", []cty.Value{list(1000), list(1000), list(1000)}, "more than 1048576 elements"},
		{"setproduct", []cty.Value{list(10), list(10), list(10)}, ""},
		{"concat", []cty.Value{list(600000), list(600000)}, "more than 1048576 elements"},
		{"split", []cty.Value{cty.StringVal(""), text(2 << 20)}, "more than 1048576 elements"},
		{"regexall", []cty.Value{cty.StringVal(""), text(2 << 20)}, "more than 1048576 elements"},
		{"join", []cty.Value{text(1 << 20), cty.ListVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")})}, ""},
		{"join", []cty.Value{text(65 << 20), cty.ListVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")})}, "more than 64 MiB"},
		{"replace", []cty.Value{text(1 << 20), cty.StringVal("x"), text(1 << 10)}, "more than 64 MiB"},
		{"replace", []cty.Value{text(1 << 20), cty.StringVal("/x/"), text(1 << 10)}, "more than 64 MiB"},
		{"replace", []cty.Value{text(1 << 20), cty.StringVal("/.*/"), cty.StringVal(strings.Repeat("$0", 100))}, "more than 64 MiB"},
		{"replace", []cty.Value{text(100), cty.StringVal("/x/"), text(10)}, ""},
		{"format", []cty.Value{cty.StringVal("%1000000000d"), cty.Zero}, "more than 64 MiB"},
		{"format", []cty.Value{cty.StringVal(strings.Repeat("%[1]s", 200)), text(1 << 20)}, "more than 64 MiB"},
		{"format", []cty.Value{cty.StringVal("%s and %05d"), text(10), cty.Zero}, ""},
		{"format", []cty.Value{cty.StringVal("%d"), huge}, "10,000 digits"},
		{"formatlist", []cty.Value{cty.StringVal("%s%10000s"), list(100000), cty.StringVal("a")}, "more than 64 MiB"},
		{"parseint", []cty.Value{text(20000), cty.NumberIntVal(36)}, "10,000 digits"},
		{"tostring", []cty.Value{huge}, "10,000 digits"},
		{"ceil", []cty.Value{huge.Mark(value.Sensitive)}, "10,000 digits"},
		{"jsonencode", []cty.Value{huge}, "10,000 digits"},
		{"jsondecode", []cty.Value{cty.StringVal(`{"a": [1e100000000]}`)}, "10,000 digits"},
		{"jsondecode", []cty.Value{cty.StringVal(strings.Repeat("[", 20000))}, "more than 10000 deep"},
		{"yamldecode", []cty.Value{cty.StringVal("a: [1e100000000]")}, "10,000 digits"},
	} {
		_, err := fs[c.name].Call(c.args)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for _, name := range []string{"setproduct", "join", "format", "split", "concat", "jsondecode"} {
		f, args := fs[name], []cty.Value{}
		for _, p := range f.Params() {
			args = append(args, cty.UnknownVal(p.Type))
		}
		if p := f.VarParam(); p != nil {
			args = append(args, cty.DynamicVal)
		}
		if v, err := f.Call(args); err != nil || v.IsKnown() {
			t.Errorf("%s of unknowns: %#v, %v", name, v, err)
		}
	}
}
