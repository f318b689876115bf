package workdir

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/zclconf/go-cty/cty"
)

// ReadVariable returns the value of a variable before it is converted to the variable's type. The text
// of an environment variable, flag or answer is the value itself if the variable is primitive or
// untyped. Otherwise the text is parsed as an expression without references.
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
