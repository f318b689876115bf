package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// inputValue converts a given value by the variable's declaration. For primitive and untyped
// variables the text is the value itself. Otherwise it is an expression without references.
// This is OpenTofu's rule for the command line and the environment.
func inputValue(v *config.Variable, in InputValue) (eval.Input, diag.List) {
	out := eval.Input{Value: in.Value, At: in.At, From: describeSource(v.Name, in.From)}
	if in.Text == nil {
		return out, nil
	}
	if v.Literal {
		out.Value = cty.StringVal(*in.Text)
		return out, nil
	}
	file := "<value for var." + v.Name + ">"
	if ds := diag.TooDeep(file, []byte(*in.Text)); ds != nil {
		out.Value = cty.DynamicVal
		return out, diag.Errorf(diag.CodeEvalBadInput, &v.At, "Invalid value for input variable", "The value of the variable %q, given by %s, is nested too deeply.", v.Name, out.From)
	}
	x, diags := hclsyntax.ParseExpression([]byte(*in.Text), file, hcl.InitialPos)
	if !diags.HasErrors() {
		var more hcl.Diagnostics
		out.Value, more = x.Value(nil)
		diags = append(diags, more...)
	}
	if diags.HasErrors() {
		out.Value = cty.DynamicVal
		return out, diag.Errorf(diag.CodeEvalBadInput, &v.At, "Invalid value for input variable", "The value of the variable %q, given by %s, is not a valid expression: %s The variable's type makes its value an expression: strings need quotes, lists brackets and maps braces.", v.Name, out.From, diag.FromValues([]byte(*in.Text), diags)[0].Detail).Note(&v.At, "the variable is declared here")
	}
	return out, nil
}

// VariableValue returns the value of a variable that is declared outside of the configuration, such as
// in a test file: the given value, converted by the declaration.
func VariableValue(v *config.Variable, in InputValue) (cty.Value, diag.List) {
	got, ds := inputValue(v, in)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	val := got.Value
	if v.Defaults != nil && !val.IsNull() {
		val = value.WithDefaults(v.Defaults.Apply, val)
	}
	out, err := value.Convert(val, v.Type)
	switch {
	case err != nil:
		return cty.DynamicVal, diag.Errorf(diag.CodeEvalBadInput, &v.At, "Invalid value for input variable", "The value of the variable %q is not suitable: %s.", v.Name, lang.ErrorText(err))
	case !v.Nullable && out.IsKnown() && out.IsNull():
		return cty.DynamicVal, diag.Errorf(diag.CodeEvalNullVariable, &v.At, "Required variable not set", "The variable %q may not be set to null.", v.Name)
	}
	return out, nil
}

// describeSource returns the source of a variable's value in words.
func describeSource(name string, l source.Layer) string {
	switch l.Kind {
	case source.Environment:
		if l.Name != "" {
			return "the environment variable " + l.Name
		}
		return "the environment variable TF_VAR_" + name
	case source.Flag:
		return "a -var option on the command line"
	case source.VarFile:
		return "a variable definitions file"
	case source.Prompt:
		return "the answer to a prompt"
	default:
		return ""
	}
}

func systemClock() time.Time { return time.Now() }

// inputsOrUnknown is like inputs, with unknown values for required variables that have none.
func (e *Engine) inputsOrUnknown(values map[string]InputValue) (map[string]eval.Input, diag.List) {
	out, ds := e.inputs(values)
	if ds.HasErrors() {
		return nil, ds
	}
	for _, v := range Missing(values, e.tree.Root.Config.Variables) {
		out[v.Name] = eval.Input{Value: cty.UnknownVal(v.Type.WithoutOptionalAttributesDeep())}
	}
	return out, ds
}

// Missing returns the required variables of a module that have no value, sorted by name.
func Missing(values map[string]InputValue, declared map[string]*config.Variable) []*config.Variable {
	var out []*config.Variable
	for name, d := range declared {
		if _, ok := values[name]; !ok && d.Required() {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b *config.Variable) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
