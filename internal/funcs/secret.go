package funcs

// Errors of functions like to quote their arguments, and cty hands functions
// their arguments without marks. So that nothing secret is printed, a function
// that quotes is either written with [quoting], which knows which arguments
// may be shown, or, where its text comes from a library, wrapped in [guarded],
// which withholds the text of an error when an argument is secret.

import (
	"errors"
	"strconv"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/terrace-iac/terrace/internal/value"
)

// call is one call of a function made with quoting. Its arguments are known,
// not null, and have no marks.
type call struct {
	args   []cty.Value
	secret []bool
}

// text is argument i, a string.
func (c call) text(i int) string { return c.args[i].AsString() }

// quoted is argument i, a string, as it may stand in an error.
func (c call) quoted(i int) string {
	if c.secret[i] {
		return value.SecretText
	}
	return strconv.Quote(c.args[i].AsString())
}

// bare is argument i, a string, as it may stand in an error, without quotes.
func (c call) bare(i int) string {
	if c.secret[i] {
		return value.SecretText
	}
	return c.args[i].AsString()
}

// any tells whether some argument is secret.
func (c call) any() bool {
	for _, secret := range c.secret {
		if secret {
			return true
		}
	}
	return false
}

// because is the text of err, or a stand-in if it could tell a secret argument.
func (c call) because(err error) string {
	if c.any() {
		return withheld
	}
	return err.Error()
}

const withheld = "the reason is not shown, because an argument is sensitive"

// quoting makes the implementation of a function out of f, for parameters made
// with [param]: it takes the marks off and puts all of them on the result, and
// answers unknown for unknown.
func quoting(f func(call) (cty.Value, error)) function.ImplFunc {
	return func(args []cty.Value, ret cty.Type) (cty.Value, error) {
		c := call{args: make([]cty.Value, len(args)), secret: make([]bool, len(args))}
		var all []cty.ValueMarks
		known := true
		for i, arg := range args {
			bare, marks := arg.UnmarkDeep()
			if len(marks) > 0 {
				all = append(all, marks)
				c.secret[i] = marks.Has(value.Sensitive) || marks.Has(value.Hidden)
			}
			known = known && bare.IsKnown()
			c.args[i] = bare
		}
		if !known {
			return cty.UnknownVal(ret).WithMarks(all...), nil
		}
		v, err := f(c)
		if err != nil {
			return cty.NilVal, err
		}
		return v.WithMarks(all...), nil
	}
}

// param is a parameter of a function whose implementation is made with quoting.
func param(name string, ty cty.Type) function.Parameter {
	return function.Parameter{Name: name, Type: ty, AllowMarked: true, AllowUnknown: true}
}

// stringParams is the parameters of a function of strings with quoting.
func stringParams(names ...string) []function.Parameter {
	ps := make([]function.Parameter, len(names))
	for i, name := range names {
		ps[i] = param(name, cty.String)
	}
	return ps
}

// onStrings makes a function of strings that gives a value of type ret.
func onStrings(about string, ret cty.Type, f func(call) (cty.Value, error), names ...string) function.Function {
	return function.New(&function.Spec{
		Description:  about,
		Params:       stringParams(names...),
		Type:         function.StaticReturnType(ret),
		RefineResult: notNull,
		Impl:         quoting(f),
	})
}

func notNull(b *cty.RefinementBuilder) *cty.RefinementBuilder { return b.NotNull() }

// guarded wraps f so that the text of an error is withheld when an argument is
// secret, and so that a panic of f is reported without a stack trace. Where
// numbers of arguments are given, only those can get into the text of an error.
// The types that f has for unknown arguments are kept.
func guarded(f function.Function, quotes ...int) function.Function {
	params, rest := opened(f)
	return function.New(&function.Spec{
		Description: f.Description(),
		Params:      params,
		VarParam:    rest,
		Type: func(args []cty.Value) (cty.Type, error) {
			for _, arg := range args {
				if arg.IsKnown() {
					return cty.DynamicPseudoType, nil // the call below finds it out
				}
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err != nil {
				return cty.NilVal, Guard(err, pick(args, quotes))
			}
			return v, nil
		},
	})
}

// pick is the arguments with the given numbers, or all if there are none.
func pick(args []cty.Value, numbers []int) []cty.Value {
	if len(numbers) == 0 {
		return args
	}
	picked := make([]cty.Value, 0, len(numbers))
	for _, i := range numbers {
		if i < len(args) {
			picked = append(picked, args[i])
		}
	}
	return picked
}

// opened are the parameters of f, each as open leaves it.
func opened(f function.Function) (params []function.Parameter, rest *function.Parameter) {
	params, rest = f.Params(), f.VarParam()
	for i := range params {
		open(&params[i])
	}
	if rest != nil {
		open(rest)
	}
	return params, rest
}

// open lets everything through to the guarded function, which has its own say;
// only null is left to the guard, since its message is the same.
func open(p *function.Parameter) {
	p.AllowUnknown, p.AllowMarked, p.AllowDynamicType = true, true, true
}

// Guard is err as it may be shown.
func Guard(err error, args []cty.Value) error {
	if err == nil {
		return nil
	}
	hide := false
	for _, arg := range args {
		hide = hide || value.ContainsSecret(arg)
	}
	var panicked function.PanicError
	if errors.As(err, &panicked) {
		return errors.New("the arguments are outside of what the function can compute")
	}
	if !hide {
		return err
	}
	return hidden(err)
}

// hidden is err without its text, but for the argument that it is about.
func hidden(err error) error {
	var at function.ArgError
	if errors.As(err, &at) {
		return function.NewArgErrorf(at.Index, withheld)
	}
	return errors.New(withheld)
}

// plain is a parameter that knows nothing of marks and unknown values: cty
// deals with them.
func plain(name string, ty cty.Type) function.Parameter {
	return function.Parameter{Name: name, Type: ty}
}
