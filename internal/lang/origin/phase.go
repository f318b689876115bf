package origin

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A Phase evaluates configuration without providers: resources are what state
// has of them, or unknown.
type Phase struct {
	*Explainer // tells what is known; nil: nothing
}

var _ eval.Phase = Phase{}

// Value implements eval.Phase.
func (p Phase) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	if p.Explainer != nil {
		if v := p.known(t, d); v != cty.NilVal {
			return v, nil
		}
	}
	return cty.DynamicVal, nil
}

// Schema implements eval.Phase: no schema is read for values alone, and what needs one has
// none, which is no mistake of the configuration.
func (p Phase) Schema(*demand.Task, addr.Provider) (*schema.Provider, diag.List) {
	return nil, demand.Fail()
}

// Function implements eval.Phase: the results of providers' functions are unknown.
func (p Phase) Function(*demand.Task, addr.Provider, *eval.ProviderConfig, string) (function.Function, diag.List) {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "args", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
		Type:     function.StaticReturnType(cty.DynamicPseudoType),
		Impl:     func([]cty.Value, cty.Type) (cty.Value, error) { return cty.DynamicVal, nil },
	}), nil
}
