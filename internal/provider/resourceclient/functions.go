package resourceclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// ProviderFunction returns a function of a provider for use in expressions.
func ProviderFunction(ctx context.Context, prov provider.Provider, a addr.Provider, name string, configured bool) (function.Function, diag.List) {
	ps, ds := prov.Schema(ctx)
	if ds.HasErrors() {
		return function.Function{}, ds
	}
	sig := ps.Functions[name]
	if sig == nil && configured {
		all, more := prov.Functions(ctx)
		if more.HasErrors() {
			return function.Function{}, append(ds, more...)
		}
		sig = all[name]
	}
	if sig == nil {
		return function.Function{}, append(ds, diag.Errorf(diag.CodeEvalUndeclared, nil, "Function not found in provider", "The provider %s has no function named %q.", a.Display(), name)...)
	}
	return wrapFunction(ctx, prov, a, name, sig), ds
}

func wrapFunction(ctx context.Context, prov provider.Provider, a addr.Provider, name string, sig *schema.Function) function.Function {
	spec := &function.Spec{
		Description: sig.Description,
		Type:        func([]cty.Value) (cty.Type, error) { return sig.Return, nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !acceptable(sig, args) {
				return cty.UnknownVal(sig.Return), nil
			}
			v, err := prov.CallFunction(ctx, name, args)
			if err == nil {
				return v, nil
			}
			var arg *provider.ArgError
			if errors.As(err, &arg) {
				return cty.DynamicVal, function.NewArgError(arg.Arg, errors.New(arg.Msg))
			}
			return cty.DynamicVal, fmt.Errorf("the provider %s says: %w", a.Display(), err)
		},
	}
	for _, prm := range sig.Params {
		spec.Params = append(spec.Params, functionParam(prm))
	}
	if sig.Variadic != nil {
		vp := functionParam(*sig.Variadic)
		spec.VarParam = &vp
	}
	return function.New(spec)
}

// acceptable reports whether the provider can be called with these arguments. Package
// function checks only that an argument itself is known: a list with an unknown element
// would reach a provider that does not accept unknown values, and fail there.
func acceptable(sig *schema.Function, args []cty.Value) bool {
	for i, arg := range args {
		prm := sig.Variadic
		if i < len(sig.Params) {
			prm = &sig.Params[i]
		}
		if !prm.AllowUnknown && !arg.IsWhollyKnown() {
			return false
		}
	}
	return true
}

func functionParam(p schema.Parameter) function.Parameter {
	return function.Parameter{Name: p.Name, Type: p.Type, AllowNull: p.AllowNull, AllowUnknown: p.AllowUnknown, AllowDynamicType: true, Description: p.Description}
}

// UnknownFunction returns a function with an unknown result, for a provider that is not
// configured.
func UnknownFunction() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "args", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
		Type:     function.StaticReturnType(cty.DynamicPseudoType),
		Impl:     func([]cty.Value, cty.Type) (cty.Value, error) { return cty.DynamicVal, nil },
	})
}
