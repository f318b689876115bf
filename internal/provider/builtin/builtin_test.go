package builtin

import (
	"context"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

var (
	str = cty.StringVal
	nul = nullValue
)

// plain returns an object without a store block in the schema.
func plain(id, input, output, triggers cty.Value) cty.Value {
	return object(id, input, output, triggers, cty.NilVal)
}

func TestPlan(t *testing.T) {
	ctx := context.Background()
	none := cty.NullVal(plainImplied())
	unknown := cty.UnknownVal(cty.String)
	tests := []struct {
		name            string
		prior, proposed cty.Value
		want            cty.Value
		replace         bool
	}{
		{"create", none, plain(unknown, str("a"), cty.DynamicVal, nul), plain(unknownID, str("a"), unknown, nul), false},
		{"create without input", none, plain(unknown, nul, cty.DynamicVal, nul), plain(unknownID, nul, nul, nul), false},
		{"create with unknown input", none, plain(unknown, cty.DynamicVal, cty.DynamicVal, nul), plain(unknownID, cty.DynamicVal, cty.DynamicVal, nul), false},
		{"no change", plain(str("1"), str("a"), str("a"), nul), plain(str("1"), str("a"), str("a"), nul), plain(str("1"), str("a"), str("a"), nul), false},
		{"other input", plain(str("1"), str("a"), str("a"), nul), plain(str("1"), cty.True, str("a"), nul), plain(str("1"), cty.True, cty.UnknownVal(cty.Bool), nul), false},
		{"input removed", plain(str("1"), str("a"), str("a"), nul), plain(str("1"), nul, str("a"), nul), plain(str("1"), nul, cty.DynamicVal, nul), false},
		{"trigger", plain(str("1"), str("a"), str("a"), nul), plain(str("1"), str("a"), str("a"), str("t")), plain(unknownID, str("a"), unknown, str("t")), true},
		{"unknown trigger", plain(str("1"), nul, nul, str("t")), plain(str("1"), nul, nul, unknown), plain(unknownID, nul, nul, unknown), true},
		{"destroy", plain(str("1"), nul, nul, nul), none, none, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			resp, ds := New(nil).Plan(ctx, provider.PlanRequest{Type: dataType, Prior: test.prior, Proposed: test.proposed})
			if len(ds) > 0 {
				t.Fatal(ds.Err())
			}
			if !resp.Planned.RawEquals(test.want) {
				t.Errorf("planned %#v\nwant %#v", resp.Planned, test.want)
			}
			if got := len(resp.RequiresReplace) > 0; got != test.replace {
				t.Errorf("replace %t, want %t", got, test.replace)
			}
		})
	}
}

func TestApply(t *testing.T) {
	ctx := context.Background()
	none := cty.NullVal(plainImplied())
	planned := plain(unknownID, str("a"), cty.UnknownVal(cty.String), nul)
	resp, ds := New(nil).Apply(ctx, provider.ApplyRequest{Type: dataType, Prior: none, Planned: planned})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	id := resp.State.GetAttr("id").AsString()
	if len(id) != 36 || strings.Count(id, "-") != 4 {
		t.Errorf("id %q is not a UUID", id)
	}
	if got := resp.State.GetAttr("output"); !got.RawEquals(str("a")) {
		t.Errorf("output is %#v", got)
	}
	resp, ds = New(nil).Apply(ctx, provider.ApplyRequest{Type: dataType, Prior: resp.State, Planned: none})
	if ds.HasErrors() || !resp.State.IsNull() {
		t.Errorf("destroy left %#v, %v", resp.State, ds.Err())
	}
}

func TestUpgrade(t *testing.T) {
	tests := []struct {
		json string
		want cty.Value
	}{
		{`{"id":"1","input":null,"output":null,"triggers_replace":null}`, plain(str("1"), nul, nul, nul)},
		{`{"id":"1","input":{"value":"a","type":"string"},"output":{"value":"a","type":"string"},"triggers_replace":null}`, plain(str("1"), str("a"), str("a"), nul)},
		{`{"id":null,"input":null,"output":null,"triggers_replace":null}`, plain(cty.NullVal(cty.String), nul, nul, nul)},
		{`{"id":"1","input":{"value":"a\n","type":"string"},"output":null,"triggers_replace":null}`, plain(str("1"), str("a\n"), nul, nul)},
		{`{"id":"1","input":{"value":[1],"type":["tuple",["number"]]},"output":null,"triggers_replace":null}`, plain(str("1"), cty.TupleVal([]cty.Value{cty.NumberIntVal(1)}), nul, nul)},
		{`{ "id":"1","input":null,"output":null,"triggers_replace":null}`, plain(str("1"), nul, nul, nul)},
		{`{"id":"ü","input":null,"output":null,"triggers_replace":null}`, plain(str("ü"), nul, nul, nul)},
	}
	for _, test := range tests {
		v, ds := New(nil).UpgradeState(context.Background(), provider.UpgradeRequest{Type: dataType, JSON: []byte(test.json)})
		if ds.HasErrors() {
			t.Errorf("%s: %v", test.json, ds.Err())
			continue
		}
		if !v.RawEquals(test.want) {
			t.Errorf("%s: %#v", test.json, v)
		}
	}
}

func TestUpgradeBad(t *testing.T) {
	for _, bad := range []string{``, `{`, `{"id"`, `{"id":`, `{"id":"1"`, `{"id":"1",}`, `[]`, `{"id":"1","input":{"value":"a","type":"string"`} {
		if _, ds := New(nil).UpgradeState(context.Background(), provider.UpgradeRequest{Type: dataType, JSON: []byte(bad)}); !ds.HasErrors() {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestMove(t *testing.T) {
	null := addr.Provider{Host: addr.DefaultHost, Namespace: "hashicorp", Type: "null"}
	resp, ds := New(nil).Move(context.Background(), provider.MoveRequest{
		SourceProvider: null, SourceType: "null_resource", TargetType: dataType,
		SourceJSON: []byte(`{"id":"123","triggers":{"a":"b"}}`),
	})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	want := plain(str("123"), nul, nul, cty.ObjectVal(map[string]cty.Value{"a": str("b")}))
	if !resp.State.RawEquals(want) {
		t.Errorf("got %#v", resp.State)
	}
	_, ds = New(nil).Move(context.Background(), provider.MoveRequest{SourceType: "time_static", TargetType: dataType})
	if !ds.HasErrors() {
		t.Error("a time_static was taken over")
	}
}

func TestRemoteState(t *testing.T) {
	var asked ReadStateRequest
	found := &state.State{Outputs: map[string]*state.Output{"o": {Value: str("new"), Sensitive: true}}}
	p := New(func(_ context.Context, req ReadStateRequest) (*state.State, diag.List) {
		asked = req
		if req.Workspace == "none" {
			return nil, nil
		}
		return found, nil
	})
	config := func(workspace, defaults cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"backend": str("local"), "config": cty.ObjectVal(map[string]cty.Value{"path": str("p")}),
			"workspace": workspace, "defaults": defaults, "outputs": cty.DynamicVal,
		})
	}
	defaults := cty.ObjectVal(map[string]cty.Value{"o": str("old"), "z": str("z")})
	v, ds := p.ReadData(context.Background(), remoteStateType, config(cty.NullVal(cty.String), defaults), cty.NilVal)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	want := cty.ObjectVal(map[string]cty.Value{"o": str("new"), "z": str("z")})
	if got := v.GetAttr("outputs"); !got.RawEquals(want) {
		t.Errorf("outputs %#v", got)
	}
	if asked.Backend != "local" || asked.Workspace != "" || asked.Check {
		t.Errorf("asked for %+v", asked)
	}
	_, ds = p.ReadData(context.Background(), remoteStateType, config(str("none"), nul), cty.NilVal)
	if !ds.HasErrors() || ds[0].Summary != "Unable to find remote state" || len(ds[0].Attr) != 1 {
		t.Errorf("no state: %v", ds.Err())
	}
	ds = p.ValidateResource(context.Background(), addr.Data, remoteStateType, config(nul, str("x")))
	if !ds.HasErrors() || !asked.Check {
		t.Errorf("bad defaults: %v, asked %+v", ds.Err(), asked)
	}
}

func TestFunctions(t *testing.T) {
	obj := func(kv ...any) cty.Value {
		m := map[string]cty.Value{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1].(cty.Value)
		}
		return cty.ObjectVal(m)
	}
	tests := []struct {
		name string
		arg  cty.Value
		want cty.Value
		err  string
	}{
		{"encode_tfvars", obj("a", cty.NumberIntVal(1), "b", str("x${y}"), "d-e", cty.True, "e", obj("x y", cty.NumberIntVal(1))),
			str("a   = 1\nb   = \"x$${y}\"\nd-e = true\ne = {\n  \"x y\" = 1\n}\n"), ""},
		{"encode_tfvars", cty.EmptyObjectVal, str(""), ""},
		{"encode_tfvars", str("a"), cty.NilVal, "must be an object"},
		{"encode_tfvars", obj("1a", str("")), cty.NilVal, "1a - must be a valid identifier"},
		{"encode_tfvars", nul, cty.NilVal, "must not be null"},
		{"encode_tfvars", cty.DynamicVal, cty.UnknownVal(cty.String), ""},
		{"decode_tfvars", str("a = 1\nb = [true]\n"), obj("a", cty.NumberIntVal(1), "b", cty.TupleVal([]cty.Value{cty.True})), ""},
		{"decode_tfvars", str(""), cty.EmptyObjectVal, ""},
		{"decode_tfvars", str("a = b"), cty.NilVal, "line 1, column 5: Variables not allowed"},
		{"decode_tfvars", str("a {}"), cty.NilVal, "Blocks are not allowed"},
		{"encode_expr", cty.TupleVal([]cty.Value{str("a\nb"), nul}), str(`["a\nb", null]`), ""},
		{"nope", nul, cty.NilVal, "no function"},
	}
	for _, test := range tests {
		got, err := New(nil).CallFunction(context.Background(), test.name, []cty.Value{test.arg})
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s(%#v): error %v, want %q", test.name, test.arg, err, test.err)
			}
		case err != nil:
			t.Errorf("%s(%#v): %v", test.name, test.arg, err)
		case !got.RawEquals(test.want):
			t.Errorf("%s(%#v) = %#v", test.name, test.arg, got)
		}
	}
}

func TestClosed(t *testing.T) {
	p := New(nil)
	p.Close()
	if _, ds := p.Plan(context.Background(), provider.PlanRequest{Type: dataType}); !ds.HasErrors() {
		t.Error("a closed provider planned")
	}
}

func BenchmarkPlan(b *testing.B) {
	p, prior := New(nil), plain(str("1"), str("a"), str("a"), nul)
	none, create := cty.NullVal(plainImplied()), plain(unknownID, str("a"), cty.DynamicVal, nul)
	b.Run("noop", func(b *testing.B) {
		for b.Loop() {
			p.Plan(b.Context(), provider.PlanRequest{Type: dataType, Prior: prior, Proposed: prior})
		}
	})
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			p.Plan(b.Context(), provider.PlanRequest{Type: dataType, Prior: none, Proposed: create})
		}
	})
	b.Run("apply", func(b *testing.B) {
		planned := plain(unknownID, str("a"), cty.UnknownVal(cty.String), nul)
		for b.Loop() {
			p.Apply(b.Context(), provider.ApplyRequest{Type: dataType, Prior: none, Planned: planned})
		}
	})
	b.Run("upgrade object", func(b *testing.B) {
		src := []byte(`{"id":"1","input":{"value":{"a":"x","b":[1,2]},"type":["object",{"a":"string","b":["tuple",["number","number"]]}]},"output":null,"triggers_replace":null}`)
		for b.Loop() {
			p.UpgradeState(b.Context(), provider.UpgradeRequest{Type: dataType, JSON: src})
		}
	})
	b.Run("upgrade", func(b *testing.B) {
		src := []byte(`{"id":"1","input":{"value":"a","type":"string"},"output":{"value":"a","type":"string"},"triggers_replace":null}`)
		for b.Loop() {
			p.UpgradeState(b.Context(), provider.UpgradeRequest{Type: dataType, JSON: src})
		}
	})
}
