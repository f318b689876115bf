package estate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/par"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/state/journal"
)

// # What was approved
//
// An apply plans each unit again, just before its turn, against what was really
// made before it. What was approved is not the plan to the letter but what happens
// to the objects that it covers: where the new plan does something else to one of
// them, or something to one that it did not cover, the unit stops before anything
// of it is done. What the approved plan listed as deferred is not new: it is what
// was to come. It is done without a question if nobody is there to answer one, and
// else asked for once for all units that come to such work at the same time.

// An Approval is what may happen to one unit.
type Approval struct {
	ops      map[object]plan.Op
	deferred []addr.Target
	whole    bool   // the unit was put off as a whole
	saved    *Saved // the plan comes from a file; nil if it was made in this run
}

type object struct {
	addr    addr.Instance
	deposed addr.DeposedKey
}

// Approve makes approvals of the results of a run that planned, by the names of
// the units.
func Approve(results []*Result) map[string]*Approval {
	out := make(map[string]*Approval, len(results))
	for _, res := range results {
		if res.Status == Succeeded {
			out[res.Unit.Name] = approval(res.Plan, res.Deferred)
		}
	}
	return out
}

// approval is that of a plan, nil if there is none, and of what it puts off.
func approval(p *plan.Plan, deferred []Deferral) *Approval {
	a := &Approval{ops: map[object]plan.Op{}}
	if p != nil {
		for _, c := range p.Changes {
			a.ops[object{c.Addr, c.Deposed}] = c.Op
		}
	}
	for _, d := range deferred {
		if d.Address == "" {
			a.whole = true
		} else if t, err := addr.ParseTarget(d.Address); err == nil {
			a.deferred = append(a.deferred, t)
		}
	}
	return a
}

// covers reports whether an object was put off.
func (a *Approval) covers(i addr.Instance) bool {
	return a.whole || slices.ContainsFunc(a.deferred, func(t addr.Target) bool { return t.Contains(i) })
}

// compare tells what a plan does that was not approved: what is new, and what was
// put off when the approved plan was made.
func (a *Approval) compare(p *plan.Plan) (news, later []*plan.Change) {
	for _, c := range p.Changes {
		if c.Op == plan.NoOp || c.Op == plan.Read {
			continue
		}
		op, had := a.ops[object{c.Addr, c.Deposed}]
		switch {
		case had && op == c.Op:
		case a.covers(c.Addr):
			later = append(later, c)
		default:
			news = append(news, c)
		}
	}
	return news, later
}

// approved holds a plan to what was approved, and asks for what it does that was
// put off.
func (w *work) approved(p *plan.Plan) (yes bool, ds diag.List) {
	if w.r.o.Approved == nil {
		return true, nil
	}
	a := w.r.o.Approved[w.u.Name]
	if a == nil {
		a = &Approval{}
	}
	if a.saved != nil {
		if ds := a.saved.stale(w, p); ds.HasErrors() {
			return false, ds
		}
	}
	news, later := a.compare(p)
	if len(news) > 0 {
		ds := diag.Errorf(nil, "Plan changed since it was approved", "With what was applied before, the unit %s needs other actions than those that were approved: %s. Nothing of it was applied. Run again to see and approve the new plan.", w.u.Name, changesText(news))
		ds[0].Code = "estate/plan-changed"
		return false, ds
	}
	return len(later) == 0 || w.r.o.Ask == nil || w.ask(p), nil
}

const mostNews = 20

func changesText(cs []*plan.Change) string {
	var out []string
	for i, c := range cs {
		if i == mostNews {
			out = append(out, fmt.Sprintf("and %d more", len(cs)-i))
			break
		}
		text := fmt.Sprintf("%s (%s)", c.Addr, c.Op)
		if c.Deposed != "" {
			text = fmt.Sprintf("%s deposed object %s (%s)", c.Addr, c.Deposed, c.Op)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// A question is one that waits for its answer.
type question struct {
	res   *Result
	pause *par.Break
	yes   bool
}

// ask waits for the answer whether to do what was put off before. Meanwhile the
// turn does not count among those that run.
func (w *work) ask(p *plan.Plan) bool {
	w.res.Plan, w.res.Counts = p, countsOf(p)
	if w.r.o.Asks != nil {
		w.r.o.Asks(w.u, w.engine, p)
	}
	q := &question{res: w.res}
	w.r.queue.Break(func(b *par.Break) {
		q.pause = b
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		w.r.asking = append(w.r.asking, q)
	})
	w.res.Plan, w.res.Counts = nil, Counts{}
	return q.yes
}

// waves asks for work that was put off, as often as units come to some, each time
// when nothing else is left to do.
func (r *Run) waves(ctx context.Context) {
	for {
		r.queue.Wait()
		r.mu.Lock()
		wave := r.asking
		r.asking = nil
		r.mu.Unlock()
		if len(wave) == 0 {
			return
		}
		slices.SortFunc(wave, func(a, b *question) int { return byName(a.res.Unit, b.res.Unit) })
		var plans []*Result
		for _, q := range wave {
			plans = append(plans, q.res)
		}
		yes := !r.stopping(ctx) && r.o.Ask(plans)
		for _, q := range wave {
			q.yes = yes
			q.pause.End()
		}
	}
}

// stale says why a saved plan does not hold for a unit any more; nothing if it does,
// or if the unit is already as the plan wants it.
func (s *Saved) stale(w *work, p *plan.Plan) diag.List {
	why := s.changed(journal.HeaderOf(w.hold.Current()), w.digest(), p)
	if why == "" || !p.HasChanges() {
		return nil
	}
	ds := diag.Errorf(nil, "Saved plan is stale", "The saved plan cannot be applied to the unit %s any more: %s. Nothing of the unit was changed. Plan again to see what there is to do.", w.u.Name, why)
	ds[0].Code = "estate/stale"
	return ds
}

// changed tells what is another than when the plan was saved.
func (s *Saved) changed(now journal.Header, digest string, p *plan.Plan) string {
	was := journal.HeaderOf(s.Plan.PrevRun)
	switch {
	case was.Lineage == "" && now.Lineage != "":
		return "its state was made by another operation after the plan was saved"
	case was.Lineage != now.Lineage:
		return "its state is another one now"
	case was.Serial != now.Serial:
		return fmt.Sprintf("its state was changed by another operation after the plan was saved (serial %d then, %d now)", was.Serial, now.Serial)
	case s.Digest != digest:
		return "its configuration was changed after the plan was saved"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Plan.Variables)) {
		v := s.Plan.Variables[name]
		if have, ok := p.Variables[name]; v.IsWhollyKnown() && (!ok || !have.RawEquals(v)) {
			return fmt.Sprintf("its input %q has another value than when the plan was saved", name)
		}
	}
	return ""
}
