package funcs

import (
	"errors"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"github.com/zclconf/go-cty/cty/gocty"
)

// text returns the functions for strings. Those with regular expressions are in regexp.go.
func text() family {
	return family{
		"chomp":       chompFunc(),
		"endswith":    testFunc("Tells whether a string ends with another.", strings.HasSuffix, "str", "suffix"),
		"format":      bounded(guarded(stdlib.FormatFunc, 0), formattedSize),
		"formatlist":  bounded(guarded(stdlib.FormatListFunc, 0), formattedSize),
		"indent":      indentFunc(),
		"join":        bounded(stdlib.JoinFunc, joinedSize),
		"lower":       stdlib.LowerFunc,
		"sort":        stdlib.SortFunc,
		"split":       bounded(stdlib.SplitFunc, splitSize),
		"startswith":  startsWithFunc(),
		"strcontains": testFunc("Tells whether a string contains another.", strings.Contains, "str", "substr"),
		"strrev":      stdlib.ReverseFunc,
		"substr":      stdlib.SubstrFunc,
		"title":       stdlib.TitleFunc,
		"trim":        stdlib.TrimFunc,
		"trimprefix":  stdlib.TrimPrefixFunc,
		"trimspace":   stdlib.TrimSpaceFunc,
		"trimsuffix":  stdlib.TrimSuffixFunc,
		"upper":       stdlib.UpperFunc,
	}
}

// testFunc returns a function that compares two strings.
func testFunc(about string, f func(a, b string) bool, names ...string) function.Function {
	return function.New(&function.Spec{
		Description:  about,
		Params:       []function.Parameter{plain(names[0], cty.String), plain(names[1], cty.String)},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// startsWithFunc returns startswith. The result is also known for an unknown string with a
// known prefix.
func startsWithFunc() function.Function {
	str := plain("str", cty.String)
	str.AllowUnknown = true
	return function.New(&function.Spec{
		Description:  "Tells whether a string starts with another.",
		Params:       []function.Parameter{str, plain("prefix", cty.String)},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			prefix := args[1].AsString()
			if args[0].IsKnown() {
				return cty.BoolVal(strings.HasPrefix(args[0].AsString(), prefix)), nil
			}
			start := args[0].Range().StringPrefix()
			switch {
			case strings.HasPrefix(start, prefix):
				return cty.True, nil
			case !strings.HasPrefix(prefix, start):
				return cty.False, nil
			}
			return cty.UnknownVal(cty.Bool), nil
		},
	})
}

func chompFunc() function.Function {
	return function.New(&function.Spec{
		Description:  "Removes the newline characters at the end of a string.",
		Params:       []function.Parameter{plain("str", cty.String)},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(strings.TrimRight(args[0].AsString(), "\r\n")), nil
		},
	})
}

// maxIndent limits the number of spaces, since a wrong number could use all memory.
const maxIndent = 1 << 20

func indentFunc() function.Function {
	return function.New(&function.Spec{
		Description:  "Adds spaces to the beginning of every line of a string but the first.",
		Params:       []function.Parameter{plain("spaces", cty.Number), plain("str", cty.String)},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			var spaces int
			if err := gocty.FromCtyValue(args[0], &spaces); err != nil {
				return cty.NilVal, err
			}
			if spaces < 0 || spaces > maxIndent {
				return cty.NilVal, function.NewArgError(0, errors.New("the number of spaces must be between 0 and 1048576"))
			}
			return cty.StringVal(strings.ReplaceAll(args[1].AsString(), "\n", "\n"+strings.Repeat(" ", spaces))), nil
		},
	})
}
