package cli

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

type refreshOptions struct{ operationFlags }

func refreshCommand(ctx context.Context, s *session, args []string) int {
	var o refreshOptions
	f := newFlags("refresh")
	o.add(f)
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 0 {
		return s.usageError("refresh", "Too many command line arguments", "Expected no positional arguments.")
	}
	if !s.useJSON(o.json) {
		return 1
	}
	defer s.finish()
	return runRefresh(ctx, s, &o)
}

// runRefresh updates the state from what is really there: a refresh-only plan,
// applied without a question.
func runRefresh(ctx context.Context, s *session, o *refreshOptions) int {
	o.refreshOnly, o.refresh, o.destroy = true, true, false
	r, ds := s.start(ctx, &o.operationFlags, "refresh", "OperationTypeRefresh")
	if r == nil {
		return s.fail(ds)
	}
	defer r.stop()
	if r.held.Current().Empty() {
		ds = append(ds, diag.Warnf(nil, "Empty or non-existent state", "There are currently no remote objects tracked in the state, so there is nothing to refresh.")...)
	}
	s.tell(ds)
	p, ds := r.engine.Plan(ctx, r.translate(r.held.Current()), r.options)
	if ds.HasErrors() || p == nil || p.Errored {
		return s.fail(ds)
	}
	if more := r.held.begin(ctx, len(p.Changes)); more.HasErrors() {
		return s.fail(append(ds, more...))
	}
	r.applying()
	res, more := r.engine.Apply(context.WithoutCancel(ctx), p, engine.ApplyOptions{Variables: r.vars, Persist: r.held.Write, Journal: r.held})
	ds = append(ds, more...)
	ds = append(ds, r.held.end(res.State)...)
	s.tell(ds)
	if ds.HasErrors() {
		return 1
	}
	r.outputs(res.State, o.reveal)
	r.stream.Outputs(res.State.Outputs)
	return 0
}

func refreshUsage() string {
	return usageText("Usage: "+view.Program+" [global options] refresh [options]\n\n"+
		"  Update the state file of your infrastructure with metadata that matches the\n  physical resources they are tracking.\n\n"+
		"  This will not modify your infrastructure, but it can modify your state file\n  to update metadata. This metadata might cause new changes to occur when you\n  generate a plan or call apply next.",
		operationOptions()...)()
}
