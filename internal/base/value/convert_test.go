package value

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Convert returns the same results and errors as cty.
func TestConvertIsCty(t *testing.T) {
	str, num := cty.StringVal("a"), cty.NumberIntVal(1)
	many := func(f func(i int) cty.Value) (out []cty.Value) {
		for i := range manyElements + 1 {
			out = append(out, f(i))
		}
		return out
	}
	object := func(vs []cty.Value) cty.Value {
		attrs := map[string]cty.Value{}
		for i, v := range vs {
			attrs[fmt.Sprint("k", i)] = v
		}
		return cty.ObjectVal(attrs)
	}
	full := func(int) cty.Value { return cty.ObjectVal(map[string]cty.Value{"a": num, "b": cty.True, "extra": str}) }
	part := func(int) cty.Value { return cty.ObjectVal(map[string]cty.Value{"a": str}) }
	turns := func(fs ...func(int) cty.Value) func(int) cty.Value {
		return func(i int) cty.Value { return fs[i%len(fs)](i) }
	}
	is := func(v cty.Value) func(int) cty.Value { return func(int) cty.Value { return v } }
	number := func(i int) cty.Value { return cty.NumberIntVal(int64(i % 3)) }
	values := []cty.Value{
		str, cty.NullVal(cty.String), cty.DynamicVal, cty.EmptyTupleVal, cty.EmptyObjectVal,
		object(many(full)), object(many(turns(full, part))), object(many(number)), object(many(turns(number, is(str)))),
		object(many(turns(is(cty.NullVal(cty.DynamicPseudoType)), full))), object(many(turns(is(cty.UnknownVal(cty.Number)), number))),
		object(many(turns(is(str.Mark("m")), number))), object(many(number)).Mark("m"), object(many(turns(is(cty.DynamicVal), number))),
		cty.TupleVal(many(number)), cty.TupleVal(many(turns(full, part))), cty.TupleVal(many(turns(is(str.Mark("m")), number))), cty.ListVal(many(number)),
		object(many(is(cty.EmptyTupleVal))), cty.TupleVal(many(is(cty.NullVal(cty.String)))), cty.TupleVal(many(turns(is(cty.NullVal(cty.DynamicPseudoType)), is(str)))),
		cty.SetVal(many(number)), cty.MapVal(map[string]cty.Value{"a": num}), cty.TupleVal(many(func(int) cty.Value { return object(many(number)) })),
		cty.ObjectVal(map[string]cty.Value{"a": cty.TupleVal(many(number)), "b": num}), cty.ObjectVal(map[string]cty.Value{"a": str}),
	}
	optional := cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.String, "b": cty.Bool}, []string{"b"})
	nested := cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.List(cty.String), "b": cty.Number, "c": optional}, []string{"c"})
	for _, ty := range []cty.Type{
		cty.String, cty.DynamicPseudoType, cty.Map(cty.String), cty.Map(cty.Number), cty.Map(optional), cty.Map(cty.DynamicPseudoType), cty.List(cty.String), cty.List(optional),
		cty.Set(cty.String), cty.Set(cty.Number), cty.List(cty.Map(cty.String)), optional, nested, cty.Map(cty.List(cty.String)), cty.List(cty.DynamicPseudoType), cty.Set(cty.DynamicPseudoType),
	} {
		for _, v := range values {
			want, wantErr := convert.Convert(v, ty)
			got, err := Convert(v, ty)
			if (err == nil) != (wantErr == nil) || err == nil && !got.RawEquals(want) { // if several elements are wrong, cty names any of them
				t.Errorf("%#v to %#v: %#v, %v; want %#v, %v", v, ty, got, err, want, wantErr)
			}
		}
	}
}

// The time per element must stay flat.
func BenchmarkConvert(b *testing.B) {
	ty := cty.Map(cty.Object(map[string]cty.Type{"name": cty.String, "size": cty.Number}))
	for _, n := range []int{100, 1_000, 10_000} {
		attrs := map[string]cty.Value{}
		for i := range n {
			attrs[fmt.Sprint(i)] = cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("a"), "size": cty.NumberIntVal(int64(i))})
		}
		v := cty.ObjectVal(attrs)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Convert(v, ty); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
		})
	}
}
