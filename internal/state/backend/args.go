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

// Args reads the arguments of a configuration. If an argument is not set, it reads the
// environment and then uses the default. An argument with the value "" counts as set. Errors
// are collected and returned by Err.
type Args struct {
	v    cty.Value
	env  sys.Env
	name string // name of the enclosing block with a dot; "" for the outermost block
	errs *[]error
}

// NewArgs returns the Args of cfg, in the form that Kind.Open receives.
func NewArgs(cfg cty.Value, env sys.Env) *Args {
	return &Args{v: cfg, env: env, errs: new([]error)}
}

func (a *Args) get(name string) cty.Value {
	if a == nil || a.v.IsNull() || !a.v.Type().HasAttribute(name) {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return a.v.GetAttr(name)
}

// IsSet reports whether an argument is set in the configuration, ignoring the environment.
func (a *Args) IsSet(name string) bool { return !a.get(name).IsNull() }

// Given returns the first of several arguments that is set in the configuration, for messages
// that must name one. If none is set, it returns the last one.
func (a *Args) Given(names ...string) string {
	for _, n := range names {
		if a.IsSet(n) {
			return n
		}
	}
	return names[len(names)-1]
}

// text returns the configured value, or that of the first non-empty environment variable.
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

// String returns an argument, the value of the first environment variable that is set, or the
// default.
func (a *Args) String(name, def string, env ...string) string {
	if s, ok := a.text(name, env); ok {
		return s
	}
	return def
}

// Required is like String. An empty result is an error.
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

// Bool returns a boolean argument. Environment variables may contain 1, t, 0, f and so on.
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

// Int returns an argument that is a whole number.
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

// Map returns an argument that is a map of strings; nil if it is not set.
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

// Strings returns an argument that is a list or set of strings; nil if it is not set.
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

// Block returns a nested block or an object argument; nil if it is absent. Of several blocks it
// returns the first. a collects the errors.
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

// Fail adds an error about an argument. The text must not contain the argument's value if that
// may be secret.
func (a *Args) Fail(name, format string, args ...any) {
	at, _, nested := strings.Cut(a.name, ".")
	if !nested {
		at = name
	}
	*a.errs = append(*a.errs, &Error{Argument: at, Code: diag.CodeBackendConfigArgument, Summary: "Invalid backend configuration", Answer: fmt.Sprintf(format, args...)})
}

// Err returns all errors that were collected.
func (a *Args) Err() error { return errors.Join(*a.errs...) }

// Optional returns the attributes of a schema by their names and types.
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
