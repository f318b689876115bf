package funcs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// attempts returns try and can, which receive expressions instead of values. They catch
// evaluation errors. References that are invalid for all values are reported when the
// evaluation context is created. Each expression is evaluated once in a call, so that nesting
// causes no additional cost.
func attempts() family {
	return family{
		"can": function.New(&function.Spec{
			Description: "Tells whether an expression can be evaluated without an error.",
			Params:      []function.Parameter{{Name: "expression", Type: customdecode.ExpressionClosureType}},
			Type:        function.StaticReturnType(cty.Bool),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				v, ds := customdecode.ExpressionClosureFromVal(args[0]).Value()
				switch {
				case ds.HasErrors():
					return cty.False, nil
				case !v.IsWhollyKnown():
					return cty.UnknownVal(cty.Bool), nil // it may fail when it is known
				}
				return cty.True, nil
			},
		}),
		"try": function.New(&function.Spec{
			Description: "Returns the value of the first of its expressions that can be evaluated without an error.",
			VarParam:    &function.Parameter{Name: "expressions", Type: customdecode.ExpressionClosureType},
			Type:        function.StaticReturnType(cty.DynamicPseudoType),
			Impl:        func(args []cty.Value, _ cty.Type) (cty.Value, error) { return try(args) },
		}),
	}
}

func try(args []cty.Value) (cty.Value, error) {
	if len(args) == 0 {
		return cty.NilVal, errors.New("at least one argument is required")
	}
	var all hcl.Diagnostics
	for _, arg := range args {
		v, ds := customdecode.ExpressionClosureFromVal(arg).Value()
		all = append(all, ds...)
		switch {
		case ds.HasErrors():
			continue
		case !v.IsWhollyKnown():
			// When the value is known, the expression may fail. The result is then that of
			// another expression, which may have another type.
			_, marks := v.Unmark()
			return cty.DynamicVal.WithMarks(marks), nil
		}
		return v, nil
	}
	var b strings.Builder
	b.WriteString("no expression succeeded:\n")
	for _, d := range all {
		if d.Severity != hcl.DiagError {
			continue
		}
		b.WriteString("- " + d.Summary)
		if d.Subject != nil {
			fmt.Fprintf(&b, " (at %s)", d.Subject)
		}
		b.WriteString("\n  " + strings.ReplaceAll(d.Detail, "\n", "\n  ") + "\n")
	}
	b.WriteString("\nAt least one expression must produce a successful result")
	return cty.NilVal, errors.New(b.String())
}
