// Package statetest generates random states for property tests.
//
// Main functions: State and Change. The one rule: it generates only states that a state
// file can represent, so that writing and reading one returns an equal state.
package statetest

import (
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"
)

// text generates normalized strings, as in the language.
var text = rapid.Map(
	rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b c", `q"uo\te`, "<&>", "ü\u2028", "${x}", "%{x}", "\n\x01"}), rapid.String()),
	func(s string) string { return cty.StringVal(s).AsString() },
)

// Value generates a wholly known value without marks.
func Value(t *rapid.T, depth int) cty.Value {
	kinds := 9
	if depth <= 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return cty.StringVal(text.Draw(t, "string"))
	case 1:
		return cty.NumberIntVal(rapid.Int64().Draw(t, "int"))
	case 2:
		return cty.MustParseNumberVal(rapid.SampledFrom([]string{"0", "-1.5", "1e30", "0.1", "12345678901234567890.125"}).Draw(t, "number"))
	case 3:
		return cty.BoolVal(rapid.Bool().Draw(t, "bool"))
	case 4:
		return cty.NullVal(rapid.SampledFrom([]cty.Type{cty.String, cty.Number, cty.DynamicPseudoType, cty.List(cty.Bool)}).Draw(t, "null"))
	case 5:
		n := rapid.IntRange(0, 3).Draw(t, "n")
		vs := make([]cty.Value, n)
		for i := range vs {
			vs[i] = Value(t, depth-1)
		}
		return cty.TupleVal(vs)
	case 6:
		vs := map[string]cty.Value{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			vs[text.Draw(t, "attr")] = Value(t, depth-1)
		}
		return cty.ObjectVal(vs)
	case 7:
		vs := map[string]cty.Value{"": cty.StringVal("x")}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			vs[text.Draw(t, "key")] = cty.StringVal(text.Draw(t, "elem"))
		}
		return cty.MapVal(vs)
	default:
		v := Value(t, depth-1)
		if rapid.Bool().Draw(t, "set") {
			return cty.SetVal([]cty.Value{v})
		}
		return cty.ListVal([]cty.Value{v, v})
	}
}

func key(t *rapid.T) addr.Key {
	switch rapid.IntRange(0, 2).Draw(t, "key kind") {
	case 0:
		return addr.Key{}
	case 1:
		return addr.Int(rapid.IntRange(0, 12).Draw(t, "index"))
	default:
		return addr.Str(text.Draw(t, "key"))
	}
}

// Instance generates the address of an instance, from a small set.
func Instance(t *rapid.T) addr.Instance {
	var m addr.ModuleInstance
	for range rapid.IntRange(0, 2).Draw(t, "modules") {
		m = m.Child(rapid.SampledFrom([]string{"m", "n"}).Draw(t, "call"), key(t))
	}
	r := addr.Resource{
		Mode: rapid.SampledFrom([]addr.Mode{addr.Managed, addr.Data}).Draw(t, "mode"),
		Type: rapid.SampledFrom([]string{"a_b", "a_c"}).Draw(t, "type"),
		Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"),
	}
	return addr.Instance{Module: m, Resource: r, Key: key(t)}
}

// provider returns the provider of an instance. It depends only on the resource, since all
// instances of a resource have the same provider.
func provider(t *rapid.T, a addr.Instance) addr.ProviderConfig {
	p := addr.ProviderConfig{Module: a.Module.Static(), Provider: addr.DefaultProvider(a.Resource.Type)}
	p.Provider.Type = "p"
	if a.Resource.Name == "y" {
		p.Alias = "al"
		if rapid.Bool().Draw(t, "keyed") {
			p.Key = addr.Str(text.Draw(t, "provider key"))
		}
	}
	return p
}

// Object generates an object.
func Object(t *rapid.T) *state.Object {
	if rapid.IntRange(0, 9).Draw(t, "flat") == 0 {
		return &state.Object{Flat: map[string]string{"id": text.Draw(t, "id"), "l.#": "0"}}
	}
	v := cty.ObjectVal(map[string]cty.Value{"a": Value(t, 2), "b": Value(t, 0)})
	o, err := state.NewObject(v, rapid.SampledFrom([]cty.Type{v.Type(), cty.Object(map[string]cty.Type{"a": cty.DynamicPseudoType, "b": cty.DynamicPseudoType})}).Draw(t, "as"))
	if err != nil {
		t.Fatal(err)
	}
	o.Tainted = rapid.Bool().Draw(t, "tainted")
	o.Replace = rapid.SampledFrom([]string{"", "", state.ReplaceRequested, state.ReplaceTriggered}).Draw(t, "replace")
	o.SchemaVersion = int64(rapid.IntRange(0, 3).Draw(t, "version"))
	for range rapid.IntRange(0, 2).Draw(t, "sensitive") {
		o.Sensitive = append(o.Sensitive, cty.GetAttrPath("a").Index(Value(t, 0)))
	}
	for _, p := range o.Sensitive {
		if k := p[1].(cty.IndexStep).Key; k.IsNull() {
			p[1] = cty.GetAttrStep{Name: text.Draw(t, "step")}
		}
	}
	if rapid.Bool().Draw(t, "has private") {
		o.Private = []byte(text.Draw(t, "private") + "x")
	}
	for range rapid.IntRange(0, 2).Draw(t, "dependencies") {
		o.Dependencies = append(o.Dependencies, Instance(t).Config())
	}
	o.CreateBeforeDestroy = rapid.Bool().Draw(t, "cbd")
	o.SkipDestroy = rapid.Bool().Draw(t, "skip")
	if rapid.Bool().Draw(t, "has identity") {
		o.Identity = []byte(`{"id":"x"}`)
		o.IdentityVersion = int64(rapid.IntRange(0, 3).Draw(t, "identity version"))
	}
	return o
}

// Change generates a change. One in four removes an object.
func Change(t *rapid.T) state.Change {
	c := state.Change{Object: addr.Object{Instance: Instance(t)}}
	if rapid.IntRange(0, 3).Draw(t, "deposed") == 0 {
		c.Object.Deposed = addr.DeposedKey(fmt.Sprintf("%08x", rapid.IntRange(0, 3).Draw(t, "deposed key")))
	}
	if rapid.IntRange(0, 3).Draw(t, "remove") > 0 {
		c.New = Object(t)
		c.Provider = provider(t, c.Object.Instance)
	}
	return c
}

// State generates a state.
func State(t *rapid.T) *state.State {
	d := (&state.State{Lineage: text.Draw(t, "lineage"), Serial: rapid.Uint64().Draw(t, "serial")}).Edit()
	for range rapid.IntRange(0, 8).Draw(t, "changes") {
		d.Apply(Change(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "outputs") {
		d.SetOutput(text.Draw(t, "output"), &state.Output{Value: Value(t, 2), Sensitive: rapid.Bool().Draw(t, "sensitive"), Deprecated: text.Draw(t, "deprecated")})
	}
	var cs []state.CheckResult
	for i := range rapid.IntRange(0, 2).Draw(t, "checks") {
		c := state.CheckResult{Kind: state.CheckOutput, Addr: fmt.Sprintf("output.o%d", 9-i), Status: state.CheckFail}
		if rapid.Bool().Draw(t, "objects") {
			c.Objects = []state.CheckObject{{Addr: "b", Status: state.CheckFail, Failures: []string{text.Draw(t, "failure")}}, {Addr: "a", Status: state.CheckPass}}
		}
		cs = append(cs, c)
	}
	d.SetChecks(cs)
	return d.Freeze()
}
