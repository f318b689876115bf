package funcs

import (
	"errors"
	"math"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// assumptions returns the functions that check a value. If the value is unknown, they refine it: the
// result has the checked property. Source: the function reference of OpenTofu 1.13.
func assumptions() family {
	list, set, mapping := cty.List(cty.DynamicPseudoType), cty.Set(cty.DynamicPseudoType), cty.Map(cty.DynamicPseudoType)
	return family{
		"assumeequal":         assumeEqualFunc(),
		"assumelistlength":    assumeLengthFunc(list, true, true),
		"assumelistlengthmax": assumeLengthFunc(list, false, true),
		"assumelistlengthmin": assumeLengthFunc(list, true, false),
		"assumemaplength":     assumeLengthFunc(mapping, true, true),
		"assumemaplengthmax":  assumeLengthFunc(mapping, false, true),
		"assumemaplengthmin":  assumeLengthFunc(mapping, true, false),
		"assumenotnull":       assumeNotNullFunc(),
		"assumesetlength":     assumeLengthFunc(set, true, true),
		"assumesetlengthmax":  assumeLengthFunc(set, false, true),
		"assumesetlengthmin":  assumeLengthFunc(set, true, false),
		"assumestringprefix":  assumePrefixFunc(),
	}
}

func assumeEqualFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the second value. It is an error if the first one is not equal to it.",
		Params:      []function.Parameter{anything("actual_value"), anything("expected_value")},
		Type: func(args []cty.Value) (cty.Type, error) {
			have, want := args[0].Type(), args[1].Type()
			if !have.Equals(want) && convert.GetConversionUnsafe(have, want) == nil {
				return cty.NilType, cannotConvert(have.FriendlyName(), want, "")
			}
			return want, nil
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			actual, _ := args[0].UnmarkDeep()
			want, _ := args[1].UnmarkDeep()
			actual, err := value.Convert(actual, ret)
			if err != nil {
				return cty.NilVal, whyNot(args[0], ret)
			}
			if actual.IsNull() != want.IsNull() && actual.IsKnown() && want.IsKnown() || differs(actual, want) {
				return cty.NilVal, function.NewArgErrorf(0, "the actual value is not equal to the expected value")
			}
			return args[1], nil
		},
	})
}

// differs reports whether two values without marks are certainly different.
func differs(a, b cty.Value) bool {
	same := a.Equals(b)
	return same.IsKnown() && same.False()
}

func assumeNotNullFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns a value that is not null. It is an error if the value is null.",
		Params:      []function.Parameter{anything("value")},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			if ty == cty.DynamicPseudoType {
				return cty.NilType, function.NewArgErrorf(0, "the type of the value is not known: set it with the function \"convert\"")
			}
			return ty, nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			switch v := args[0]; {
			case v.IsNull():
				return cty.NilVal, function.NewArgErrorf(0, "the value is null")
			case !v.IsKnown():
				return v.RefineNotNull(), nil
			default:
				return v, nil
			}
		},
	})
}

func assumePrefixFunc() function.Function {
	str, prefix := anything("value"), anything("prefix")
	str.Type, prefix.Type, prefix.AllowNull = cty.String, cty.String, false
	return function.New(&function.Spec{
		Description: "Returns a string that has a prefix. It is an error if the string has another one.",
		Params:      []function.Parameter{str, prefix},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, marks := args[0].Unmark()
			prefix, more := args[1].Unmark()
			wrong := function.NewArgErrorf(0, "the string does not have the assumed prefix")
			switch {
			case v.IsNull():
			case !prefix.IsKnown():
				v = cty.UnknownVal(cty.String)
			case v.IsKnown():
				if !strings.HasPrefix(v.AsString(), prefix.AsString()) {
					return cty.NilVal, wrong
				}
			default:
				known, text := v.Range().StringPrefix(), prefix.AsString()
				if n := min(len(known), len(text)); known[:n] != text[:n] {
					return cty.NilVal, wrong
				}
				v = v.Refine().StringPrefixFull(text).NewValue()
			}
			return v.WithMarks(marks, more), nil
		},
	})
}

// assumeLengthFunc returns a function that checks the length of a collection. want is the type of
// the collection.
func assumeLengthFunc(want cty.Type, least, most bool) function.Function {
	v := anything("value")
	v.Type, v.AllowDynamicType = want, false
	params := []function.Parameter{v}
	bound := func(name string) {
		p := anything(name)
		p.Type, p.AllowNull, p.AllowDynamicType = cty.Number, false, false
		params = append(params, p)
	}
	if least {
		bound("min_length")
	}
	if most {
		bound("max_length")
	}
	return function.New(&function.Spec{
		Description: "Returns a " + want.FriendlyNameForConstraint() + " with a length in the given bounds. It is an error if the length is another one.",
		Params:      params,
		Type:        func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			v, marks := args[0].UnmarkDeep()
			from, to := 0, math.MaxInt
			all := []cty.ValueMarks{marks}
			for i := 1; i < len(args); i++ {
				bound, more := args[i].Unmark()
				all = append(all, more)
				if !bound.IsKnown() {
					v = cty.UnknownVal(ret)
					continue
				}
				n, err := wholeNumber(bound)
				if err != nil {
					return cty.NilVal, function.NewArgError(i, err)
				}
				if least && i == 1 {
					from = n
				} else {
					to = n
				}
			}
			v, err := withLength(v, from, to)
			if err != nil {
				return cty.NilVal, err
			}
			return v.WithMarks(all...), nil
		},
	})
}

// wholeNumber returns a number as an int. Numbers outside of the range of int become the nearest
// one in it.
func wholeNumber(v cty.Value) (int, error) {
	f := v.AsBigFloat()
	if !f.IsInt() {
		return 0, errors.New("it must be a whole number")
	}
	n, _ := f.Int64()
	return int(min(max(n, math.MinInt), math.MaxInt)), nil
}

// withLength returns a collection without marks whose length is in the given bounds. It refines an
// unknown one.
func withLength(v cty.Value, from, to int) (cty.Value, error) {
	outside := function.NewArgErrorf(0, "the length is not within the assumed bounds")
	if v.IsNull() {
		return cty.NilVal, function.NewArgErrorf(0, "the value is null, so that it has no length")
	}
	r := v.Range()
	from, to = max(from, r.LengthLowerBound()), min(to, r.LengthUpperBound())
	if from > to {
		return cty.NilVal, outside
	}
	if v.IsKnown() {
		return v, nil
	}
	b := v.Refine().CollectionLengthLowerBound(from)
	if from < to || to <= maxElements { // equal bounds create a known list with this length
		b = b.CollectionLengthUpperBound(to)
	}
	return b.NewValue(), nil
}
