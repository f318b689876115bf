package apply

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// phase implements eval.Phase with a function for the values of instances. Schemas and
// functions come from running providers.
type phase struct {
	x     *resourceclient.Client
	value func(*demand.Task, *eval.Desired) (cty.Value, diag.List)
}

// Value implements eval.Phase.
func (p phase) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) { return p.value(t, d) }

// Schema implements eval.Phase.
func (p phase) Schema(_ *demand.Task, a addr.Provider) (*schema.Provider, diag.List) {
	return p.x.Schema(a)
}

// Function implements eval.Phase.
func (p phase) Function(t *demand.Task, a addr.Provider, pc *eval.ProviderConfig, name string) (function.Function, diag.List) {
	return p.x.Function(t, a, pc, name)
}
