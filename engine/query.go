package engine

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/internal/plan/validate"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// QueryOptions configures Query.
type QueryOptions struct {
	Variables map[string]InputValue
	ListOptions
}

// The types of the results of list blocks.
type (
	ListOptions  = resourceclient.ListOptions
	ListObserver = resourceclient.ListObserver
	Listing      = resourceclient.Listing
	Found        = resourceclient.Found
)

// Query runs the list blocks of the root module, which RootModule.Change adds from query files
// (config.Queries). Values of managed resources come from the state prev, which may be nil.
// Nothing is changed. Errors that the configuration shows are reported before any object is
// listed.
func (e *Engine) Query(ctx context.Context, prev *state.State, o QueryOptions) diag.List {
	vars, ds := e.inputs(o.Variables)
	if ds.HasErrors() {
		return ds
	}
	now := e.o.Now().UTC()
	in := e.evaluation(vars, now, true, eval.DeferNothing)
	in.Compiled = &eval.Compiled{}
	ds = append(ds, eval.CheckRoot(ctx, e.tree.Root.Config, vars, in.Functions)...)
	_, more := validate.BeforePlan(ctx, validate.Input{
		Tree: e.tree, Providers: e.pool, Functions: in.Functions, Provisioners: e.o.Provisioners, Cwd: e.o.LaunchDir, Compiled: in.Compiled,
		Wants: func(c addr.ConfigResource) bool { return c.Resource.Mode == addr.List }, Uses: configurationsOf(prev),
	}, false)
	if ds = append(ds, more...).Once(); ds.HasErrors() {
		return ds
	}
	more = planner.Query(ctx, planner.Input{
		Eval: in, Providers: e.providers(), State: prev, Options: plan.Options{Time: now},
		KeepHosts: e.getenv("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") == "0",
	}, o.ListOptions)
	return append(ds, more...).Once()
}

// ProviderDigests returns the digests of the provider configurations of the root module whose
// values are known. Two configurations of one provider with equal values have equal digests, also
// in different directories. Values of managed resources come from the state prev, which may be
// nil.
func (e *Engine) ProviderDigests(ctx context.Context, prev *state.State, values map[string]InputValue) (map[addr.ProviderConfig]state.Digest, diag.List) {
	vars, ds := e.inputs(values)
	if ds.HasErrors() {
		return nil, ds
	}
	now := e.o.Now().UTC()
	in := e.evaluation(vars, now, true, eval.DeferNothing)
	in.Compiled = &eval.Compiled{}
	out, more := planner.ProviderDigests(ctx, planner.Input{
		Eval: in, Providers: e.providers(), State: prev, Options: plan.Options{Time: now},
		KeepHosts: e.getenv("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") == "0",
	})
	return out, append(ds, more...)
}

// A PendingImport is an object that the next apply imports because of an import block.
type PendingImport = planner.PendingImport

// PendingImports returns the imports of the import blocks whose addresses are not in the state prev,
// which may be nil. Imports of objects that are not known yet are left out, and so are invalid ones.
func (e *Engine) PendingImports(ctx context.Context, prev *state.State, values map[string]InputValue) []PendingImport {
	vars, ds := e.inputs(values)
	if ds.HasErrors() {
		return nil
	}
	now := e.o.Now().UTC()
	in := e.evaluation(vars, now, true, eval.DeferNothing)
	in.Compiled = &eval.Compiled{}
	return planner.PendingImports(ctx, planner.Input{
		Eval: in, Providers: e.providers(), State: prev, Options: plan.Options{Time: now},
		KeepHosts: e.getenv("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") == "0",
	})
}
