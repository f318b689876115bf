package run

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/plan"
)

// approved holds a plan to what was approved, and asks for what it does that was
// deferred.
func (w *operationWork) approved(p *plan.Plan) (yes bool, ds diag.List) {
	if w.approval == nil {
		return true, nil
	}
	later, ds := w.approval.Check(p, saved.Now{Unit: w.Unit.Name, State: journal.HeaderOf(w.held.Current()), Digest: w.digest(), Again: w.again})
	if ds.HasErrors() {
		return false, ds
	}
	return !later || w.o.Ask == nil || w.ask(p), nil
}

// A question is one that waits for its answer.
type question struct {
	res    *report.Result
	resume func()
	yes    bool
}

// ask waits for the answer whether to do what was deferred before. Meanwhile the
// turn does not count among those that run.
func (w *operationWork) ask(p *plan.Plan) bool {
	w.res.Plan, w.res.Counts, w.res.Reads = p, p.Counts(), p.Reads
	if w.o.Asks != nil {
		w.o.Asks(w.Unit, w.module.engine, p)
	}
	yes := w.execution.ask(&question{res: w.res}, w.pause)
	w.res.Plan, w.res.Counts = nil, plan.Counts{}
	return yes
}

// ask has a question wait for its answer.
func (x *execution) ask(q *question, pause schedule.Pause) (yes bool) {
	pause(func(resume func()) {
		q.resume = resume
		x.mu.Lock()
		defer x.mu.Unlock()
		x.asking = append(x.asking, q)
	})
	return q.yes
}

// askAll asks for work that was deferred, for all units that came to some, when nothing
// else is left to do. It reports whether there were any.
func (x *execution) askAll(ctx context.Context) bool {
	x.mu.Lock()
	wave := x.asking
	x.asking = nil
	x.mu.Unlock()
	if len(wave) == 0 {
		return false
	}
	slices.SortFunc(wave, func(a, b *question) int { return discovery.ByName(a.res.Unit, b.res.Unit) })
	var plans []*report.Result
	for _, q := range wave {
		plans = append(plans, q.res)
	}
	yes := !x.stopping(ctx) && x.o.Ask(plans)
	for _, q := range wave {
		q.yes = yes
		q.resume()
	}
	return true
}
