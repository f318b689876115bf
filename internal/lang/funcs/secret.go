package funcs

// Errors of functions often quote their arguments, and cty passes arguments without marks.
// So a function that quotes is either written with [quoting], which records the secret
// arguments, or, if a library creates the error, wrapped in [guarded], which drops the text
// of an error if an argument is secret.

import (
	"errors"
	"strconv"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/terrace-iac/terrace/internal/base/value"
)

// call is one call of a function written with quoting. Its arguments are known, not null and
// unmarked.
type call struct {
	args   []cty.Value
	secret []bool
}

// text returns argument i, a string.
func (c call) text(i int) string { return c.args[i].AsString() }

// quoted returns argument i, a string, quoted for an error, or a placeholder if it is secret.
func (c call) quoted(i int) string {
	if c.secret[i] {
		return value.SecretText
	}
	return strconv.Quote(c.args[i].AsString())
}

// bare is like quoted, without quotes.
func (c call) bare(i int) string {
	if c.secret[i] {
		return value.SecretText
	}
	return c.args[i].AsString()
}

// any reports whether an argument is secret.
func (c call) any() bool {
	for _, secret := range c.secret {
		if secret {
			return true
		}
	}
	return false
}

// because returns the text of err, or a placeholder if it could contain a secret argument.
func (c call) because(err error) string {
	if c.any() {
		return withheld
	}
	return err.Error()
}

const withheld = "the reason is not shown, because an argument is sensitive"

// quoting returns the implementation of a function from f, for parameters from [param]. It
// removes the marks of the arguments and adds all of them to the result. It returns an
// unknown value for unknown arguments.
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

// param returns a parameter of a function whose implementation uses quoting.
func param(name string, ty cty.Type) function.Parameter {
	return function.Parameter{Name: name, Type: ty, AllowMarked: true, AllowUnknown: true}
}

// stringParams returns string parameters of a function that uses quoting.
func stringParams(names ...string) []function.Parameter {
	ps := make([]function.Parameter, len(names))
	for i, name := range names {
		ps[i] = param(name, cty.String)
	}
	return ps
}

// onStrings returns a function with string parameters and a result of the type ret.
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

// guarded wraps f: it drops the text of an error if an argument is secret, and reports a
// panic without a stack trace. If quotes is set, only these arguments can appear in an
// error. The result types for unknown arguments are those of f.
func guarded(f function.Function, quotes ...int) function.Function {
	params, rest := opened(f)
	return function.New(&function.Spec{
		Description: f.Description(),
		Params:      params,
		VarParam:    rest,
		Type: func(args []cty.Value) (cty.Type, error) {
			for _, arg := range args {
				if arg.IsKnown() {
					return cty.DynamicPseudoType, nil // the call below determines the type
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

// pick returns the arguments with the given numbers, or all arguments without numbers.
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

// opened returns the parameters of f after open.
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

// open lets a parameter accept everything except null, so that the guarded function decides.
// The message for null is the same in both.
func open(p *function.Parameter) {
	p.AllowUnknown, p.AllowMarked, p.AllowDynamicType = true, true, true
}

// Guard returns err, without its text if an argument is secret.
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

// hidden returns err without its text. It keeps the number of the argument.
func hidden(err error) error {
	var at function.ArgError
	if errors.As(err, &at) {
		return function.NewArgErrorf(at.Index, withheld)
	}
	return errors.New(withheld)
}

// plain returns a parameter for which cty handles marks and unknown values.
func plain(name string, ty cty.Type) function.Parameter {
	return function.Parameter{Name: name, Type: ty}
}
