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

// A Phase evaluates configuration without providers: a resource has its value in the state, or an unknown
// value.
type Phase struct {
	*Explainer // returns values in the state; nil means none
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

// Schema implements eval.Phase. It always fails, without a message: values are evaluated without
// schemas.
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
