package schema_test

import (
	"fmt"

	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Coerce makes an object of the type of a block: arguments that are missing become null.
func Example() {
	b := &schema.Block{Attributes: map[string]*schema.Attribute{
		"name": {Type: cty.String, Required: true},
		"size": {Type: cty.Number, Optional: true},
	}}
	v, err := b.Coerce(cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("a")}))
	fmt.Println(v.GetAttr("name").AsString(), v.GetAttr("size").IsNull(), err)
	// Output: a true <nil>
}
