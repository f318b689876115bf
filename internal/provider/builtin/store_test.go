package builtin

import (
	"testing"

	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// block returns a store block. input is that of the configuration; in state it is null.
func block(input, output, secret, version cty.Value, sensitive, replace bool) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"input": input, "output": output, "sensitive_output": secret, "version": version,
		"sensitive": cty.BoolVal(sensitive), "replace": cty.BoolVal(replace),
	})
}

func TestStore(t *testing.T) {
	unknown := cty.UnknownVal(cty.String)
	none := cty.NullVal(storeImplied().AttributeType("store"))
	one, two := cty.NumberIntVal(1), cty.NumberIntVal(2)
	tests := []struct {
		name          string
		before, given cty.Value // store blocks in state and in the configuration
		want          cty.Value
		replace       bool
	}{
		{"none", none, none, none, false},
		{"new", none, block(str("a"), nul, nul, nul, false, true), block(nul, unknown, nul, nul, false, true), false},
		{"same", block(nul, str("a"), nul, nul, false, true), block(str("a"), nul, nul, nul, false, true), block(nul, str("a"), nul, nul, false, true), false},
		{"other", block(nul, str("a"), nul, nul, false, false), block(str("b"), nul, nul, nul, false, false), block(nul, unknown, nul, nul, false, false), false},
		{"other type", block(nul, str("a"), nul, nul, false, false), block(one, nul, nul, nul, false, false), block(nul, cty.UnknownVal(cty.Number), nul, nul, false, false), false},
		{"unknown", block(nul, str("a"), nul, nul, false, false), block(unknown, nul, nul, nul, false, false), block(nul, unknown, nul, nul, false, false), false},
		{"null", block(nul, str("a"), nul, nul, false, false), block(nul, nul, nul, nul, false, false), block(nul, nul, nul, nul, false, false), false},
		{"replaced", block(nul, str("a"), nul, nul, false, true), block(str("b"), nul, nul, nul, false, true), block(nul, unknown, nul, nul, false, true), true},
		{"secret replaced", block(nul, nul, str("a"), nul, true, true), block(str("b"), nul, nul, nul, true, true), block(nul, nul, unknown, nul, true, true), true},
		{"becomes sensitive", block(nul, str("a"), nul, nul, false, true), block(str("a"), nul, nul, nul, true, true), block(nul, nul, str("a"), nul, true, true), false},
		{"same version", block(nul, str("a"), nul, one, false, false), block(str("b"), nul, nul, one, false, false), block(nul, str("a"), nul, one, false, false), false},
		{"other version", block(nul, str("a"), nul, one, false, false), block(str("b"), nul, nul, two, false, false), block(nul, unknown, nul, two, false, false), false},
		{"removed", block(nul, str("a"), nul, nul, false, true), none, none, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := &Provider{store: true}
			prior := object(str("1"), nul, nul, nul, test.before)
			config := object(cty.NullVal(cty.String), nul, nul, nul, test.given)
			req := provider.PlanRequest{Type: dataType, Prior: prior, Proposed: object(str("1"), nul, nul, nul, test.given), Config: config}
			resp, ds := p.Plan(t.Context(), req)
			if len(ds) > 0 {
				t.Fatal(ds.Err())
			}
			if got := resp.Planned.GetAttr("store"); !got.RawEquals(test.want) {
				t.Errorf("planned %#v\nwant %#v", got, test.want)
			}
			if got := len(resp.RequiresReplace) > 0; got != test.replace {
				t.Errorf("replace %t, want %t", got, test.replace)
			}
			applied, ds := p.Apply(t.Context(), provider.ApplyRequest{Type: dataType, Prior: prior, Planned: resp.Planned, Config: config})
			if len(ds) > 0 {
				t.Fatal(ds.Err())
			}
			if !applied.State.IsWhollyKnown() && test.given.IsWhollyKnown() {
				t.Errorf("applied %#v", applied.State)
			}
			if s := applied.State.GetAttr("store"); !s.IsNull() && !s.GetAttr("input").IsNull() {
				t.Errorf("the state contains the write-only argument: %#v", s)
			}
		})
	}
}
