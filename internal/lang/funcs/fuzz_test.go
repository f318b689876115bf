package funcs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/terrace-iac/terrace/internal/base/value"
)

// FuzzCall calls any function with arguments from a JSON array: unchanged, all sensitive, and
// all unknown. No call panics, no message contains a sensitive string, and a result of
// sensitive arguments is sensitive.
func FuzzCall(f *testing.F) {
	for _, seed := range []struct{ name, args string }{
		{"cidrhost", `["10.0.0.0/8", 3]`}, {"cidrsubnet", `["fd00::/8", 8, 1e30]`}, {"cidrsubnets", `["10.0.0.0/30", 1, 1, 1]`},
		{"cidrcontains", `["10.0.0.0/8", "10.1.0.0/16"]`}, {"cidrnetmask", `["010.0.0.0/08"]`},
		{"yamldecode", `["a: &x {b: 1}\nc: {<<: *x}\n"]`}, {"yamldecode", `["- !!binary aGk=\n- 2001-01-01\n- .nan\n"]`},
		{"csvdecode", `["a,b\n1,\"2\"\n"]`}, {"jsondecode", `["[1e999999999]"]`}, {"templatestring", `["${a.b[0]} %{ if c }x%{ endif }", {"a": {"b": [1]}, "c": true}]`},
		{"templatestring", `["${templatestring(t, {t = t})}", {"t": "${templatestring(t, {t = t})}"}]`},
		{"format", `["%[2]*[1]d %-010.3f %q", 1, 2, "s3cr3t"]`}, {"formatlist", `["%s-%s", ["a", "b"], "c"]`},
		{"regex", `["(?P<a>.)(?P<b>.)?", "xy"]`}, {"replace", `["aXb", "/[A-Z]/", "${0}"]`}, {"substr", `["héllo", -3, 2]`},
		{"setproduct", `[["a"], [1, 2]]`}, {"merge", `[{"a": 1}, {"b": [1]}]`}, {"lookup", `[{"a": 1}, "s3cr3t"]`}, {"range", `[1, 10, 0.5]`},
		{"formatdate", `["YYYY 'at' hh:mm", "2020-01-02T03:04:05Z"]`}, {"timeadd", `["2020-01-02T03:04:05Z", "-1.5h"]`},
		{"parseint", `["zz", 36]`}, {"pow", `[-8, 0.5]`}, {"log", `[0, 0]`}, {"sum", `[[1e400, -1e400]]`}, {"zipmap", `[["a"], [1]]`},
		{"flatten", `[[[1, [2]], 3]]`}, {"transpose", `[{"a": ["x"]}]`}, {"matchkeys", `[["a"], ["b"], ["b"]]`}, {"slice", `[[1, 2, 3], 1, 2]`},
		{"textdecodebase64", `["aADpAA==", "UTF-16LE"]`}, {"base64gunzip", `["H4sIAAAAAAAA/8pIzcnJBwAAAP//AQAA//+GphA2BQAAAA=="]`},
		{"tonumber", `["s3cr3t"]`}, {"tolist", `[[1, "a"]]`}, {"indent", `[3, "a\nb"]`}, {"fileset", `["s3cr3t", "[s3cr3t"]`}, {"file", `["s3cr3t"]`},
		{"uuidv5", `["s3cr3t", "x"]`}, {"rsadecrypt", `["s3cr3t", "s3cr3t"]`}, {"chunklist", `[[1, 2], 0]`}, {"element", `[[1, 2], -7]`},
	} {
		f.Add(seed.name, seed.args)
	}
	dir := f.TempDir()
	table := Table(Config{BaseDir: dir, TemplateDepth: 20, Console: true, PureOnly: true})
	skip := []string{"bcrypt", "can", "try", "uuid", "timestamp"}
	f.Fuzz(func(t *testing.T, name, text string) {
		fn, ok := table[name]
		if !ok || slices.Contains(skip, strings.TrimPrefix(name, corePrefix)) {
			t.Skip()
		}
		args, ok := arguments(fn, text)
		if !ok {
			t.Skip()
		}
		_, err := callOnce(t, fn, args)
		secret, unknown := make([]cty.Value, len(args)), make([]cty.Value, len(args))
		for i, arg := range args {
			secret[i] = arg.Mark(value.Sensitive)
			unknown[i] = cty.UnknownVal(arg.Type())
		}
		v, secretErr := callOnce(t, fn, secret)
		if (err == nil) != (secretErr == nil) {
			t.Errorf("%s%s: error %v, but with sensitive arguments %v", name, text, err, secretErr)
		}
		switch {
		case secretErr != nil:
			if strings.Contains(secretErr.Error(), "s3cr3t") {
				t.Errorf("%s%s tells the secret: %v", name, text, secretErr)
			}
		case !slices.Contains([]string{"assumeequal", "nonsensitive", "issensitive", "type"}, strings.TrimPrefix(name, corePrefix)):
			if len(args) > 0 && !v.HasMark(value.Sensitive) {
				t.Errorf("%s%s loses the mark: %#v", name, text, v)
			}
		}
		callOnce(t, fn, unknown)
	})
}

// arguments converts a JSON array to arguments, like those of an expression. It returns false
// for numbers whose size would make the test too slow.
func arguments(fn function.Function, text string) ([]cty.Value, bool) {
	if strings.ContainsAny(text, "eE") && strings.Contains(text, "99999") || len(text) > 4000 {
		return nil, false
	}
	ty, err := ctyjson.ImpliedType([]byte(text))
	if err != nil || !ty.IsTupleType() {
		return nil, false
	}
	list, err := ctyjson.Unmarshal([]byte(text), ty)
	if err != nil || list.IsNull() {
		return nil, false
	}
	args := list.AsValueSlice()
	params, rest := fn.Params(), fn.VarParam()
	for i := range args {
		want := cty.DynamicPseudoType
		switch {
		case i < len(params):
			want = params[i].Type
		case rest != nil:
			want = rest.Type
		}
		v, err := convert.Convert(args[i], want)
		if err != nil {
			return nil, false
		}
		args[i] = v
	}
	return args, true
}

func callOnce(t *testing.T, fn function.Function, args []cty.Value) (cty.Value, error) {
	v, err := fn.Call(args)
	var panicked function.PanicError
	if errors.As(err, &panicked) {
		t.Errorf("%#v: %v", args, err)
	}
	return v, err
}
