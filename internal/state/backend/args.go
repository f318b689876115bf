package backend

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Args reads the arguments of a configuration, with the environment and the defaults
// behind them. What is wrong is collected and returned by Err. An argument that is
// set to "" is set: neither environment nor default take its place.
type Args struct {
	v    cty.Value
	env  sys.Env
	name string // of the block that these are in, with a dot; "" for the outermost
	errs *[]error
}

// NewArgs reads cfg, as Kind.Open gets it.
func NewArgs(cfg cty.Value, env sys.Env) *Args {
	return &Args{v: cfg, env: env, errs: new([]error)}
}

func (a *Args) get(name string) cty.Value {
	if a == nil || a.v.IsNull() || !a.v.Type().HasAttribute(name) {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return a.v.GetAttr(name)
}

// IsSet reports whether an argument is set in the configuration itself.
func (a *Args) IsSet(name string) bool { return !a.get(name).IsNull() }

// Given is the first of some arguments that is set in the configuration itself, for
// messages that have to name one; the last of them if none is.
func (a *Args) Given(names ...string) string {
	for _, n := range names {
		if a.IsSet(n) {
			return n
		}
	}
	return names[len(names)-1]
}

// text is what the configuration or the first variable that is not empty says.
func (a *Args) text(name string, env []string) (string, bool) {
	if v := a.get(name); !v.IsNull() {
		switch v.Type() {
		case cty.String:
			return v.AsString(), true
		case cty.Bool:
			return strconv.FormatBool(v.True()), true
		case cty.Number:
			return v.AsBigFloat().Text('f', -1), true
		}
	}
	for _, e := range env {
		if s := a.env.Get(e); s != "" {
			return s, true
		}
	}
	return "", false
}

// String is an argument, the first of the variables that is set, or the default.
func (a *Args) String(name, def string, env ...string) string {
	if s, ok := a.text(name, env); ok {
		return s
	}
	return def
}

// Required is a String that must not be empty.
func (a *Args) Required(name string, env ...string) string {
	s, _ := a.text(name, env)
	if s == "" {
		if len(env) == 0 {
			a.Fail(name, "The argument %q is required", a.name+name)
		} else {
			a.Fail(name, "The argument %q is required, or the environment variable %s", a.name+name, strings.Join(env, " or "))
		}
	}
	return s
}

// Bool is an argument that is true or false; variables may say 1, t, 0, f and so on.
func (a *Args) Bool(name string, def bool, env ...string) bool {
	s, ok := a.text(name, env)
	if !ok || s == "" {
		return def
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		a.Fail(name, "The value of %q from the environment (%s) is neither true nor false", a.name+name, strings.Join(env, ", "))
		return def
	}
	return b
}

// Int is an argument that is a whole number.
func (a *Args) Int(name string, def int, env ...string) int {
	s, ok := a.text(name, env)
	if !ok || s == "" {
		return def
	}
	f, _, err := big.ParseFloat(strings.TrimSpace(s), 10, 64, big.ToNearestEven)
	if err == nil && f.IsInt() {
		if n, acc := f.Int64(); acc == big.Exact && int64(int(n)) == n {
			return int(n)
		}
	}
	a.Fail(name, "The value of %q is not a whole number", a.name+name)
	return def
}

// Map is an argument that is a map of strings; nil if it is not set.
func (a *Args) Map(name string) map[string]string {
	v := a.get(name)
	if v.IsNull() {
		return nil
	}
	out := map[string]string{}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if e.IsNull() {
			a.Fail(name, "The element %q of %q is null", k.AsString(), a.name+name)
			continue
		}
		out[k.AsString()] = e.AsString()
	}
	return out
}

// Strings is an argument that is a list or set of strings; nil if it is not set.
func (a *Args) Strings(name string) []string {
	v := a.get(name)
	if v.IsNull() {
		return nil
	}
	var out []string
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		if e.IsNull() {
			a.Fail(name, "An element of %q is null", a.name+name)
			continue
		}
		out = append(out, e.AsString())
	}
	return out
}

// Block is a nested block, or an argument that is an object; nil if it is not there.
// Of a list or set of blocks it is the first. Errors in it are those of a.
func (a *Args) Block(name string) *Args {
	v := a.get(name)
	if v.IsNull() {
		return nil
	}
	if t := v.Type(); t.IsListType() || t.IsSetType() || t.IsTupleType() {
		if v.LengthInt() == 0 {
			return nil
		}
		it := v.ElementIterator()
		it.Next()
		_, v = it.Element()
	}
	return &Args{v: v, env: a.env, name: a.name + name + ".", errs: a.errs}
}

// Fail adds an error about an argument. The text must not show its value where that
// may be secret.
func (a *Args) Fail(name, format string, args ...any) {
	at, _, nested := strings.Cut(a.name, ".")
	if !nested {
		at = name
	}
	*a.errs = append(*a.errs, &Error{Argument: at, Code: diag.CodeBackendConfigArgument, Summary: "Invalid backend configuration", Answer: fmt.Sprintf(format, args...)})
}

// Err is all that was found to be wrong.
func (a *Args) Err() error { return errors.Join(*a.errs...) }

// Optional makes the attributes of a schema from their names and types.
func Optional(types map[string]cty.Type, required ...string) map[string]*schema.Attribute {
	out := map[string]*schema.Attribute{}
	for name, t := range types {
		out[name] = &schema.Attribute{Type: t, Optional: true}
	}
	for _, name := range required {
		out[name].Optional, out[name].Required = false, true
	}
	return out
}
