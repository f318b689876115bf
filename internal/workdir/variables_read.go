package workdir

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/zclconf/go-cty/cty"
)

// ReadVariable is a value as it was given, before it is converted to the variable's
// type: text is the value itself for primitive and untyped variables, else an
// expression without references.
func ReadVariable(d *config.Variable, in engine.InputValue) (cty.Value, diag.List) {
	if in.Text == nil {
		return in.Value, nil
	}
	if d.Literal {
		return cty.StringVal(*in.Text), nil
	}
	if ds := diag.TooDeep("<value for var."+d.Name+">", []byte(*in.Text)); ds != nil {
		return cty.DynamicVal, ds
	}
	x, diags := hclsyntax.ParseExpression([]byte(*in.Text), "<value for var."+d.Name+">", hcl.InitialPos)
	if diags.HasErrors() {
		return cty.DynamicVal, diag.FromValues([]byte(*in.Text), diags)
	}
	v, diags := x.Value(nil)
	return v, diag.FromValues([]byte(*in.Text), diags)
}
