package funcs

// Some functions produce large results from small arguments: the product of three lists of
// a thousand elements has a billion elements. The size of such a result is computed before
// the result, so that an error names the call. Otherwise, the program would run out of
// memory without a message.

import (
	"math"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxElements is the maximum number of elements in the result of one call.
const maxElements = 1 << 20

// bounded returns f with a check of the size of its result. measure receives the arguments
// unchanged, including marks and unknown values.
func bounded(f function.Function, measure func(args []cty.Value) error) function.Function {
	params, rest := opened(f)
	return function.New(&function.Spec{
		Description: f.Description(),
		Params:      params,
		VarParam:    rest,
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := measure(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// digits returns f with a check for numbers with too many digits.
func digits(f function.Function) function.Function {
	return bounded(f, func(args []cty.Value) error {
		for i, arg := range args {
			if err := value.Bounded(arg); err != nil {
				return function.NewArgError(i, err)
			}
		}
		return nil
	})
}

func textBound(size float64) error {
	if size > value.MaxText {
		return function.NewArgErrorf(0, "the result would be a text of more than %d MiB", value.MaxText>>20)
	}
	return nil
}

func elementBound(n float64) error {
	if n > maxElements {
		return function.NewArgErrorf(0, "the result would have more than %d elements", maxElements)
	}
	return nil
}

// sizeOf returns the length of a string in bytes, and 0 for any other value.
func sizeOf(v cty.Value) float64 {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return 0
	}
	return float64(len(v.AsString()))
}

// count returns the number of elements of v, and 1 if v is no collection.
func count(v cty.Value) float64 {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 1
	}
	return float64(v.LengthInt())
}

// productSize checks the size of the result of setproduct.
func productSize(args []cty.Value) error {
	n := 1.0
	for _, arg := range args {
		n *= count(arg)
	}
	return elementBound(n * float64(max(1, len(args))))
}

// joinedSize checks the size of the result of join.
func joinedSize(args []cty.Value) error {
	if len(args) == 0 {
		return nil
	}
	separator, size := sizeOf(args[0]), 0.0
	for _, arg := range args[1:] {
		size += separator * count(arg)
		if list, _ := arg.Unmark(); list.IsKnown() && !list.IsNull() && list.CanIterateElements() {
			for it := list.ElementIterator(); it.Next(); {
				_, v := it.Element()
				size += sizeOf(v)
			}
		}
	}
	return textBound(size)
}

// formattedSize checks the size of the result of format or formatlist. It assumes that each
// verb writes the longest argument.
func formattedSize(args []cty.Value) error {
	if len(args) == 0 {
		return nil
	}
	spec, _ := args[0].Unmark()
	if !spec.IsKnown() || spec.IsNull() || spec.Type() != cty.String {
		return nil
	}
	verbs, width := verbsOf(spec.AsString())
	longest, times := 0.0, 1.0
	for i, arg := range args[1:] {
		if err := value.Bounded(arg); err != nil {
			return function.NewArgError(i+1, err)
		}
		longest = max(longest, sizeOf(arg))
		if list, _ := arg.Unmark(); list.IsKnown() && !list.IsNull() && list.CanIterateElements() && !list.Type().IsMapType() && !list.Type().IsObjectType() {
			times = max(times, count(arg))
			for it := list.ElementIterator(); it.Next(); {
				_, v := it.Element()
				longest = max(longest, sizeOf(v))
				if err := value.Bounded(v); err != nil {
					return function.NewArgError(i+1, err)
				}
			}
		}
	}
	return textBound(times * (float64(len(spec.AsString())) + verbs*longest + width))
}

// verbsOf returns the number of verbs of a format, and the sum of its numbers, which may be
// widths.
func verbsOf(spec string) (verbs, widths float64) {
	verbs = float64(strings.Count(spec, "%"))
	for rest := spec; ; {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			return verbs, widths
		}
		rest = rest[at+1:]
		n := 0.0
		for i := 0; i < len(rest) && strings.IndexByte("0123456789.+-# *[]", rest[i]) >= 0; i++ {
			if c := rest[i]; c >= '0' && c <= '9' {
				n = math.Min(n*10+float64(c-'0'), 1e18)
				continue
			}
			widths += n
			n = 0
		}
		widths += n
	}
}

// splitSize checks the size of the result of split.
func splitSize(args []cty.Value) error {
	if len(args) != 2 || sizeOf(args[1]) <= maxElements {
		return nil
	}
	separator, _ := args[0].Unmark()
	text, _ := args[1].Unmark()
	if !separator.IsKnown() || separator.IsNull() || separator.Type() != cty.String {
		return nil
	}
	return elementBound(float64(strings.Count(text.AsString(), separator.AsString()) + 1))
}

// concatSize checks the size of the result of concat.
func concatSize(args []cty.Value) error {
	n := 0.0
	for _, arg := range args {
		n += count(arg)
	}
	return elementBound(n)
}

// nestedText returns an error for a text whose brackets nest too deeply: the time of parsing
// it is quadratic in the depth.
func nestedText(args []cty.Value) error {
	if len(args) == 0 || sizeOf(args[0]) <= maxNesting {
		return nil
	}
	text, _ := args[0].Unmark()
	if nesting(text.AsString()) > maxNesting {
		return function.NewArgErrorf(0, "the text nests brackets more than %d deep", maxNesting)
	}
	return nil
}

// decoded returns f with a check for numbers with too many digits in its result.
func decoded(f function.Function) function.Function {
	checked := func(v cty.Value) error {
		return cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
			if v.Type() != cty.Number {
				return true, nil
			}
			if err := value.Bounded(v); err != nil {
				return false, function.NewArgError(0, err)
			}
			return true, nil
		})
	}
	params, _ := opened(f)
	return function.New(&function.Spec{
		Description: f.Description(),
		Params:      params,
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := nestedText(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err == nil {
				err = checked(v)
			}
			if err != nil {
				return cty.NilVal, err
			}
			return v, nil
		},
	})
}

// textOfDigits returns an error for a text with more digits than a number may have.
func textOfDigits(args []cty.Value) error {
	if len(args) > 0 && sizeOf(args[0]) > value.MaxDigits {
		return function.NewArgError(0, value.ErrDigits)
	}
	return nil
}
