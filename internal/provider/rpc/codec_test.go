package rpc

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// TestCodec compares the codec with cty's own functions.
func TestCodec(t *testing.T) {
	str, num := cty.StringVal, cty.NumberIntVal
	nested := cty.Object(map[string]cty.Type{"x": cty.List(cty.String), "y": cty.Set(cty.Number)})
	many := make(map[string]cty.Value, 20)
	long := make([]cty.Value, 70000)
	for i := range long {
		long[i] = cty.True
	}
	for _, c := range "abcdefghijklmnopqrst" {
		many[string(c)] = num(int64(c))
	}
	tests := []struct {
		v  cty.Value
		ty cty.Type
	}{
		{str(""), cty.String}, {str(strings.Repeat("x", 31)), cty.String}, {str(strings.Repeat("x", 32)), cty.String}, {str(strings.Repeat("x", 256)), cty.String}, {str(strings.Repeat("é", 40000)), cty.String},
		{cty.NullVal(cty.String), cty.String}, {cty.UnknownVal(cty.String), cty.String}, {cty.UnknownVal(cty.String).RefineNotNull(), cty.String},
		{cty.True, cty.Bool}, {cty.False, cty.Bool}, {cty.UnknownVal(cty.Bool), cty.Bool}, {cty.NullVal(cty.Bool), cty.Bool},
		{cty.NumberFloatVal(1.5), cty.Number}, {cty.PositiveInfinity, cty.Number}, {cty.NegativeInfinity, cty.Number}, {cty.MustParseNumberVal("1e40"), cty.Number}, {cty.MustParseNumberVal("0.1"), cty.Number},
		{cty.NumberUIntVal(math.MaxUint64), cty.Number}, {cty.UnknownVal(cty.Number).Refine().NumberRangeLowerBound(num(1), true).NewValue(), cty.Number},
		{cty.ListValEmpty(cty.String), cty.List(cty.String)}, {cty.ListVal([]cty.Value{str("a"), cty.NullVal(cty.String), cty.UnknownVal(cty.String)}), cty.List(cty.String)},
		{cty.ListVal(long), cty.List(cty.Bool)}, {cty.ListVal(long[:16]), cty.List(cty.Bool)}, {cty.UnknownVal(cty.List(cty.Bool)), cty.List(cty.Bool)}, {cty.NullVal(cty.Set(cty.Bool)), cty.Set(cty.Bool)},
		{cty.SetVal([]cty.Value{num(3), num(1)}), cty.Set(cty.Number)}, {cty.SetValEmpty(cty.Number), cty.Set(cty.Number)}, {cty.SetVal([]cty.Value{cty.UnknownVal(cty.Number), num(1)}), cty.Set(cty.Number)},
		{cty.MapVal(map[string]cty.Value{"b": str("1"), "a": cty.NullVal(cty.String)}), cty.Map(cty.String)}, {cty.MapValEmpty(cty.String), cty.Map(cty.String)}, {cty.MapVal(many), cty.Map(cty.Number)},
		{cty.ListVal([]cty.Value{str("a")}), cty.List(cty.DynamicPseudoType)},
		{cty.DynamicVal, cty.DynamicPseudoType}, {cty.NullVal(cty.DynamicPseudoType), cty.DynamicPseudoType}, {cty.NullVal(cty.String), cty.DynamicPseudoType}, {cty.UnknownVal(cty.String), cty.DynamicPseudoType}, {str("x"), cty.DynamicPseudoType}, {cty.ObjectVal(many), cty.DynamicPseudoType},
		{cty.EmptyObjectVal, cty.EmptyObject}, {cty.EmptyTupleVal, cty.EmptyTuple}, {cty.TupleVal([]cty.Value{str("x"), num(1)}), cty.Tuple([]cty.Type{cty.String, cty.Number})},
		{cty.NullVal(nested), nested}, {cty.UnknownVal(nested), nested}, {cty.ObjectVal(many), cty.ObjectVal(many).Type()},
		{cty.ObjectVal(map[string]cty.Value{"x": cty.ListVal([]cty.Value{str("a")}), "y": cty.NullVal(cty.Set(cty.Number))}), nested},
		{cty.ObjectVal(map[string]cty.Value{"any": str("a")}), cty.Object(map[string]cty.Type{"any": cty.DynamicPseudoType})},
		// not conforming: converted or an error
		{num(5), cty.String}, {str("x"), cty.Number}, {cty.EmptyObjectVal, nested}, {cty.TupleVal([]cty.Value{str("x")}), cty.List(cty.String)}, {cty.NullVal(cty.DynamicPseudoType), cty.String}, {cty.DynamicVal, nested},
		{cty.ObjectVal(map[string]cty.Value{"x": str("a"), "z": str("a")}), nested}, {cty.NullVal(cty.Object(map[string]cty.Type{"p": cty.String, "q": cty.String})), nested},
		{cty.ObjectVal(map[string]cty.Value{"x": cty.NullVal(cty.DynamicPseudoType), "y": cty.NullVal(cty.Set(cty.Number))}), nested},
		{str("x").Mark("m"), cty.String}, {cty.ListVal([]cty.Value{str("x").Mark("m")}), cty.List(cty.String)},
	}
	for _, n := range []int64{0, 1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, -1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt64} {
		tests = append(tests, struct {
			v  cty.Value
			ty cty.Type
		}{num(n), cty.Number})
	}
	for _, tt := range tests {
		c := value.NewCodec(tt.ty)
		got, err := Encode(c, tt.v)
		want, wantErr := msgpack.Marshal(tt.v, tt.ty)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got.Msgpack, want) {
			t.Errorf("%#v as %#v: %x, %v, but cty writes %x, %v", tt.v, tt.ty, got.GetMsgpack(), err, want, wantErr)
		}
		if err != nil {
			continue
		}
		back, err := Decode(c, got)
		if want, ok := ctyDecode(want, tt.ty); err != nil || !ok || !back.RawEquals(want) {
			t.Errorf("%x as %#v: %#v, %v, but cty reads %#v, %v", got.Msgpack, tt.ty, back, err, want, ok)
		}
	}
}

// TestCodecReads decodes encodings that Terrace does not produce.
func TestCodecReads(t *testing.T) {
	obj := cty.Object(map[string]cty.Type{"a": cty.Number, "b": cty.String})
	for _, tt := range []struct {
		in string
		ty cty.Type
	}{
		{"\x82\xa1b\xc0\xa1a\x01", obj}, {"\x82\xa1b\xc0\xa1b\xc0", obj}, {"\x82\xa1a\x01\xa1c\xc0", obj}, {"\x80", obj}, {"\x81\xa1a\x01", obj}, {"\x82\xa1a\x01\xa1b\xc0\xc0", obj}, {"\x82\xa1a\x01\xa1b", obj},
		{"\xdf\x00\x00\x00\x02\xd9\x01a\xcb?\xf8\x00\x00\x00\x00\x00\x00\xc4\x01b\xa1x", obj},
		{"\xc4\x02hi", cty.String}, {"\xda\x00\x02hi", cty.String}, {"\xdb\x00\x00\x00\x02hi", cty.String}, {"\xa2\xff\xfe", cty.String}, {"\x01", cty.String}, {"\xa5hi", cty.String},
		{"\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", cty.Number}, {"\xcf\xff\xff\xff\xff\xff\xff\xff\xfe", cty.Number}, {"\xd1\xff\xfe", cty.Number}, {"\xa31.5", cty.Number}, {"\xca\x3f\x80\x00\x00", cty.Number}, {"\xc3", cty.Number}, {"\xd0", cty.Number},
		{"\x92\x01\x01", cty.Set(cty.Number)}, {"\xdc\x00\x01\x01", cty.List(cty.Number)}, {"\xdd\xff\xff\xff\xff\x01", cty.List(cty.Number)}, {"\x91\xa1x", cty.List(cty.Number)}, {"\xc2", cty.List(cty.Number)},
		{"\x82\xa1a\x01\xa1a\x02", cty.Map(cty.Number)}, {"\x81\x01\x01", cty.Map(cty.Number)}, {"\xde\x00\x01\xa1a\xd4\x00\x00", cty.Map(cty.Number)},
		{"\xd4\x0c\x00", cty.String}, {"\xc7\x00\x00", cty.String}, {"\xc7\x03\x0c\x81\x01\xc2", cty.String}, {"\xd4\x00", cty.String}, {"\x01", cty.Bool}, {"\xc1", cty.Bool},
		{"\x92\xc4\x08\"string\"\xa1x", cty.DynamicPseudoType}, {"\x92\xc4\x01x\xa1x", cty.DynamicPseudoType}, {"\x93\xc0\xc0\xc0", cty.DynamicPseudoType},
	} {
		v, err := Decode(value.NewCodec(tt.ty), &pb6.Value{Msgpack: []byte(tt.in)})
		want, ok := ctyDecode([]byte(tt.in), tt.ty)
		if ok != (err == nil) || ok && !v.RawEquals(want) {
			t.Errorf("%x as %#v: %#v, %v, but cty reads %#v, %v", tt.in, tt.ty, v, err, want, ok)
		}
	}
}

// Compares the codec with cty's own functions on a typical object: twenty attributes, most
// of them null.
func BenchmarkCodec(b *testing.B) {
	obj := make(map[string]cty.Value, 20)
	for _, c := range "abcdefghijklmnopqrst" {
		obj["attribute_"+string(c)] = cty.NullVal(cty.String)
	}
	obj["attribute_d"], obj["attribute_f"] = cty.StringVal("some text"), cty.UnknownVal(cty.String)
	obj["attribute_k"] = cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b"), "c": cty.StringVal("d")})
	v := cty.ObjectVal(obj)
	c := value.NewCodec(v.Type())
	raw, err := Encode(c, v)
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"write":     func() error { _, err := Encode(c, v); return err },
		"read":      func() error { _, err := Decode(c, raw); return err },
		"cty-write": func() error { _, err := msgpack.Marshal(v, v.Type()); return err },
		"cty-read":  func() error { _, err := msgpack.Unmarshal(raw.Msgpack, v.Type()); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
