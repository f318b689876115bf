package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/terrace-iac/terrace/internal/base/value"
)

// marking returns the functions that set, remove and test marks.
func marking() family {
	return family{
		"ephemeralasnull": ephemeralAsNullFunc(),
		"issensitive":     isSensitiveFunc(),
		"nonsensitive": remarkFunc("Returns a value without the sensitivity of its own; parts of it that are sensitive stay so.",
			func(v cty.Value) cty.Value {
				return value.WithoutMark(value.WithoutMark(v, value.Sensitive), value.Hidden)
			}),
		"sensitive": remarkFunc("Returns a value as a sensitive one, which is not shown.",
			func(v cty.Value) cty.Value { return v.Mark(value.Sensitive) }),
	}
}

// anything returns a parameter that accepts every value unchanged.
func anything(name string) function.Parameter {
	return function.Parameter{
		Name: name, Type: cty.DynamicPseudoType,
		AllowUnknown: true, AllowDynamicType: true, AllowNull: true, AllowMarked: true,
	}
}

// remarkFunc returns a function that only changes marks.
func remarkFunc(about string, f func(cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Description: about,
		Params:      []function.Parameter{anything("value")},
		Type:        func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl:        func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f(args[0]), nil },
	})
}

// isSensitiveFunc returns issensitive. The result for an unknown value is unknown, since the
// value may be sensitive when it is known.
func isSensitiveFunc() function.Function {
	return function.New(&function.Spec{
		Description:  "Tells whether a value is sensitive; sensitive parts of it do not count.",
		Params:       []function.Parameter{anything("value")},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsKnown() {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(args[0].HasMark(value.Sensitive)), nil
		},
	})
}

func ephemeralAsNullFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns a value with every ephemeral part of it replaced by null.",
		Params:      []function.Parameter{anything("value")},
		Type:        func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].HasMarkDeep(value.Ephemeral) {
				return args[0], nil
			}
			return cty.Transform(args[0], func(_ cty.Path, v cty.Value) (cty.Value, error) {
				if !v.HasMark(value.Ephemeral) {
					return v, nil
				}
				bare, marks := v.Unmark()
				delete(marks, value.Ephemeral)
				if bare.IsKnown() { // an unknown value remains unknown
					bare = cty.NullVal(bare.Type())
				}
				return bare.WithMarks(marks), nil
			})
		},
	})
}
