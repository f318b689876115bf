package planner

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
)

// Query runs the list blocks of the root module. Managed resources that they refer to have their
// values from state. Data sources that they refer to are read. Nothing is planned or changed. The
// mode of the input is ignored. With generate, the providers generate configuration.
func Query(ctx context.Context, in Input, generate bool, to resourceclient.ListObserver) diag.List {
	in.Mode, in.SkipRefresh = plan.RefreshOnly, true
	p := newDriver(ctx, in)
	p.listing = &listing{generate, to}
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

// listing is the destination of the results of list blocks.
type listing struct {
	generate bool
	to       resourceclient.ListObserver
}
