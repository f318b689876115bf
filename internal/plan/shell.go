package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/par"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A Shell is what plan, apply and validate share around the running providers:
// schemas, configuration and functions, with messages told once.
type Shell struct {
	Providers Providers
	Context   context.Context
	told      sync.Map // addr.Provider whose schema failure was told

	schemas par.Cache[addr.Provider, asked] // one that does not start is waited for once
}

// asked is what a provider answered when it was asked for its schema.
type asked struct {
	schema *schema.Provider
	ds     diag.List
}

// Schema returns a provider's schema; its failure is told to the first who asks.
func (s *Shell) Schema(a addr.Provider) (*schema.Provider, diag.List) {
	got := s.schemas.Do(a, func() asked {
		ps, ds := s.Providers.Schema(s.Context, a)
		return asked{ps, ds}
	})
	ps, ds := got.schema, got.ds
	if ds.HasErrors() {
		if _, again := s.told.LoadOrStore(a, true); again {
			return nil, demand.Fail()
		}
		for _, m := range ds {
			if !strings.Contains(m.Detail, a.Display()) { // in the provider's own words
				m.Notes = append(m.Notes, diag.Note{Text: "The provider " + a.Display() + " says so."})
			}
		}
		return nil, ds
	}
	return ps, nil
}

// Decode reads a stored object, with the provider's help only where its version
// does not fit. take takes a slot for a call; nil: calls do not wait for one.
func (s *Shell) Decode(a addr.Instance, o *state.Object, r *schema.Resource, pa addr.Provider, take func() func()) (cty.Value, diag.List) {
	if o.SchemaVersion == r.Version {
		if v, err := o.Decode(r.Block.ImpliedType()); err == nil {
			return v, nil
		}
	}
	prov, ds := s.Providers.Any(s.Context, pa)
	if ds.HasErrors() {
		return cty.UnknownVal(r.Block.ImpliedType()), ds
	}
	if take == nil {
		take = func() func() { return func() {} }
	}
	v, more := calls{s, take}.upgrade(a, o, r, prov)
	return v, append(ds, more...)
}

// calls are provider calls that wait for a slot each.
type calls struct {
	sh   *Shell
	take func() (done func())
}

// Configure evaluates a provider configuration and starts the provider with it.
func (s *Shell) Configure(t *demand.Task, pc *eval.ProviderConfig) (provider.Provider, diag.List) {
	v, ok := pc.Value(t)
	if !ok {
		return nil, demand.Fail()
	}
	plain, _ := v.UnmarkDeep()
	prov, ds := s.Providers.Configured(s.Context, pc.Addr, plain)
	if len(ds) > 0 {
		ps, more := s.Schema(pc.Addr.Provider)
		if !more.HasErrors() {
			for _, m := range ds {
				if m.At == nil {
					m.At = pc.AttrRange(m.Attr, ps)
				}
			}
		}
		ds = ds.About(pc.Addr.String())
	}
	return prov, ds
}

// ProviderFunction wraps a provider-defined function for use in expressions.
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
		return function.Function{}, append(ds, diag.Errorf(nil, "Function not found in provider", "The provider %s has no function named %q.", a.Display(), name)...)
	}
	return wrapFunction(ctx, prov, a, name, sig), ds
}

func wrapFunction(ctx context.Context, prov provider.Provider, a addr.Provider, name string, sig *schema.Function) function.Function {
	spec := &function.Spec{
		Description: sig.Description,
		Type:        func([]cty.Value) (cty.Type, error) { return sig.Return, nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
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

func functionParam(p schema.Parameter) function.Parameter {
	return function.Parameter{Name: p.Name, Type: p.Type, AllowNull: p.AllowNull, AllowUnknown: p.AllowUnknown, AllowDynamicType: true, Description: p.Description}
}

// unknownFunction stands for a function of a provider that cannot be configured yet.
func unknownFunction() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "args", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
		Type:     function.StaticReturnType(cty.DynamicPseudoType),
		Impl:     func([]cty.Value, cty.Type) (cty.Value, error) { return cty.DynamicVal, nil },
	})
}

// Blame sets the place of messages about an instance: the argument that a path
// names, or the block.
func Blame(d *eval.Desired, s *schema.Resource, ds diag.List) diag.List {
	if len(ds) == 0 {
		return ds
	}
	for _, m := range ds {
		if m.At == nil && m.Code != "demand/silent" {
			m.At = placeOf(d, s, m.Attr)
		}
	}
	return ds
}

func placeOf(d *eval.Desired, s *schema.Resource, path cty.Path) *source.Range {
	if len(path) > 0 && s != nil {
		if b, _ := d.Resource.Body(s); b != nil {
			at := b.AttrRange(path)
			return &at
		}
	}
	return &d.Resource.Config().At
}

// withSensitive marks what is sensitive in a value that came from state or a
// provider: the given paths and those of the schema.
func withSensitive(v cty.Value, paths []cty.Path, s *schema.Resource) cty.Value {
	if len(paths) > 0 {
		v = value.MarkPaths(v, value.Sensitive, paths...)
	}
	if s.Block.HasSensitive() {
		plain, _ := v.UnmarkDeep()
		v = value.MarkPaths(v, value.Sensitive, s.Block.SensitivePaths(plain)...)
	}
	return v
}
