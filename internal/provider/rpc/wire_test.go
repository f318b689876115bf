package rpc

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb5"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Every call of protocol 5 has a call of protocol 6 with the same messages, under the same
// or another name.
func TestMethodNames(t *testing.T) {
	six := pb6.File_pb6_terrace_provider6_proto.Services().ByName("Provider").Methods()
	five := pb5.File_pb5_terrace_provider5_proto.Services().ByName("Provider").Methods()
	found := 0
	for i := range six.Len() {
		m := six.Get(i)
		other := five.ByName(protoreflect.Name(Method(5, string(m.Name()))))
		if other == nil {
			if !strings.Contains(string(m.Name()), "State") {
				t.Errorf("protocol 5 has no %s", m.Name())
			}
			continue
		}
		found++
		if m.Input() != other.Input() || m.Output() != other.Output() {
			t.Errorf("%s: %s → %s, but %s → %s", m.Name(), m.Input().Name(), m.Output().Name(), other.Input().Name(), other.Output().Name())
		}
		if got, want := methodNames(5)["/terrace.provider6.Provider/"+string(m.Name())], "/tfplugin5.Provider/"+string(other.Name()); got != want {
			t.Errorf("%s is called as %s, not %s", m.Name(), got, want)
		}
	}
	if found != five.Len() {
		t.Errorf("%d calls of protocol 5 are reached, of %d", found, five.Len())
	}
	if got := methodNames(6)["/terrace.provider6.Provider/ReadResource"]; got != "/tfplugin6.Provider/ReadResource" {
		t.Error(got)
	}
}

// Schemas of both protocols have the same fields, except nested attributes, and decode to
// the same schema.
func TestSchemaOfBothProtocols(t *testing.T) {
	fill := func(m proto.Message) {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			switch f := fields.Get(i); f.Kind() {
			case protoreflect.BoolKind:
				if f.Name() != "required" {
					m.ProtoReflect().Set(f, protoreflect.ValueOfBool(true))
				}
			case protoreflect.StringKind:
				m.ProtoReflect().Set(f, protoreflect.ValueOfString(string(f.Name())))
			case protoreflect.EnumKind:
				m.ProtoReflect().Set(f, protoreflect.ValueOfEnum(1))
			case protoreflect.BytesKind:
				m.ProtoReflect().Set(f, protoreflect.ValueOfBytes([]byte(`["list",["object",{"a":"string"},["a"]]]`)))
			}
		}
	}
	var a5 pb5.Attribute
	var a6 pb6.Attribute
	var b5 pb5.Block
	var b6 pb6.Block
	for _, m := range []proto.Message{&a5, &a6, &b5, &b6} {
		fill(m)
	}
	b5.Attributes, b6.Attributes = []*pb5.Attribute{&a5}, []*pb6.Attribute{&a6}
	b5.BlockTypes = []*pb5.NestedBlock{{TypeName: "b", Nesting: pb6.Nesting_MAP, MinItems: 1, MaxItems: 1 << 40, Block: &pb5.Block{}}}
	b6.BlockTypes = []*pb6.NestedBlock{{TypeName: "b", Nesting: pb6.Nesting_MAP, MinItems: 1, MaxItems: 1 << 40, Block: &pb6.Block{}}}
	raw5, err5 := proto.Marshal(&pb5.Schema{Version: 3, Block: &b5})
	raw6, err6 := proto.Marshal(&pb6.Schema{Version: 3, Block: &b6})
	if err := errors.Join(err5, err6); err != nil {
		t.Fatal(err)
	}
	r5, err5 := decodeSchema(5, raw5)
	r6, err6 := decodeSchema(6, raw6)
	if err := errors.Join(err5, err6); err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b cty.Type) bool { return a.Equals(b) })
	if d := cmp.Diff(r6.Block.Attributes, r5.Block.Attributes, same); d != "" {
		t.Error(d)
	}
	a := r6.Block.Attributes["name"]
	if a == nil || !a.Type.Equals(cty.List(cty.Object(map[string]cty.Type{"a": cty.String}))) || !a.WriteOnly || !a.Sensitive || !a.Markdown || a.Deprecated != "deprecation_message" {
		t.Errorf("%+v", a)
	}
	if r5.Version != 3 || r5.Block.Blocks["b"].MaxItems != r6.Block.Blocks["b"].MaxItems || r6.Block.Blocks["b"].MinItems != 1 || r5.Block.Deprecated != r6.Block.Deprecated {
		t.Errorf("%+v", r5)
	}
}

func TestDecodeSchemaRefuses(t *testing.T) {
	str := []byte(`"string"`)
	for _, tt := range []struct {
		b    *pb6.Block
		want string
	}{
		{&pb6.Block{Attributes: []*pb6.Attribute{{Name: "a", Type: str, Optional: true}, {Name: "a", Type: str, Optional: true}}}, "declared twice"},
		{&pb6.Block{Attributes: []*pb6.Attribute{{Name: "a.b", Type: str, Optional: true}}}, "is not a name"},
		{&pb6.Block{Attributes: []*pb6.Attribute{{Name: "a", Optional: true}}}, "the type cannot be decoded"},
		{&pb6.Block{Attributes: []*pb6.Attribute{{Name: "a", Type: []byte(`["object",{"":"string"}]`)}}}, "neither required"},
		{&pb6.Block{Attributes: []*pb6.Attribute{{Name: "a", Optional: true, NestedType: &pb6.Object{Nesting: pb6.Nesting_GROUP}}}}, "no nesting mode"},
		{&pb6.Block{BlockTypes: []*pb6.NestedBlock{{TypeName: "b"}}}, "no nesting mode"},
		{&pb6.Block{BlockTypes: []*pb6.NestedBlock{{TypeName: "b", Nesting: 77}}}, "no nesting mode"},
		{&pb6.Block{BlockTypes: []*pb6.NestedBlock{{TypeName: "b", Nesting: 2}, {TypeName: "b", Nesting: 2}}}, "declared twice"},
	} {
		raw, err := proto.Marshal(&pb6.Schema{Block: tt.b})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeSchema(6, raw); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %s", tt.b, err, tt.want)
		}
	}
}

// fuzzType contains every kind of type.
var fuzzType = cty.Object(map[string]cty.Type{
	"s": cty.String, "n": cty.Number, "b": cty.Bool, "d": cty.DynamicPseudoType, "l": cty.List(cty.String), "m": cty.Map(cty.Number),
	"t": cty.Tuple([]cty.Type{cty.String, cty.DynamicPseudoType}), "set": cty.Set(cty.Object(map[string]cty.Type{"x": cty.String})),
})

func FuzzDecodeValue(f *testing.F) {
	add := func(v cty.Value) {
		b, err := msgpack.Marshal(v, fuzzType)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(nil))
	}
	add(cty.NullVal(fuzzType))
	add(cty.UnknownVal(fuzzType))
	add(cty.ObjectVal(map[string]cty.Value{
		"s": cty.UnknownVal(cty.String).Refine().NotNull().StringPrefixFull("x").NewValue(), "n": cty.MustParseNumberVal("1e100"), "b": cty.True,
		"d": cty.ObjectVal(map[string]cty.Value{"a": cty.DynamicVal}), "l": cty.ListVal([]cty.Value{cty.StringVal("é")}),
		"m": cty.MapVal(map[string]cty.Value{"k": cty.NumberIntVal(-1)}), "t": cty.TupleVal([]cty.Value{cty.StringVal(""), cty.NullVal(cty.Bool)}),
		"set": cty.SetVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"x": cty.UnknownVal(cty.String)})}),
	}))
	for _, text := range []string{"1e400000000", "1P400000000", "1e-400000000"} { // writing the digits would take all memory
		b, err := msgpack.Marshal(cty.StringVal(text), cty.String)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte("\x81\xa1n"), b...), []byte(nil))
		f.Add([]byte(nil), []byte(`{"s":null,"n":"`+text+`","b":true,"d":null,"l":[],"m":{},"t":["",null],"set":[]}`))
	}
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, []byte(nil))
	f.Add([]byte(nil), []byte(`{"s":"x","n":1,"b":true,"d":{"type":"string","value":"x"},"l":[],"m":{},"t":["",null],"set":[]}`))
	codec := value.NewCodec(fuzzType)
	f.Fuzz(func(t *testing.T, mp, json []byte) {
		v, err := Decode(codec, &pb6.Value{Msgpack: mp, Json: json})
		if want, ok := ctyDecode(mp, fuzzType); len(mp) > 0 && (ok != (err == nil) || ok && !v.RawEquals(want)) {
			t.Fatalf("%x is %#v, %v, but cty reads %#v, %v", mp, v, err, want, ok)
		}
		if err != nil {
			return
		}
		if errs := v.Type().TestConformance(fuzzType); errs != nil {
			t.Fatalf("%#v: %v", v, errs)
		}
		again, err := Encode(codec, v)
		if err != nil {
			t.Fatalf("%#v: %v", v, err)
		}
		if want, err := msgpack.Marshal(v, fuzzType); err != nil || !bytes.Equal(again.Msgpack, want) {
			t.Fatalf("%#v is %x, but cty writes %x, %v", v, again.Msgpack, want, err)
		}
		back, err := Decode(codec, again)
		if err != nil {
			t.Fatalf("%#v is not read back: %v", v, err)
		}
		// cty does not write a refinement that says nothing, so the value may differ from v.
		if want, ok := ctyDecode(again.Msgpack, fuzzType); !ok || !back.RawEquals(want) {
			t.Fatalf("%#v became %#v, but cty reads %#v", v, back, want)
		}
	})
}

// ctyDecode decodes a value with cty's own functions. It checks conditions that they
// assume.
func ctyDecode(b []byte, ty cty.Type) (v cty.Value, ok bool) {
	defer func() { ok = recover() == nil && ok }()
	if value.CheckMsgpack(b) != nil {
		return cty.NilVal, false
	}
	v, err := msgpack.Unmarshal(b, ty)
	return v, err == nil && v.Type().TestConformance(ty) == nil && value.BoundedNumbers(v) == nil
}

func FuzzHandshake(f *testing.F) {
	for _, s := range []string{
		"1|6|unix|/tmp/plugin123|grpc", "1|5|tcp|127.0.0.1:1234|grpc|" + strings.Repeat("TUlJQ", 20) + "|true", "1|5|unix|/x|grpc|extra", "1|4|unix|/x",
		"1|6|tcp|[::1]:80|grpc||", "", "|||||", "Hello", "1|6|unix||grpc", "1|6|tcp|:80|grpc",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		h, err := parseHandshake(line)
		if err != nil {
			if err.Error() == "" || len(err.Error()) > 1000 {
				t.Fatalf("%q: %q", line, err)
			}
			return
		}
		if h.Protocol != 5 && h.Protocol != 6 || h.Address == "" || h.Network != "unix" && h.Network != "tcp" {
			t.Fatalf("%q: %+v", line, h)
		}
	})
}

func FuzzSchema(f *testing.F) {
	raw, err := proto.Marshal(&pb6.Schema{Version: 1, Block: &pb6.Block{
		Attributes: []*pb6.Attribute{{Name: "a", Type: []byte(`["map",["tuple",["bool","dynamic"]]]`), Optional: true}, {Name: "n", Computed: true, NestedType: &pb6.Object{Nesting: 3, Attributes: []*pb6.Attribute{{Name: "x", Type: []byte(`"string"`), Required: true}}}}},
		BlockTypes: []*pb6.NestedBlock{{TypeName: "b", Nesting: 4, Block: &pb6.Block{}}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw, true)
	f.Add(raw, false)
	f.Fuzz(func(t *testing.T, raw []byte, five bool) {
		protocol := 6
		if five {
			protocol = 5
		}
		r, err := decodeSchema(protocol, raw)
		if err != nil {
			return
		}
		empty := r.Block.Empty()
		if errs := empty.Type().TestConformance(r.Block.ImpliedType()); errs != nil {
			t.Fatal(errs)
		}
		if v := r.Block.ProposedNew(empty, r.Block.SetUnknowns(empty)); v.IsNull() {
			t.Fatalf("%#v", v)
		}
	})
}

func TestParseReattach(t *testing.T) {
	got, err := ParseReattach(`{"hashicorp/time":{"Protocol":"grpc","ProtocolVersion":0,"Pid":12,"Test":true,"Addr":{"Network":"unix","String":"/tmp/p"}},
		"example.com/a/b":{"Protocol":"grpc","ProtocolVersion":6,"Addr":{"Network":"tcp","String":"127.0.0.1:1"}}}`)
	want := map[addr.Provider]Reattach{
		addr.DefaultProvider("time"):                     {5, "unix", "/tmp/p", 12},
		{Host: "example.com", Namespace: "a", Type: "b"}: {6, "tcp", "127.0.0.1:1", 0},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if got, err := ParseReattach(""); got != nil || err != nil {
		t.Error(got, err)
	}
	for in, want := range map[string]string{
		`{`: "not a JSON object", `[]`: "not a JSON object", `{} {}`: "more follows", `{"a b":{}}`: "not a provider source",
		`{"a/b":{"Protocol":"netrpc"}}`: `only "grpc"`, `{"a/b":{"Protocol":"grpc","ProtocolVersion":7}}`: "only 5 and 6",
		`{"a/b":{"Protocol":"grpc"}}`: "needs an Addr", `{"hashicorp/a":{"Protocol":"grpc","Addr":{"Network":"unix","String":"x"}},"a":{"Protocol":"grpc","Addr":{"Network":"unix","String":"x"}}}`: "is there twice",
	} {
		if _, err := ParseReattach(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

func FuzzParseReattach(f *testing.F) {
	f.Add(`{"a/b":{"Protocol":"grpc","Addr":{"Network":"unix","String":"/x"}}}`)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseReattach(s)
		for a, r := range got {
			if err != nil || a.IsZero() || r.Address == "" {
				t.Fatalf("%v %+v %v", a, r, err)
			}
		}
	})
}

func TestTail(t *testing.T) {
	var log strings.Builder
	tl := &tail{out: &log}
	for range 5000 {
		_, _ = tl.Write([]byte("a line\n"))
	}
	if got := strings.Count(tl.String(), "\n") + 1; got != tailLines {
		t.Errorf("%d lines", got)
	}
	if len(tl.kept) > 3*tailSize || log.Len() != 5000*7 {
		t.Errorf("%d bytes kept, %d passed on", len(tl.kept), log.Len())
	}
	_, _ = tl.Write([]byte("pan"))
	_, _ = tl.Write([]byte("ic: oh\n"))
	for range 5000 {
		_, _ = tl.Write([]byte("goroutine 1\n"))
	}
	if s := tl.String(); !strings.HasPrefix(s, "panic: oh\ngoroutine") || len(s) > panicSize {
		t.Errorf("%d bytes: %.50s", len(s), s)
	}
	if (&tail{}).ending() != "" || (*tail)(nil).ending() != "" {
		t.Error("an empty tail tells something")
	}
}

// Schemas in a plan file come from outside: they are read or are an error, and what was exported
// is imported again.
func FuzzImportSchemas(f *testing.F) {
	f.Add([]byte(`null`))
	f.Add([]byte(`{"about":{"protocol":"Ng=="}}`))
	f.Add([]byte(`{"about":{"protocol":"Ng==","provider":"CgA="},"managed":{"x_thing":"EgA="},"identity":{"x_thing":"CAE="},"function":{"f":"/w=="}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ImportSchemas(b)
		if err != nil {
			return
		}
		for mode, names := range p.Types {
			for _, name := range names {
				p.Resource(mode, name)
			}
		}
		again, err := p.Export(p.Types)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ImportSchemas(again); err != nil {
			t.Errorf("what was exported cannot be imported: %v", err)
		}
	})
}
