package workdir

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/zclconf/go-cty/cty"
)

// Values are the values that a unit gives the module in its directory. The methods may be
// called concurrently.
type Values interface {
	// All adds the values of the variables of the root module that have none yet.
	All(ctx context.Context, values Variables, root *config.Module) diag.List
	// One returns the value of one variable, before the module is loaded as a whole. ok is
	// false if the unit gives it none. All reports what is wrong with it.
	One(ctx context.Context, v *config.Variable) (value engine.InputValue, ok bool)
	// Environ returns the environment of the programs that provisioners start. It contains
	// the inputs of the unit.
	Environ(ctx context.Context) sys.Env
	// Refer returns the value of a reference in the language of units, such as local.x of the
	// unit's file.
	Refer(ctx context.Context, ref hcl.Traversal) (cty.Value, diag.List)
}

// A Unit is what a unit adds to the directory that it works in.
type Unit interface {
	Values
	// Moves returns the moves between units that the unit has a part in; nil for none.
	Moves() Moves
	// Applying is called before an apply changes the state of a workspace.
	Applying(ctx context.Context, at backend.Config, workspace string) diag.List
	// Explain adds to the options of an explanation the unit that the values come from.
	Explain(o *engine.ExplainOptions)
	// Locate gives messages about the backend their place in the unit's files.
	Locate(ds diag.List) diag.List
}
