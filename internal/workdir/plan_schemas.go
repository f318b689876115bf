package workdir

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
)

// # Schemas in plan files
//
// A plan file contains the schemas of the resource types in the plan, its states and its
// configuration. So a plan can be shown on a machine without the providers, and with the schemas
// of the versions that it was made with.

// types contains the names of resource types by provider and mode.
type types map[addr.Provider]map[addr.Mode]map[string]bool

func (u types) add(p addr.Provider, mode addr.Mode, name string) {
	if u[p] == nil {
		u[p] = map[addr.Mode]map[string]bool{}
	}
	if u[p][mode] == nil {
		u[p][mode] = map[string]bool{}
	}
	u[p][mode][name] = true
}

// typesOf returns the types that showing a plan needs.
func typesOf(p *plan.Plan, tree *module.Tree) types {
	out := types{}
	change := func(c *plan.Change) {
		if c != nil {
			out.add(c.Provider.Provider, c.Addr.Resource.Mode, c.Addr.Resource.Type)
		}
	}
	for _, c := range slices.Concat(p.Changes, p.Drift) {
		change(c)
	}
	for _, d := range p.Deferred {
		change(d.Change)
	}
	for _, s := range []*state.State{p.Prior, p.PrevRun} {
		for _, r := range s.Sorted() {
			out.add(r.Provider.Provider, r.Addr.Resource.Mode, r.Addr.Resource.Type)
		}
	}
	tree.Walk(func(n *module.Node) {
		for a, r := range n.Config.Resources {
			out.add(n.Config.Source(r.LocalProvider()), a.Mode, a.Type)
		}
	})
	delete(out, addr.BuiltIn)
	return out
}

// PlanSchemas returns the schemas for the plan file of a plan, encoded. A provider whose schemas
// cannot be encoded is missing: showing the plan then needs the provider.
func (p *Loaded) PlanSchemas(ctx context.Context, pl *plan.Plan) map[addr.Provider][]byte {
	out := map[addr.Provider][]byte{}
	for a, modes := range typesOf(pl, p.Engine.Tree()) {
		sp, ds := p.Engine.Schema(ctx, a)
		if ds.HasErrors() || sp == nil || sp.Export == nil {
			continue
		}
		names := map[addr.Mode][]string{}
		for mode, set := range modes {
			names[mode] = slices.Sorted(maps.Keys(set))
		}
		if b, err := sp.Export(names); err == nil {
			out[a] = b
		}
	}
	return out
}

// SchemasFor returns the schemas in a plan file, for a configuration. complete is false if showing the plan needs others
// too.
func (f *SavedPlan) SchemasFor(tree *module.Tree) (found map[addr.Provider]*schema.Provider, complete bool, err error) {
	found = map[addr.Provider]*schema.Provider{}
	for a, b := range f.Schemas {
		if found[a], err = rpc.ImportSchemas(b); err != nil {
			return nil, false, fmt.Errorf("the schemas of the provider %s in the plan file cannot be read: %w", a.Display(), err)
		}
	}
	complete = true
	for a := range typesOf(f.Plan, tree) {
		complete = complete && found[a] != nil
	}
	tree.Walk(func(n *module.Node) {
		for _, p := range n.Config.Providers {
			a := n.Config.Source(p.Name)
			complete = complete && (found[a] != nil || a == addr.BuiltIn)
		}
	})
	return found, complete, nil
}
