package state_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/state/statetest"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"pgregory.net/rapid"
)

func text(t interface{ Fatal(...any) }, s *state.State) string {
	var b bytes.Buffer
	if err := statefile.Write(&b, s, true); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A snapshot never changes, whatever changes its drafts make. A draft has the same content as a
// plain map of objects after the same changes.
func TestDraftAgainstAPlainMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := statetest.State(t)
		model := map[addr.Object]*state.Object{}
		for a, o := range s.Objects() {
			model[a] = o
		}
		d := s.Edit()
		type shot struct {
			s    *state.State
			text string
		}
		shots := []shot{{s, text(t, s)}}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				c := statetest.Change(t)
				d.Apply(c)
				if c.New == nil {
					delete(model, c.Object)
				} else {
					model[c.Object] = c.New
				}
			case 3:
				from, to := statetest.Instance(t), statetest.Instance(t)
				var found, taken []addr.Object
				for o := range model {
					if o.Instance == from {
						found = append(found, o)
					}
					if o.Instance == to {
						taken = append(taken, o)
					}
				}
				want := len(found) > 0 && len(taken) == 0
				if got := d.MoveInstance(from, to); got != want {
					t.Fatalf("MoveInstance %s to %s: %v, want %v", from, to, got, want)
				}
				if want {
					for _, o := range found {
						model[addr.Object{Instance: to, Deposed: o.Deposed}] = model[o]
						delete(model, o)
					}
				}
			case 4:
				from, to := statetest.Instance(t).Abs(), statetest.Instance(t).Abs()
				moved := map[addr.Object]*state.Object{}
				taken := false
				for o, v := range model {
					if o.Instance.Abs() == from {
						moved[addr.Object{Instance: to.Instance(o.Instance.Key), Deposed: o.Deposed}] = v
					}
					taken = taken || o.Instance.Abs() == to
				}
				want := len(moved) > 0 && !taken
				if got := d.MoveResource(from, to); got != want {
					t.Fatalf("MoveResource %s to %s: %v, want %v", from, to, got, want)
				}
				if want {
					for o := range model {
						if o.Instance.Abs() == from {
							delete(model, o)
						}
					}
					for o, v := range moved {
						model[o] = v
					}
				}
			case 5:
				f := d.Freeze()
				shots = append(shots, shot{f, text(t, f)})
			}
		}
		got := d.Freeze()
		for _, s := range shots {
			if now := text(t, s.s); now != s.text {
				t.Fatalf("a snapshot changed: %s", cmp.Diff(s.text, now))
			}
		}
		n := 0
		for a, o := range got.Objects() {
			n++
			if model[a] != o {
				t.Fatalf("%s is not what was set", a)
			}
		}
		if n != len(model) {
			t.Fatalf("%d objects, want %d", n, len(model))
		}
		for a, r := range got.Resources {
			if a != r.Addr || len(r.Instances) == 0 {
				t.Fatalf("resource %s: address %s, %d instances", a, r.Addr, len(r.Instances))
			}
		}
	})
}

func TestDiffIsWhatLeadsFromOneToTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := statetest.State(t)
		b := statetest.State(t)
		d := a.Edit()
		for _, c := range state.Diff(a, b) {
			d.Apply(c)
		}
		got := d.Freeze()
		if rest := state.Diff(got, b); len(rest) > 0 {
			t.Fatalf("%d changes are left: %v", len(rest), rest[0].Object)
		}
		if len(state.Diff(a, a)) != 0 || !a.Equal(a.Edit().Freeze()) {
			t.Fatal("a state differs from itself")
		}
	})
}

func TestEncodeAgreesWithCty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := statetest.Value(t, 3)
		for _, ty := range []cty.Type{v.Type(), cty.DynamicPseudoType} {
			got, err := state.Encode(v, ty)
			if err != nil {
				t.Fatal(err)
			}
			want, err := ctyjson.Marshal(v, ty)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%s\n%s", got, want)
			}
			back, err := state.Decode(got, ty)
			if err != nil {
				t.Fatal(err)
			}
			slow, err := ctyjson.Unmarshal(got, ty)
			if err != nil {
				t.Fatal(err)
			}
			if !back.RawEquals(slow) {
				t.Fatalf("%#v\n%#v", back, slow)
			}
		}
	})
}

func TestDecodeAsCtyDoes(t *testing.T) {
	obj := cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.Number})
	for _, c := range []struct {
		json string
		ty   cty.Type
		want cty.Value // NilVal: an error
	}{
		{`{"a":1}`, obj, cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("1"), "b": cty.NullVal(cty.Number)})},
		{`{"a":true,"b":"7"}`, obj, cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("true"), "b": cty.NumberIntVal(7)})},
		{`{"a":"x","c":1}`, obj, cty.NilVal},
		{`"true"`, cty.Bool, cty.True},
		{`[1,2]`, cty.Tuple([]cty.Type{cty.Number}), cty.NilVal},
		{`[1]`, cty.Tuple([]cty.Type{cty.Number, cty.Number}), cty.NilVal},
		{`[{"value":1,"type":"number"},{"value":"x","type":"string"}]`, cty.List(cty.DynamicPseudoType), cty.NilVal},
		{`{"type":["list","string"],"value":["x"]}`, cty.DynamicPseudoType, cty.ListVal([]cty.Value{cty.StringVal("x")})},
		{`{"type":["object",{"a":"string"},["a"]],"value":null}`, cty.DynamicPseudoType, cty.NullVal(cty.Object(map[string]cty.Type{"a": cty.String}))},
		{`null`, cty.DynamicPseudoType, cty.NullVal(cty.DynamicPseudoType)},
		{`1`, cty.DynamicPseudoType, cty.NilVal},
		{strings.Repeat(`{"type":"dynamic","value":`, 600) + `1` + strings.Repeat("}", 600), cty.DynamicPseudoType, cty.NilVal},
		{`"` + strings.Repeat("x", 10) + "\u0065\u0301" + `"`, cty.String, cty.StringVal("xxxxxxxxxx\u00e9")},
	} {
		got, err := state.Decode([]byte(c.json), c.ty)
		switch {
		case c.want == cty.NilVal:
			if err == nil {
				t.Errorf("%.60s: %#v", c.json, got)
			}
		case err != nil:
			t.Errorf("%.60s: %v", c.json, err)
		case !got.RawEquals(c.want):
			t.Errorf("%.60s: got %#v, want %#v", c.json, got, c.want)
		}
	}
}

func TestNewObjectTakesMarksOff(t *testing.T) {
	ty := cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.DynamicPseudoType})
	v := cty.ObjectVal(map[string]cty.Value{
		"a": cty.StringVal("x").Mark(value.Sensitive),
		"b": cty.TupleVal([]cty.Value{cty.StringVal("y").Mark(value.Hidden), cty.Zero.Mark(value.Deprecation{Source: "s"})}),
	})
	o, err := state.NewObject(v, ty)
	if err != nil {
		t.Fatal(err)
	}
	want := []cty.Path{cty.GetAttrPath("a"), cty.GetAttrPath("b").IndexInt(0)}
	if !slices.EqualFunc(o.Sensitive, want, func(a, b cty.Path) bool { return a.Equals(b) }) {
		t.Errorf("sensitive: %#v", o.Sensitive)
	}
	if o.Value.ContainsMarked() {
		t.Errorf("marks are left")
	}
	if got := string(o.JSON); got != `{"a":"x","b":{"value":["y",0],"type":["tuple",["string","number"]]}}` {
		t.Error(got)
	}
	for name, bad := range map[string]cty.Value{
		"ephemeral":  cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x").Mark(value.Ephemeral), "b": cty.True}),
		"unknown":    cty.ObjectVal(map[string]cty.Value{"a": cty.UnknownVal(cty.String), "b": cty.True}),
		"other type": cty.ObjectVal(map[string]cty.Value{"a": cty.True, "b": cty.True}),
		"no object":  cty.ListValEmpty(cty.String),
		"missing":    cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x")}),
	} {
		if _, err := state.NewObject(bad, ty); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestInstancesAreSorted(t *testing.T) {
	d := state.New().Edit()
	for _, a := range []string{`module.m[10].t.x`, `t.x["b"]`, `t.x[10]`, `module.m[2].t.x`, `t.x[2]`, `t.x`, `data.t.x`, `module.a.t.z`, `t.a`, `module.m.module.n.t.x`} {
		i, err := addr.ParseInstance(a)
		if err != nil {
			t.Fatal(err)
		}
		d.Apply(state.Change{Object: addr.Object{Instance: i}, New: &state.Object{JSON: []byte("{}")}})
	}
	var got []string
	for a := range d.Freeze().Instances() {
		got = append(got, a.String())
	}
	want := []string{`t.a`, `t.x`, `t.x[2]`, `t.x[10]`, `t.x["b"]`, `data.t.x`, `module.a.t.z`, `module.m.module.n.t.x`, `module.m[2].t.x`, `module.m[10].t.x`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNilStateIsEmpty(t *testing.T) {
	var s *state.State
	if !s.Empty() || !s.Equal(state.New()) || s.Sorted() != nil || s.Resource(addr.AbsResource{}) != nil {
		t.Error("a nil state is not empty")
	}
	if _, _, ok := s.Object(addr.Object{}); ok {
		t.Error("a nil state has an object")
	}
	if got := s.Edit().Freeze(); got == nil || !got.Empty() {
		t.Error("a nil state cannot be edited")
	}
}

func TestEqualLooksAtTheMeaningOfJSON(t *testing.T) {
	a := &state.Object{JSON: []byte(`{"a":"<","b":1}`)}
	b := &state.Object{JSON: []byte(`{"b":1,"a":"\u003c"}`)}
	c := &state.Object{JSON: []byte(`{"b":2,"a":"\u003c"}`)}
	if !a.Equal(b) || b.Equal(c) || a.Equal(nil) {
		t.Error("wrong")
	}
}

// filled returns a state with n instances, either in one resource or in n resources.
func filled(n int, one bool) *state.State {
	d := state.New().Edit()
	for i := range n {
		a := addr.Instance{Resource: addr.Resource{Type: "t", Name: "x"}, Key: addr.Int(i)}
		if !one {
			a = addr.Instance{Resource: addr.Resource{Type: "t", Name: fmt.Sprint(i)}}
		}
		d.Apply(state.Change{Object: addr.Object{Instance: a}, New: &state.Object{JSON: []byte(`{}`)}})
	}
	return d.Freeze()
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{100, 1000, 10000, 100000} {
		for _, one := range []bool{true, false} {
			b.Run(fmt.Sprintf("%d/one=%v", n, one), func(b *testing.B) {
				s := filled(n, one)
				changes := make([]state.Change, 0, n)
				for a, o := range s.Objects() {
					next := *o
					changes = append(changes, state.Change{Object: a, New: &next})
				}
				for b.Loop() {
					d := s.Edit()
					for _, c := range changes {
						d.Apply(c)
					}
					d.Freeze()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/change")
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	ty := cty.Object(map[string]cty.Type{"id": cty.String, "input": cty.DynamicPseudoType, "output": cty.DynamicPseudoType, "triggers_replace": cty.DynamicPseudoType})
	raw := []byte(`{"id":"0f5b9b4e-6f7e-4c42-9a5e-2d6a8c3f8f10","input":{"value":{"name":"server","size":3},"type":["object",{"name":"string","size":"number"}]},"output":null,"triggers_replace":null}`)
	b.Run("here", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := state.Decode(raw, ty); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cty", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ctyjson.Unmarshal(raw, ty); err != nil {
				b.Fatal(err)
			}
		}
	})
}
