package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// block returns the block that most tests use:
//
//	name   required        id    computed       size   optional and computed
//	secret sensitive       wo    write-only     obj    nested attributes (single)
//	objs   nested (set)    item  list block     tag    set block
//	one    single block    keyed map block
func block() *schema.Block {
	inner := func() *schema.Block {
		return &schema.Block{Attributes: map[string]*schema.Attribute{
			"k":  {Type: cty.String, Required: true},
			"id": {Type: cty.String, Computed: true},
			"pw": {Type: cty.String, Optional: true, Sensitive: true},
			"wo": {Type: cty.String, Optional: true, WriteOnly: true},
		}}
	}
	nested := func(n schema.Nesting) *schema.Attribute {
		o := &schema.Object{Nesting: n, Attributes: map[string]*schema.Attribute{
			"k":  {Type: cty.String, Optional: true},
			"id": {Type: cty.String, Computed: true},
			"pw": {Type: cty.String, Optional: true, Sensitive: true},
		}}
		return &schema.Attribute{Nested: o, Type: o.ImpliedType(), Optional: true}
	}
	obj := nested(schema.Single)
	obj.Computed = true
	return &schema.Block{
		Attributes: map[string]*schema.Attribute{
			"name":   {Type: cty.String, Required: true},
			"id":     {Type: cty.String, Computed: true},
			"size":   {Type: cty.Number, Optional: true, Computed: true},
			"secret": {Type: cty.String, Optional: true, Sensitive: true},
			"wo":     {Type: cty.String, Optional: true, WriteOnly: true},
			"any":    {Type: cty.DynamicPseudoType, Optional: true},
			"nums":   {Type: cty.Set(cty.Number), Optional: true},
			"obj":    obj,
			"objs":   nested(schema.Set),
		},
		Blocks: map[string]*schema.NestedBlock{
			"item":  {Block: inner(), Nesting: schema.List},
			"tag":   {Block: inner(), Nesting: schema.Set},
			"one":   {Block: inner(), Nesting: schema.Single},
			"keyed": {Block: inner(), Nesting: schema.Map},
		},
	}
}

type m = map[string]cty.Value

func str(s string) cty.Value { return cty.StringVal(s) }
func num(n int64) cty.Value  { return cty.NumberIntVal(n) }

var (
	null = cty.NullVal(cty.String)
	unk  = cty.UnknownVal(cty.String)
)

// inner returns a nested block. Missing fields are null.
func inner(vals m) cty.Value { return fill(m{"k": null, "id": null, "pw": null, "wo": null}, vals) }

func object(vals m) cty.Value { return fill(m{"k": null, "id": null, "pw": null}, vals) }

func fill(all, vals m) cty.Value {
	for k, v := range vals {
		all[k] = v
	}
	return cty.ObjectVal(all)
}

// value coerces a loose object, so that tests only contain the relevant fields.
func value(t testing.TB, vals m) cty.Value {
	t.Helper()
	if _, ok := vals["name"]; !ok {
		vals["name"] = str("n")
	}
	v, err := block().Coerce(cty.ObjectVal(vals))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantValue(t *testing.T, got, want cty.Value) {
	t.Helper()
	if !got.RawEquals(want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func TestCoerce(t *testing.T) {
	v := value(t, m{
		"size": str("12"),
		"nums": cty.TupleVal([]cty.Value{str("1"), num(1), num(2)}),
		"obj":  cty.ObjectVal(m{"k": num(5)}),
		"item": cty.TupleVal([]cty.Value{cty.ObjectVal(m{"k": str("a")}), cty.ObjectVal(m{"k": cty.True, "pw": str("x").Mark("s")})}),
		"keyed": cty.MapVal(m{
			"x": cty.ObjectVal(m{"k": str("1")}),
		}),
	})
	if !v.Type().Equals(block().ImpliedType()) && len(v.Type().TestConformance(block().ImpliedType())) > 0 {
		t.Fatalf("type %#v", v.Type())
	}
	wantValue(t, v.GetAttr("size"), num(12))
	wantValue(t, v.GetAttr("nums"), cty.SetVal([]cty.Value{num(1), num(2)}))
	wantValue(t, v.GetAttr("obj"), object(m{"k": str("5")}))
	wantValue(t, v.GetAttr("item"), cty.ListVal([]cty.Value{inner(m{"k": str("a")}), inner(m{"k": str("true"), "pw": str("x").Mark("s")})}))
	wantValue(t, v.GetAttr("keyed"), cty.MapVal(m{"x": inner(m{"k": str("1")})}))
	wantValue(t, v.GetAttr("one"), cty.NullVal(inner(nil).Type()))
	wantValue(t, v.GetAttr("tag"), cty.SetValEmpty(inner(nil).Type()))
	wantValue(t, v.GetAttr("id"), null)
	again, err := block().Coerce(v)
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, again, v)
	for _, v := range []cty.Value{cty.NullVal(cty.DynamicPseudoType), cty.DynamicVal, cty.EmptyObjectVal.Mark("s")} {
		_, err := block().Coerce(v)
		if u, _ := v.Unmark(); (err == nil) != (u.IsNull() || !u.IsKnown()) {
			t.Errorf("%#v: %v", v, err)
		}
	}
}

func TestCoerceErrors(t *testing.T) {
	for _, tt := range []struct {
		v          cty.Value
		path, text string
	}{
		{str("x"), "", "an object is required, not string"},
		{cty.ObjectVal(m{}), "", `the required attribute "name" is missing`},
		{cty.ObjectVal(m{"name": str("x"), "zz": str("x")}), "", `no argument or block named "zz"`},
		{cty.ObjectVal(m{"name": cty.EmptyObjectVal}), "name", "string required"},
		{cty.ObjectVal(m{"name": str("x"), "item": cty.TupleVal([]cty.Value{cty.EmptyObjectVal})}), "item[0]", `"k" is missing`},
		{cty.ObjectVal(m{"name": str("x"), "item": cty.ObjectVal(m{"k": str("x")})}), "item", "a list of objects is required, not object"},
		{cty.ObjectVal(m{"name": str("x"), "keyed": cty.ListValEmpty(cty.String)}), "keyed", "a map of objects is required"},
		{cty.ObjectVal(m{"name": str("x"), "obj": cty.ObjectVal(m{"zz": str("x")})}), "obj", `named "zz"`},
		{cty.ObjectVal(m{"name": str("x"), "size": str("x")}), "size", "a number is required"},
	} {
		_, err := block().Coerce(tt.v)
		pe, ok := err.(cty.PathError)
		if !ok {
			t.Errorf("%#v: error %v", tt.v, err)
			continue
		}
		if got := schema.PathString(pe.Path); got != tt.path || !strings.Contains(pe.Error(), tt.text) {
			t.Errorf("%#v: %s: %s; want %s: %s", tt.v, got, pe, tt.path, tt.text)
		}
	}
}

func TestProposedNew(t *testing.T) {
	for _, tt := range []struct {
		name                string
		prior, config, want m // prior nil: a create; want contains the differences from config
	}{
		{"create", nil, m{"size": num(1), "wo": str("x")}, m{}},
		{"computed kept", m{"id": str("i"), "size": num(3)}, m{}, m{"id": str("i"), "size": num(3)}},
		{"config wins", m{"id": str("i"), "size": num(3)}, m{"size": num(4)}, m{"id": str("i")}},
		{"optional removed", m{"id": str("i"), "secret": str("s")}, m{}, m{"id": str("i")}},
		{"unknown stays", m{"id": str("i"), "size": num(1)}, m{"size": cty.UnknownVal(cty.Number)}, m{"id": str("i")}},
		{"write-only", m{"id": str("i")}, m{"wo": str("x")}, m{"id": str("i")}},
		{"nested attribute", m{"obj": object(m{"k": str("a"), "id": str("1")})}, m{"obj": object(m{"k": str("b")})}, m{"obj": object(m{"k": str("b"), "id": str("1")})}},
		{"nested computed only", m{"obj": object(m{"id": str("1")})}, m{}, m{"obj": object(m{"id": str("1")})}},
		{"nested removed", m{"obj": object(m{"k": str("a"), "id": str("1")})}, m{}, m{}},
		{"list by index",
			m{"item": cty.ListVal([]cty.Value{inner(m{"k": str("a"), "id": str("1")}), inner(m{"k": str("b"), "id": str("2")})})},
			m{"item": cty.ListVal([]cty.Value{inner(m{"k": str("z")}), inner(m{"k": str("b")}), inner(m{"k": str("c"), "wo": str("x")})})},
			m{"item": cty.ListVal([]cty.Value{inner(m{"k": str("z"), "id": str("1")}), inner(m{"k": str("b"), "id": str("2")}), inner(m{"k": str("c"), "wo": str("x")})})}},
		{"map by key",
			m{"keyed": cty.MapVal(m{"a": inner(m{"k": str("a"), "id": str("1")}), "b": inner(m{"k": str("b"), "id": str("2")})})},
			m{"keyed": cty.MapVal(m{"b": inner(m{"k": str("x")}), "c": inner(m{"k": str("y")})})},
			m{"keyed": cty.MapVal(m{"b": inner(m{"k": str("x"), "id": str("2")}), "c": inner(m{"k": str("y")})})}},
		{"set by what is set",
			m{"tag": cty.SetVal([]cty.Value{inner(m{"k": str("a"), "id": str("1")}), inner(m{"k": str("b"), "id": str("2")}), inner(m{"k": str("b"), "id": str("3")})})},
			m{"tag": cty.SetVal([]cty.Value{inner(m{"k": str("b")}), inner(m{"k": str("c")}), inner(m{"k": unk})})},
			m{"tag": cty.SetVal([]cty.Value{inner(m{"k": str("b"), "id": str("2")}), inner(m{"k": str("c")}), inner(m{"k": unk})})}},
		{"nested set",
			m{"objs": cty.SetVal([]cty.Value{object(m{"k": str("a"), "id": str("1")}), object(m{"k": str("b"), "id": str("2")})})},
			m{"objs": cty.SetVal([]cty.Value{object(m{"k": str("a")}), object(m{"k": str("d")})})},
			m{"objs": cty.SetVal([]cty.Value{object(m{"k": str("a"), "id": str("1")}), object(m{"k": str("d")})})}},
		{"single", m{"one": inner(m{"k": str("a"), "id": str("1")})}, m{"one": inner(m{"k": str("b")})}, m{"one": inner(m{"k": str("b"), "id": str("1")})}},
		{"single gone", m{"one": inner(m{"k": str("a"), "id": str("1")})}, m{}, m{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := block()
			config := value(t, tt.config)
			prior := cty.NullVal(b.ImpliedType())
			if tt.prior != nil {
				prior = value(t, tt.prior)
			}
			want := config.AsValueMap()
			for k, v := range tt.want {
				want[k] = v
			}
			wantValue(t, b.ProposedNew(prior, config), cty.ObjectVal(want))
		})
	}
}

func TestProposedNewLargeSet(t *testing.T) {
	b := &schema.Block{Blocks: map[string]*schema.NestedBlock{"tag": {Nesting: schema.Set, Block: &schema.Block{
		Attributes: map[string]*schema.Attribute{"k": {Type: cty.String, Required: true}, "id": {Type: cty.String, Computed: true}},
	}}}}
	const n = 2000
	var prior, config []cty.Value
	for i := range n {
		prior = append(prior, cty.ObjectVal(m{"k": str(fmt.Sprint(i)), "id": str("x")}))
		config = append(config, cty.ObjectVal(m{"k": str(fmt.Sprint(i)), "id": null}))
	}
	want := cty.ObjectVal(m{"tag": cty.SetVal(prior)})
	wantValue(t, b.ProposedNew(want, cty.ObjectVal(m{"tag": cty.SetVal(config)})), want)
}

func TestSetUnknowns(t *testing.T) {
	b := block()
	got := b.SetUnknowns(value(t, m{
		"wo":   str("x"),
		"objs": cty.SetVal([]cty.Value{object(m{"k": str("a")})}),
		"item": cty.ListVal([]cty.Value{inner(m{"k": str("a"), "wo": str("x")})}),
	}))
	wantValue(t, got, value(t, m{
		"id": unk, "size": cty.UnknownVal(cty.Number), "obj": cty.UnknownVal(b.Attributes["obj"].Type),
		"objs": cty.SetVal([]cty.Value{object(m{"k": str("a"), "id": unk})}),
		"item": cty.ListVal([]cty.Value{inner(m{"k": str("a"), "id": unk})}),
	}))
}

func paths(in []cty.Path) []string {
	var out []string
	for _, p := range in {
		out = append(out, schema.PathString(p))
	}
	return out
}

func TestPaths(t *testing.T) {
	b := block()
	v := value(t, m{
		"secret": str("x").Mark("m"),
		"obj":    object(nil),
		"objs":   cty.SetVal([]cty.Value{object(m{"k": str("a")}), object(m{"k": str("b")})}),
		"item":   cty.ListVal([]cty.Value{inner(m{"k": str("a")}), inner(m{"k": str("b")})}),
		"tag":    cty.SetVal([]cty.Value{inner(m{"k": str("a")})}),
		"keyed":  cty.MapVal(m{"x": inner(m{"k": str("a")})}),
	})
	if d := cmp.Diff(paths(b.SensitivePaths(v)), []string{"obj.pw", "objs", "secret", "item[0].pw", "item[1].pw", `keyed["x"].pw`, "tag"}); d != "" {
		t.Errorf("sensitive:\n%s", d)
	}
	if d := cmp.Diff(paths(b.WriteOnlyPaths(v)), []string{"wo", "item[0].wo", "item[1].wo", `keyed["x"].wo`, "tag"}); d != "" {
		t.Errorf("write-only:\n%s", d)
	}
	if got := b.SensitivePaths(cty.NullVal(b.ImpliedType())); got != nil {
		t.Errorf("null: %v", got)
	}
	if got := b.SensitivePaths(cty.UnknownVal(b.ImpliedType())); got != nil {
		t.Errorf("unknown: %v", got)
	}
}

func TestValidate(t *testing.T) {
	if err := block().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		change func(*schema.Block)
		want   string
	}{
		{func(b *schema.Block) { b.Attributes["id"].Computed = false }, "id is neither required"},
		{func(b *schema.Block) { b.Attributes["id"].Required = true }, "id is required and also"},
		{func(b *schema.Block) { b.Attributes["id"].Type = cty.NilType }, "id has no type"},
		{func(b *schema.Block) { b.Attributes["item"] = b.Attributes["id"] }, "item is both"},
		{func(b *schema.Block) { b.Blocks["item"].Nesting = 99 }, "item has no nesting mode"},
		{func(b *schema.Block) { b.Attributes["obj"].Nested.Nesting = schema.Group }, "obj has no nesting mode"},
		{func(b *schema.Block) { b.Attributes["obj"].Nested.Attributes["k"].Optional = false }, "obj.k is neither"},
		{func(b *schema.Block) { b.Blocks["tag"].Attributes["k"].Type = cty.DynamicPseudoType }, "tag is a set"},
		{func(b *schema.Block) { b.Attributes[""] = b.Attributes["id"] }, "has no name"},
	} {
		b := block()
		tt.change(b)
		if err := b.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
