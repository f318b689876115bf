package planner

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// phase implements eval.Phase during planning. Instances have their planned values. Schemas and
// functions come from running providers.
type phase struct{ p *planner }

// Value implements eval.Phase.
func (ph phase) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	return ph.p.value(t, d)
}

// Schema implements eval.Phase.
func (ph phase) Schema(_ *demand.Task, a addr.Provider) (*schema.Provider, diag.List) {
	return ph.p.client.Schema(a)
}

// Function implements eval.Phase.
func (ph phase) Function(t *demand.Task, a addr.Provider, pc *eval.ProviderConfig, name string) (function.Function, diag.List) {
	return ph.p.client.Function(t, a, pc, name)
}
