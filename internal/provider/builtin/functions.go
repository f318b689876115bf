package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

func functions() map[string]*schema.Function {
	return map[string]*schema.Function{
		"decode_tfvars": {
			Params:      []schema.Parameter{{Name: "content", Type: cty.String, Description: "The text of a variable definitions file."}},
			Return:      cty.DynamicPseudoType,
			Summary:     "Decode a variable definitions file into an object",
			Description: "decode_tfvars reads the text of a variable definitions file and returns an object with an attribute for each variable.",
		},
		"encode_expr": {
			Params:      []schema.Parameter{{Name: "expr", Type: cty.DynamicPseudoType, Description: "The value to write."}},
			Return:      cty.String,
			Summary:     "Write a value as an expression",
			Description: "encode_expr writes any value as an expression of the configuration language.",
		},
		"encode_tfvars": {
			Params:      []schema.Parameter{{Name: "input", Type: cty.DynamicPseudoType, Description: "An object whose attribute names are identifiers."}},
			Return:      cty.String,
			Summary:     "Write an object as a variable definitions file",
			Description: "encode_tfvars writes an object as the text of a variable definitions file, one variable for each attribute.",
		},
	}
}

// Functions returns the functions of the schema.
func (p *Provider) Functions(context.Context) (map[string]*schema.Function, diag.List) {
	return plainSchema().Functions, p.check()
}

// CallFunction calls one of the provider's functions.
func (p *Provider) CallFunction(_ context.Context, name string, args []cty.Value) (cty.Value, error) {
	if p.closed.Load() {
		return cty.NilVal, fmt.Errorf("the built-in provider has been closed")
	}
	f := plainSchema().Functions[name]
	if f == nil {
		return cty.NilVal, fmt.Errorf("the built-in provider has no function named %q", name)
	}
	if len(args) != 1 {
		return cty.NilVal, fmt.Errorf("the function %s takes one argument, not %d", name, len(args))
	}
	if !args[0].IsWhollyKnown() {
		return cty.UnknownVal(f.Return), nil
	}
	if args[0].IsNull() {
		return cty.NilVal, &provider.ArgError{Msg: "argument must not be null"}
	}
	switch name {
	case "decode_tfvars":
		return decodeTfvars(args[0].AsString())
	case "encode_tfvars":
		return encodeTfvars(args[0])
	default:
		return cty.StringVal(string(hclwrite.Format(hclwrite.TokensForValue(args[0]).Bytes()))), nil
	}
}

func encodeTfvars(v cty.Value) (cty.Value, error) {
	if !v.Type().IsObjectType() {
		return cty.NilVal, &provider.ArgError{Msg: "invalid input: must be an object."}
	}
	parts := v.AsValueMap()
	names := make([]string, 0, len(parts))
	for name := range parts {
		if !hclsyntax.ValidIdentifier(name) {
			return cty.NilVal, &provider.ArgError{Msg: fmt.Sprintf("invalid input: object key: %s - must be a valid identifier", name)}
		}
		names = append(names, name)
	}
	slices.Sort(names)
	f := hclwrite.NewEmptyFile()
	for _, name := range names {
		f.Body().SetAttributeValue(name, parts[name])
	}
	return cty.StringVal(string(f.Bytes())), nil
}

func decodeTfvars(text string) (cty.Value, error) {
	f, diags := hclsyntax.ParseConfig([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, tfvarsError(diags)
	}
	attrs, diags := f.Body.JustAttributes()
	if diags.HasErrors() {
		return cty.NilVal, tfvarsError(diags)
	}
	vals := make(map[string]cty.Value, len(attrs))
	for name, a := range attrs {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			return cty.NilVal, tfvarsError(diags)
		}
		vals[name] = v
	}
	return cty.ObjectVal(vals), nil
}

func tfvarsError(diags hcl.Diagnostics) error {
	var lines []string
	for _, d := range diags {
		text := d.Summary + "; " + d.Detail
		if d.Subject != nil {
			text = fmt.Sprintf("line %d, column %d: ", d.Subject.Start.Line, d.Subject.Start.Column) + text
		}
		lines = append(lines, text)
	}
	return &provider.ArgError{Msg: "the text is not that of a variable definitions file: " + strings.Join(lines, "; ")}
}
