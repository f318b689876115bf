package view

import (
	"bytes"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// TestMismatch checks values that do not fit the schema, as in a plan made with another
// version of the provider.
func TestMismatch(t *testing.T) {
	inner := &schema.Block{Attributes: map[string]*schema.Attribute{"k": {Type: cty.String, Sensitive: true}}}
	obj := &schema.Object{Nesting: schema.List, Attributes: map[string]*schema.Attribute{"k": {Type: cty.String, Sensitive: true}}}
	attrs := map[string]*schema.Attribute{}
	blocks := map[string]*schema.NestedBlock{}
	for name, ty := range map[string]cty.Type{"s": cty.String, "n": cty.Number, "l": cty.List(cty.String), "set": cty.Set(cty.String), "m": cty.Map(cty.String), "o": cty.Object(map[string]cty.Type{"x": cty.String}), "t": cty.Tuple([]cty.Type{cty.String})} {
		attrs[name] = &schema.Attribute{Type: ty, Optional: true}
	}
	attrs["nested"] = &schema.Attribute{Type: obj.ImpliedType(), Nested: obj, Optional: true}
	for name, n := range map[string]schema.Nesting{"single": schema.Single, "list": schema.List, "bset": schema.Set, "map": schema.Map} {
		blocks[name] = &schema.NestedBlock{Nesting: n, Block: inner}
	}
	schemas := fixedSchemas{"managed.t": {Block: &schema.Block{Attributes: attrs, Blocks: blocks}}}
	odd := []cty.Value{
		cty.StringVal("x"), cty.Zero, cty.True, cty.ListVal([]cty.Value{cty.StringVal("a")}), cty.SetVal([]cty.Value{cty.Zero}),
		cty.MapVal(map[string]cty.Value{"k": cty.True}), cty.ObjectVal(map[string]cty.Value{"z": cty.StringVal("a")}), cty.EmptyTupleVal,
		cty.DynamicVal, cty.NullVal(cty.String), cty.UnknownVal(cty.List(cty.String)),
	}
	for i, a := range odd {
		for j, b := range odd {
			values := func(v cty.Value) cty.Value {
				parts := map[string]cty.Value{"extra": v}
				for name := range attrs {
					parts[name] = v
				}
				for name := range blocks {
					parts[name] = v
				}
				delete(parts, "s")
				return cty.ObjectVal(parts)
			}
			if !a.IsWhollyKnown() {
				continue
			}
			at := addr.Instance{Resource: addr.Resource{Type: "t", Name: "x"}}
			p := &plan.Plan{Changes: []*plan.Change{{Addr: at, Prev: at, Op: plan.Update, Before: values(a), After: values(b)}}}
			var out bytes.Buffer
			if err := Plan(&out, Style{}, p, schemas, false); err != nil || !strings.Contains(out.String(), "t.x will be updated") {
				t.Errorf("%d to %d: %v\n%s", i, j, err, out.String())
			}
			if _, err := planjson.Plan(planjson.Input{Plan: p, Schemas: schemas}); err != nil {
				t.Errorf("%d to %d: %v", i, j, err)
			}
		}
	}
}
