package hclnative_test

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/zclconf/go-cty/cty"
)

const text = `region = "eu"

server "web" {
  name = "web-${region}"
}
`

// A file is an ordinary hcl.Body: the caller decodes it with a schema and evaluates expressions. An
// expression is built from the text when it is requested.
func Example() {
	body, diags := hclnative.Parse([]byte(text), "servers.hcl")
	if diags.HasErrors() {
		fmt.Println(diags)
		return
	}
	content, diags := body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "region"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "server", LabelNames: []string{"name"}}},
	})
	region, more := content.Attributes["region"].Expr.Value(nil)
	diags = append(diags, more...)
	for _, b := range content.Blocks {
		attrs, more := b.Body.JustAttributes()
		diags = append(diags, more...)
		name, more := attrs["name"].Expr.Value(&hcl.EvalContext{Variables: map[string]cty.Value{"region": region}})
		diags = append(diags, more...)
		fmt.Println(b.Labels[0], name.AsString(), attrs["name"].Range)
	}
	fmt.Println(diags.HasErrors())
	// Output:
	// web web-eu servers.hcl:4,3-25
	// false
}

// Scan finds the blocks and arguments with their ranges, without building expressions.
func ExampleScan() {
	file, ok := hclnative.Scan([]byte(text), "servers.hcl")
	if !ok {
		_, diags := hclnative.Parse([]byte(text), "servers.hcl") // returns the errors
		fmt.Println(diags)
		return
	}
	server := file.Body.Blocks[0]
	fmt.Println(server.Type, server.Labels, server.DefRange(), server.Body.Lookup("name") != nil)
	fmt.Println(file.Update([]byte(text + "zone = 1\n")))
	_, ok = hclnative.Scan([]byte(`server "web" {`), "servers.hcl")
	fmt.Println(ok)
	// Output:
	// server [web] servers.hcl:3,1-13 true
	// true
	// false
}
