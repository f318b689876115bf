package schema_test

import (
	"fmt"
	"testing"

	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// The engine's operations on a schema for each instance, for a type with 20 attributes and no
// nested blocks, and for a type with a set of 1,000 blocks.
func BenchmarkInstance(b *testing.B) {
	flat := &schema.Block{Attributes: map[string]*schema.Attribute{"id": {Type: cty.String, Computed: true}, "pw": {Type: cty.String, Optional: true, Sensitive: true}}}
	for i := range 18 {
		flat.Attributes[fmt.Sprintf("a%d", i)] = &schema.Attribute{Type: cty.String, Optional: true}
	}
	config := flat.Empty().AsValueMap()
	config["a0"] = str("x")
	c := cty.ObjectVal(config)
	prior := flat.Empty().AsValueMap()
	prior["a0"], prior["id"] = str("y"), str("i")
	bench(b, "flat", flat, cty.ObjectVal(prior), c)

	set := &schema.Block{Blocks: map[string]*schema.NestedBlock{"tag": {Nesting: schema.Set, Block: &schema.Block{
		Attributes: map[string]*schema.Attribute{"k": {Type: cty.String, Required: true}, "id": {Type: cty.String, Computed: true}},
	}}}}
	var was, is []cty.Value
	for i := range 1000 {
		was = append(was, cty.ObjectVal(m{"k": str(fmt.Sprint(i)), "id": str("x")}))
		is = append(is, cty.ObjectVal(m{"k": str(fmt.Sprint(i + 1)), "id": null}))
	}
	bench(b, "set of 1000", set, cty.ObjectVal(m{"tag": cty.SetVal(was)}), cty.ObjectVal(m{"tag": cty.SetVal(is)}))
}

func bench(b *testing.B, name string, block *schema.Block, prior, config cty.Value) {
	null := cty.NullVal(block.ImpliedType())
	planned := block.SetUnknowns(block.ProposedNew(prior, config))
	for what, do := range map[string]func(){
		"propose create": func() { block.ProposedNew(null, config) },
		"propose update": func() { block.ProposedNew(prior, config) },
		"assert plan":    func() { schema.AssertPlanValid(block, prior, config, planned, false) },
		"assert result":  func() { schema.AssertObjectCompatible(block, planned, planned) },
		"sensitive":      func() { block.SensitivePaths(planned) },
		"unknowns":       func() { block.SetUnknowns(config) },
		"strip":          func() { block.StripWriteOnly(config) },
	} {
		b.Run(name+"/"+what, func(b *testing.B) {
			for b.Loop() {
				do()
			}
		})
	}
}
