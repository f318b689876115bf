// Package inputs converts the inputs of a unit to values of its module's variables.
//
// Main functions: Of, ForVariable and Missing. The one rule: every value that Terragrunt can pass
// through the environment is accepted here too.
package inputs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Of returns the inputs of a unit as values of the variables that a module declares. waits
// contains the inputs whose values contain an unknown.
func Of(t *demand.Task, u *unit.Unit, declared map[string]*config.Variable) (values map[string]engine.InputValue, waits []*unit.Setting, ds diag.List) {
	values = map[string]engine.InputValue{}
	settings, ds := u.Inputs(t, func(name string) bool { return declared[name] != nil })
	for _, s := range settings {
		if s.Name == "" { // the whole inputs attribute is unknown
			for name := range declared {
				values[name] = engine.InputValue{Value: cty.DynamicVal, At: s.At}
			}
			waits = append(waits, s)
			continue
		}
		if !s.Value.IsWhollyKnown() {
			waits = append(waits, s)
		}
		in, more := ForVariable(declared[s.Name], s.Value, s.At, s.Layer)
		ds = append(ds, more...)
		values[s.Name] = in
	}
	return values, waits, ds
}

// Override replaces inputs by values from other sources, and returns the waits that remain.
func Override(values map[string]engine.InputValue, waits []*unit.Setting, given map[string]engine.InputValue) []*unit.Setting {
	maps.Copy(values, given)
	return slices.DeleteFunc(waits, func(w *unit.Setting) bool {
		_, other := given[w.Name]
		return other
	})
}

// Optional returns the variables of a module for unit.Unit.CheckInputs, with none of them
// required. Missing reports missing values, since it also considers values from other sources.
func Optional(declared map[string]*config.Variable) map[string]bool {
	out := make(map[string]bool, len(declared))
	for name := range declared {
		out[name] = false
	}
	return out
}

// ForVariable converts an input to the value of a variable. The result is the one that passing
// the input through the environment gives. Text for a variable that is not primitive is parsed as
// an expression. A value that is not primitive becomes JSON text if the variable is a string or
// has no type, and other values become text if it has no type. In the environment, lists, sets
// and maps are JSON, so a variable of type any gets tuples and objects.
func ForVariable(v *config.Variable, val cty.Value, at *source.Range, layer *source.Layer) (engine.InputValue, diag.List) {
	in := engine.InputValue{Value: val, At: at}
	if layer != nil {
		in.From = *layer
	}
	bare, marks := val.Unmark()
	if bare.Type() == cty.Number {
		val = value.Structural(val, true)
		in.Value = val
		bare, _ = val.Unmark()
	}
	if v.Literal && v.Type == cty.DynamicPseudoType && bare.Type() != cty.String && (bare.Type().IsPrimitiveType() || !bare.IsKnown()) {
		in.Value = asText(bare).WithMarks(marks)
		return in, nil
	}
	if !v.Literal && v.Type != cty.NilType && bare.Type() != cty.String {
		in.Value = structural(v, val)
		bare, _ = in.Value.Unmark()
	}
	if !bare.IsKnown() || bare.IsNull() {
		return in, nil
	}
	switch {
	case v.Literal && (v.Type == cty.DynamicPseudoType || v.Type == cty.String) && !bare.Type().IsPrimitiveType():
		return jsonText(v, in)
	case !v.Literal && bare.Type() == cty.String && diag.TooDeep("", []byte(bare.AsString())) == nil:
		parsed, why := parseText(bare.AsString())
		if why != "" {
			why = fmt.Sprintf(" Since the variable is not a string, Terrace reads this text as an expression, and that fails: %s.", why)
			return in, fits(v, in, why)
		}
		in.Value = parsed.WithMarks(marks)
	}
	return in, fits(v, in, "")
}

// parseText returns the value of a text for a variable whose type is not string. References in the
// text cannot be resolved, so ${…} is kept as it is written. why is the reason if the text is not
// an expression.
func parseText(text string) (v cty.Value, why string) {
	escaped := escape(text, '$')
	for i, one := range []string{escaped, text, escape(escaped, '%')} {
		x, diags := hclsyntax.ParseExpression([]byte(one), "", hcl.InitialPos)
		if !diags.HasErrors() {
			v, diags = x.Value(nil)
		}
		if !diags.HasErrors() {
			return v, ""
		}
		if i == 0 {
			why = diags.Errs()[0].(*hcl.Diagnostic).Summary //nolint:errorlint,forcetypeassert // Errs wraps nothing
		}
	}
	return cty.DynamicVal, why
}

// escape doubles the sign that begins each sequence such as ${ in a text, unless it is already
// doubled.
func escape(text string, sign byte) string {
	var b strings.Builder
	for i := range len(text) {
		if text[i] == sign && i+1 < len(text) && text[i+1] == '{' && (i == 0 || text[i-1] != sign) {
			b.WriteByte(sign)
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// structural returns an input for a variable whose type is not primitive, with the types that
// JSON gives it.
func structural(v *config.Variable, val cty.Value) cty.Value {
	concrete := !v.Type.HasDynamicTypes()
	if concrete && val.Type().Equals(v.Type) {
		return val
	}
	return value.Structural(val, concrete)
}

// asText returns a number or boolean as text, as in the environment, for a variable without a
// type. An unknown value becomes an unknown string.
func asText(v cty.Value) cty.Value {
	if v.IsKnown() {
		if text, err := value.Convert(v, cty.String); err == nil {
			return text
		}
	}
	return cty.UnknownVal(cty.String)
}

// jsonText returns a value that is not primitive as JSON text, for a string variable or one
// without a type.
func jsonText(v *config.Variable, in engine.InputValue) (engine.InputValue, diag.List) {
	bare, paths := in.Value.UnmarkDeepWithPaths()
	if !bare.IsWhollyKnown() {
		in.Value = cty.UnknownVal(cty.String)
		return in, nil
	}
	b, err := ctyjson.Marshal(bare, bare.Type())
	if err != nil {
		return in, diag.Errorf(diag.CodeEvalBadInput, in.At, "Invalid value for input variable", "The input %q cannot be written as JSON: %s.", v.Name, err)
	}
	text := cty.StringVal(string(b))
	for _, p := range paths {
		text = text.WithMarks(p.Marks)
	}
	in.Value = text
	kind := "has no type"
	if v.Type == cty.String {
		kind = "is a string"
	}
	ds := diag.Warnf(diag.CodeEstateJsonInput, in.At, "Input given as JSON text", "The variable %q of the module %s, so it gets this value as JSON text, as it always did. Give the variable a type that fits to have it as a value.", v.Name, kind).Note(&v.At, "the variable is declared here")
	return in, ds
}

// fits returns an error if the value cannot be converted to the variable's type. why is the
// reason why a text was not parsed, as a sentence, or "".
func fits(v *config.Variable, in engine.InputValue, why string) diag.List {
	if v.Type == cty.NilType || v.Defaults == nil && always(in.Value.Type(), v.Type) {
		return nil
	}
	bare, _ := in.Value.UnmarkDeep()
	if v.Defaults != nil && !bare.IsNull() && bare.IsKnown() {
		bare = v.Defaults.Apply(bare)
	}
	_, err := value.Convert(bare, v.Type)
	if err == nil {
		return nil
	}
	return diag.Errorf(diag.CodeEstateInputType, in.At, "Invalid value for input variable", "The input %q does not fit the type of the module's variable: %s.%s", v.Name, describe(err), why).Note(&v.At, "the variable is declared here")
}

// always reports whether every value of a type can be converted to another type. false means that some may not.
func always(ty, want cty.Type) bool {
	switch {
	case ty == cty.DynamicPseudoType:
		return false
	case want == cty.String:
		return ty.IsPrimitiveType()
	case want.IsPrimitiveType():
		return ty == want
	case want.IsMapType() && ty.IsObjectType():
		for _, el := range ty.AttributeTypes() {
			if !always(el, want.ElementType()) {
				return false
			}
		}
		return true
	case want.IsMapType() && ty.IsMapType(), want.IsListType() && ty.IsListType():
		return always(ty.ElementType(), want.ElementType())
	case want.IsListType() && ty.IsTupleType():
		return !slices.ContainsFunc(ty.TupleElementTypes(), func(el cty.Type) bool { return !always(el, want.ElementType()) })
	}
	return false
}

func describe(err error) string {
	if pe, ok := err.(cty.PathError); ok && len(pe.Path) > 0 { //nolint:errorlint // cty returns it unwrapped
		return fmt.Sprintf("%s (at %s)", pe.Error(), pathText(pe.Path))
	}
	return err.Error()
}

func pathText(p cty.Path) string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + s.Name)
		case cty.IndexStep:
			if s.Key.Type() == cty.String {
				fmt.Fprintf(&b, "[%q]", s.Key.AsString())
			} else if s.Key.Type() == cty.Number {
				b.WriteString("[" + s.Key.AsBigFloat().String() + "]")
			}
		}
	}
	return b.String()
}

// Missing returns errors about required variables of a module without a value. Their source range
// is the unit file at path.
func Missing(unitName, path string, declared map[string]*config.Variable, values map[string]engine.InputValue) diag.List {
	var ds diag.List
	for _, v := range engine.Missing(values, declared) {
		at := &source.Range{Filename: path, Start: hcl.InitialPos, End: hcl.InitialPos}
		more := diag.Errorf(diag.CodeEstateMissingInput, at, "Missing input", "The module's variable %q is required, and neither the inputs of the unit %s nor anything else gives it a value.", v.Name, unitName).Note(&v.At, "the variable is declared here")
		ds = append(ds, more...)
	}
	return ds
}
