package planner

import (
	"context"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// Query runs the list blocks of the root module. Managed resources that they refer to have their
// values from state. Data sources that they refer to are read. Nothing is planned or changed. The
// mode of the input is ignored.
func Query(ctx context.Context, in Input, how resourceclient.ListOptions) diag.List {
	in.Mode, in.SkipRefresh = plan.RefreshOnly, true
	p := newDriver(ctx, in)
	p.listing = &how
	ds := p.prepare()
	if ds.HasErrors() {
		return ds
	}
	var w parallel.Work[job]
	p.graph.Rest = w.Break
	for _, r := range p.ev.Root.Resources() {
		if r.Addr().Resource.Mode == addr.List {
			w.Add(func(t *demand.Task) { r.Value(t) })
		}
	}
	w.Do(p.in.Providers.Parallelism, func(do job) { do(p.graph.Task(p.ctx)) })
	p.graph.Rest = nil
	return append(ds, p.messages(p.client.Close())...)
}

// ProviderDigests returns the digests of the provider configurations of the root module whose
// values are known, also of those without a block.
func ProviderDigests(ctx context.Context, in Input) (map[addr.ProviderConfig]state.Digest, diag.List) {
	in.Mode, in.SkipRefresh = plan.RefreshOnly, true
	p := newDriver(ctx, in)
	ds := p.prepare()
	if ds.HasErrors() {
		return nil, ds
	}
	t := p.graph.Task(ctx)
	all := p.ev.Root.ProviderInstances(t)
	root := p.in.Eval.Tree.Root.Config
	names := map[string]bool{}
	for name := range root.RequiredProviders {
		names[name] = true
	}
	for _, r := range root.Resources {
		names[r.LocalProvider()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if root.Providers[name] == nil && !root.Source(name).IsBuiltIn() {
			if pc, more := p.ev.Root.ResolveProvider(t, config.ProviderRef{Name: name}, p.ev.Root); !more.HasErrors() {
				all = append(all, pc)
			}
		}
	}
	out := map[addr.ProviderConfig]state.Digest{}
	for _, pc := range all {
		if d := resourceclient.ConfigDigest(t, pc); d != (state.Digest{}) {
			out[pc.Addr] = d
		}
	}
	return out, append(ds, p.messages(p.client.Close())...)
}

// A PendingImport is an object that the next apply imports because of an import block.
type PendingImport struct {
	Addr     addr.Instance
	Provider addr.Provider
	*plan.Import
}

// PendingImports returns the imports of the import blocks whose addresses are not in the state.
// Imports of objects that are not known yet are left out, and so are invalid ones.
func PendingImports(ctx context.Context, in Input) []PendingImport {
	in.Mode, in.SkipRefresh = plan.Normal, true
	p := newDriver(ctx, in)
	p.prepare()
	t := p.graph.Task(ctx)
	var out []PendingImport
	for _, it := range p.imports.Sorted() {
		n := p.in.Eval.Tree.Node(it.Addr.Module)
		if n == nil || p.prior.Instance(it.Addr) != nil {
			continue
		}
		name := config.ImpliedProvider(it.Addr.Resource.Type)
		if r := n.Config.Resources[it.Addr.Resource]; r != nil {
			name = r.LocalProvider()
		}
		pending := PendingImport{Addr: it.Addr, Provider: n.Config.Source(name)}
		ps, ds := p.client.Schema(pending.Provider)
		if ds.HasErrors() {
			continue
		}
		s := ps.Resource(addr.Managed, it.Addr.Resource.Type)
		if s == nil {
			continue
		}
		if pending.Import, ds = it.ID(t, s); !ds.HasErrors() {
			out = append(out, pending)
		}
	}
	p.client.Close()
	return out
}
