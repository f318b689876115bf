package funcs

import (
	"errors"
	"math"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// numeric returns the functions for numbers.
func numeric() family {
	return family{
		"abs":      stdlib.AbsoluteFunc,
		"ceil":     digits(stdlib.CeilFunc),
		"floor":    digits(stdlib.FloorFunc),
		"log":      onFloats("Returns the logarithm of a number in a given base.", logarithm, "num", "base"),
		"max":      stdlib.MaxFunc,
		"min":      stdlib.MinFunc,
		"parseint": bounded(guarded(stdlib.ParseIntFunc), textOfDigits),
		"pow":      onFloats("Raises a number to a power.", power, "num", "power"),
		"signum":   stdlib.SignumFunc,
		"sum":      sumFunc(),
	}
}

// onFloats returns a function of two numbers that is computed with the precision of float64, as
// the language specifies for log and pow.
func onFloats(about string, f func(a, b float64) (float64, error), names ...string) function.Function {
	return function.New(&function.Spec{
		Description:  about,
		Params:       []function.Parameter{plain(names[0], cty.Number), plain(names[1], cty.Number)},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			a, _ := args[0].AsBigFloat().Float64()
			b, _ := args[1].AsBigFloat().Float64()
			v, err := f(a, b)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.NumberFloatVal(v), nil
		},
	})
}

func logarithm(num, base float64) (float64, error) {
	v := math.Log(num) / math.Log(base)
	if math.IsNaN(v) {
		return 0, errors.New("there is no such logarithm: number and base must not be negative, and not both zero")
	}
	return v, nil
}

func power(num, exp float64) (float64, error) {
	v := math.Pow(num, exp)
	if math.IsNaN(v) {
		return 0, errors.New("there is no such power: a negative number can only be raised to a whole number")
	}
	return v, nil
}

func sumFunc() function.Function {
	return function.New(&function.Spec{
		Description:  "Returns the sum of the numbers in a list, set or tuple.",
		Params:       []function.Parameter{plain("list", cty.DynamicPseudoType)},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			list := args[0]
			switch ty := list.Type(); {
			case !list.CanIterateElements():
				return cty.NilVal, function.NewArgErrorf(0, "cannot sum noniterable")
			case !isSequence(ty):
				return cty.NilVal, function.NewArgErrorf(0, "argument must be list, set, or tuple. Received %s", ty.FriendlyName())
			case list.LengthInt() == 0:
				return cty.NilVal, function.NewArgErrorf(0, "cannot sum an empty list")
			case !list.IsWhollyKnown():
				return cty.UnknownVal(cty.Number), nil
			}
			return sum(list)
		},
	})
}

// sum returns the sum of a known, non-empty sequence.
func sum(list cty.Value) (cty.Value, error) {
	wrong := function.NewArgErrorf(0, "argument must be list, set, or tuple of number values")
	total := cty.Zero
	for _, element := range list.Elements() {
		number, err := convert.Convert(element, cty.Number)
		if err != nil || number.IsNull() {
			return cty.NilVal, wrong
		}
		total, err = stdlib.Add(total, number) // adding infinities of both signs is an error
		if err != nil {
			return cty.NilVal, wrong
		}
	}
	return total, nil
}

// isSequence reports whether values of a type have elements without keys.
func isSequence(ty cty.Type) bool {
	return ty.IsListType() || ty.IsSetType() || ty.IsTupleType()
}
