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

// approved compares the plan p with the approved plan of the unit. It reports whether p may be
// applied. If p contains actions that were deferred at approval time, approved asks the user
// about them.
func (w *operationWork) approved(p *plan.Plan) (yes bool, ds diag.List) {
	if w.approval == nil {
		return true, nil
	}
	later, ds := w.approval.Check(p, saved.Now{Unit: w.Unit.Name, State: journal.HeaderOf(w.held.Current()), Digest: w.digest(), Again: w.again})
	if ds.HasErrors() {
		return false, ds
	}
	return !later || w.o.Approver == nil || w.ask(p), nil
}

// A question is a request for approval that waits for the user's answer.
type question struct {
	res    *report.Result
	resume func()
	yes    bool
}

// ask asks the user whether to carry out actions that were deferred at approval time, and waits
// for the answer. While it waits, the turn does not count against the limit of concurrent units.
func (w *operationWork) ask(p *plan.Plan) bool {
	w.res.Plan, w.res.Counts, w.res.Reads = p, p.Counts(), p.Reads
	w.o.Approver.Deferred(w.Unit, w.module.engine, p)
	yes := w.execution.ask(&question{res: w.res}, w.pause)
	w.res.Plan, w.res.Counts = nil, plan.Counts{}
	return yes
}

// ask queues the question q, pauses the turn until askAll has answered it, and returns the
// answer.
func (x *execution) ask(q *question, pause schedule.Pause) (yes bool) {
	pause(func(resume func()) {
		q.resume = resume
		x.mu.Lock()
		defer x.mu.Unlock()
		x.asking = append(x.asking, q)
	})
	return q.yes
}

// askAll asks the user once about all queued questions and resumes their turns with the answer.
// The scheduler calls it when no other work is left. It reports whether there were any questions.
// If the run is being stopped, the answer is no.
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
	yes := !x.stopping(ctx) && x.o.Approver.Approve(plans)
	for _, q := range wave {
		q.yes = yes
		q.resume()
	}
	return true
}
