package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// reservedVariables are the names with a meaning in module blocks.
var reservedVariables = []string{"source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals", "provider", "_"}

func decodeVariable(o *object) (*Variable, diag.List) {
	c, ds := kinds().variable.merge(o.parts)
	e := &errs{ds}
	v := &Variable{Name: o.key.a, At: c.head, Merged: mergedFrom(o.parts), Settings: c.args, Type: cty.DynamicPseudoType, Literal: true, Nullable: true}
	e.add(validName(v.Name, c.head, "variable"))
	if slices.Contains(reservedVariables, v.Name) {
		e.add(errorAt(diag.CodeConfigReservedVariable, c.head, "Invalid variable name",
			"The variable name %q is reserved, since it has a meaning inside module blocks. Choose another name.", v.Name))
	}
	v.Description = keep[string](e)(c.args["description"].constString())
	v.Sensitive = isTrue(keep[*bool](e)(c.args["sensitive"].constBool()))
	v.Ephemeral = isTrue(keep[*bool](e)(c.args["ephemeral"].constBool()))
	v.Const = keep[*bool](e)(c.args["const"].constBool())
	v.Deprecated = keep[string](e)(deprecation(c.args["deprecated"]))
	if b := keep[*bool](e)(c.args["nullable"].constBool()); b != nil {
		v.Nullable = *b
	}
	typeOK := true
	if s := c.args["type"]; s != nil {
		before := len(e.ds)
		e.add(s.explain(v.decodeType(s.Expr)))
		typeOK = !e.ds[before:].HasErrors()
	}
	if s := c.args["default"]; s != nil {
		e.add(v.decodeDefault(s, c.args["type"], typeOK))
	}
	e.add(v.decodeValidations(c))
	return v, e.ds
}

// DecodeVariable decodes a variable block outside of modules, such as in a test file.
func DecodeVariable(b *hcl.Block, layer *source.Layer) (*Variable, diag.List) {
	return decodeVariable(&object{
		key:   objectKey{kind: "variable", a: b.Labels[0]},
		parts: []part{{body: b.Body, layer: layer, head: b.DefRange, labels: b.Labels}},
	})
}

func isTrue(b *bool) bool { return b != nil && *b }

// deprecation decodes a deprecated argument, which must not be empty.
func deprecation(s *Setting) (string, diag.List) {
	text, ds := s.constString()
	if s != nil && !ds.HasErrors() && text == "" {
		ds = append(ds, s.explain(errorAt(diag.CodeConfigEmptyDeprecation, s.Expr.Range(), "Invalid deprecated value",
			"The deprecated argument must not be empty: say what to use instead."))...)
	}
	return text, ds
}

// decodeType decodes the type constraint with the defaults of optional attributes.
func (v *Variable) decodeType(x hcl.Expression) diag.List {
	t, ds := decodeType(x)
	if !ds.HasErrors() {
		v.Type, v.Defaults, v.Literal = t.ty, t.defaults, t.ty.IsPrimitiveType()
	}
	return ds
}

// constraintType is a decoded type constraint.
type constraintType struct {
	ty       cty.Type
	defaults *typeexpr.Defaults // of optional attributes; nil means none
}

// decodeType decodes the type argument of a variable or an output.
func decodeType(x hcl.Expression) (constraintType, diag.List) {
	inner, diags := native(x)
	if diags.HasErrors() {
		return constraintType{}, diag.FromHCL(diags)
	}
	if _, ok := unquoted(inner); ok {
		return constraintType{}, errorAt(diag.CodeConfigQuotedType, x.Range(), "Invalid quoted type constraints",
			"A type constraint must not be in quotes. Remove the quotes, and write map(string) for \"map\" and list(string) for \"list\".")
	}
	switch hcl.ExprAsKeyword(inner) {
	case "list":
		return constraintType{ty: cty.List(cty.DynamicPseudoType)}, nil
	case "map":
		return constraintType{ty: cty.Map(cty.DynamicPseudoType)}, nil
	}
	ty, defaults, diags := typeexpr.TypeConstraintWithDefaults(inner)
	return constraintType{ty, defaults}, diag.FromHCL(diags)
}

// decodeDefault converts the default to the type in force.
func (v *Variable) decodeDefault(s, typ *Setting, typeOK bool) diag.List {
	val, diags := s.Expr.Value(nil)
	if diags.HasErrors() {
		v.Default = cty.DynamicVal // the variable has a default, so it is not required
		return s.explain(diag.FromHCL(diags))
	}
	v.Default = val
	if !typeOK {
		return nil
	}
	if v.Defaults != nil && !val.IsNull() {
		val = v.Defaults.Apply(val)
	}
	converted, err := convert.Convert(val, v.Type)
	if err != nil {
		v.Default = cty.UnknownVal(v.Type)
		return unfitDefault(s, typ, err)
	}
	v.Default = converted
	if converted.IsNull() && !v.Nullable {
		return s.explain(errorAt(diag.CodeConfigInvalidDefault, s.Expr.Range(), "Invalid default value for variable",
			"A null default value is not valid when nullable=false."))
	}
	return s.explain(IgnoredAttributes(s.Expr, v.Type, "var."+v.Name))
}

func isOverridden(s *Setting) bool {
	return s != nil && s.Layer != nil && s.Layer.Kind == source.Override
}

// unfitDefault reports a default that does not conform to the type, at the later of the two
// positions.
func unfitDefault(s, typ *Setting, err error) diag.List {
	const code, summary = diag.CodeConfigInvalidDefault, "Invalid default value for variable"
	switch {
	case isOverridden(typ) && !isOverridden(s):
		return typ.explain(errorAt(code, typ.Expr.Range(), summary,
			"Overriding this variable's type constraint has made its default value invalid: %s.", err).Note(&s.Range, "the default is set here"))
	case isOverridden(s) && typ != nil && !isOverridden(typ):
		return s.explain(errorAt(code, s.Expr.Range(), summary,
			"The overridden default value for this variable is not compatible with the variable's type constraint: %s.", err).Note(&typ.Range, "the type is set here"))
	}
	ds := errorAt(code, s.Expr.Range(), summary, "This default value does not fit the variable's type constraint: %s.", err)
	if typ != nil {
		ds = ds.Note(&typ.Range, "the type is set here")
	}
	return s.explain(ds)
}

// decodeValidations decodes the validation blocks. Each condition must refer to the variable
// itself.
func (v *Variable) decodeValidations(c *content) (ds diag.List) {
	for _, parts := range c.blocks("validation") {
		r, _, more := checkRule(parts, "validation")
		ds = append(ds, more...)
		if r == nil {
			continue
		}
		v.Validations = append(v.Validations, r)
		refs := r.Condition.Variables()
		if len(refs) > 0 && !slices.ContainsFunc(refs, v.isReferredTo) {
			ds = append(ds, errorAt(diag.CodeConfigValidationReference, r.Condition.Range(), "Invalid variable validation condition",
				"The condition for variable %q must refer to var.%s, in order to test it.", v.Name, v.Name)...)
		}
	}
	return ds
}

func (v *Variable) isReferredTo(t hcl.Traversal) bool {
	if t.RootName() != "var" {
		return false
	}
	if len(t) < 2 {
		return true // a reference to all of var
	}
	switch step := t[1].(type) {
	case hcl.TraverseAttr:
		return step.Name == v.Name
	case hcl.TraverseIndex:
		return step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() && step.Key.AsString() == v.Name
	}
	return false
}

func decodeOutput(o *object) (*Output, diag.List) {
	c, ds := kinds().output.merge(o.parts)
	e := &errs{ds}
	out := &Output{Name: o.key.a, At: c.head, Merged: mergedFrom(o.parts), Settings: c.args, Type: cty.DynamicPseudoType}
	e.add(validName(out.Name, c.head, "output"))
	out.Value = keep[*Setting](e)(c.required("value"))
	if s := c.args["type"]; s != nil {
		t, ds := decodeType(s.Expr)
		if e.add(s.explain(ds)); !ds.HasErrors() {
			out.Type, out.Defaults = t.ty, t.defaults
		}
	}
	out.Description = keep[string](e)(c.args["description"].constString())
	out.Sensitive = isTrue(keep[*bool](e)(c.args["sensitive"].constBool()))
	out.Ephemeral = isTrue(keep[*bool](e)(c.args["ephemeral"].constBool()))
	out.Deprecated = keep[string](e)(deprecation(c.args["deprecated"]))
	out.DependsOn = keep[[]hcl.Traversal](e)(traversals(c.args["depends_on"]))
	out.Preconditions = keep[[]*Rule](e)(c.rules("precondition", nil, ""))
	for _, b := range c.blocks("postcondition") {
		e.add(errorAt(diag.CodeConfigOutputPostcondition, b[0].head, "Postconditions are not allowed",
			"An output value can have preconditions only: there is nothing after it that could be tested."))
	}
	return out, e.ds
}
