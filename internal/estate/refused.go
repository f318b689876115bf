package estate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
)

// # A run that did not begin
//
// Where something is wrong before a run, nothing of it runs. What came of each unit is
// told all the same: those with errors failed, those that come after them were kept
// from running by them, and all others were not run since the rest is not valid.

// Refused are the results of a run that did not begin, by name. Of units, those have
// failed in which something wrong was found by Open and Check; ds are all errors, of
// which the first is the cause where there are none about a unit.
func (e *Estate) Refused(ds diag.List) []*Result {
	now := e.o.Machine.Now()
	r := &Run{e: e, o: RunOptions{Plans: Plans{Destroy: e.o.Destroy}}, results: map[*Unit]*Result{}, blocked: map[*Unit]*Unit{}}
	cause := e.whyRefused(ds)
	for _, u := range e.Order(e.o.Destroy) {
		res := &Result{Unit: u, Started: now, Ended: now, Code: 1}
		r.results[u] = res
		if u.Excluded != "" {
			res.LeaveOut()
			continue
		}
		switch by := r.blocked[u]; {
		case u.wrong.HasErrors():
			res.Status, res.Reason, res.Cause, res.Diags = Failed, "run error", u.wrong.Errors()[0].Summary, u.wrong.Errors().Once()
		case by != nil:
			res.Status, res.Reason, res.Cause = EarlyExit, "ancestor error", by.Name
			res.Blocker = r.blocker(by)
		default:
			res.Status, res.Reason, res.Cause = EarlyExit, "run error", cause
			continue
		}
		for _, n := range r.after(u) {
			if have := r.blocked[n]; have == nil || u.Name < have.Name {
				r.blocked[n] = u
			}
		}
	}
	out := make([]*Result, 0, len(e.Units))
	for _, u := range e.Units {
		out = append(out, r.results[u])
	}
	return out
}

// Mistaken are the results of a run whose command is wrong: each unit failed by ds that
// does not come after another.
func (e *Estate) Mistaken(ds diag.List) []*Result {
	r := &Run{e: e, o: RunOptions{Plans: Plans{Destroy: e.o.Destroy}}}
	for _, u := range e.Units {
		waits := slices.ContainsFunc(r.before(u), func(n *Unit) bool { return n.Excluded == "" })
		if u.wrong = nil; !waits && u.Excluded == "" {
			u.wrong = ds
		}
	}
	return e.Refused(ds)
}

// whyRefused says why units did not run with which nothing is wrong.
func (e *Estate) whyRefused(ds diag.List) string {
	var names []string
	bad := 0
	for _, u := range e.Units {
		if u.wrong.HasErrors() {
			if bad++; bad <= namedUnits {
				names = append(names, u.Name)
			}
		}
	}
	switch text := strings.Join(names, ", "); {
	case bad > namedUnits:
		return fmt.Sprintf("nothing was run, since %d units are not valid, %s among them", bad, text)
	case bad > 0:
		return "nothing was run, since there are errors in " + text
	case ds.HasErrors():
		return "nothing was run: " + ds.Errors()[0].Summary
	}
	return "nothing was run"
}
