package run

import (
	"time"

	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// Reads are the readings that the plans of a run may use.
type Reads struct {
	// ApprovedAge is how old a reading of the plan that was approved in this run may be to stand
	// for a new one.
	ApprovedAge time.Duration
	// Logs is the directory of what commands have read; "" keeps nothing.
	Logs string
}

// reads are the readings that the plan of a unit may use. What was read for the approved plan stands
// for a new reading as long as no unit before this one was to change anything after it.
func (w *operationWork) reads() *workdir.Reads {
	o := w.o.Reads
	out := &workdir.Reads{Logs: o.Logs, Now: w.Machine.Now}
	if made := w.approval.Time(); !made.IsZero() && w.Machine.Now().Sub(made) < o.ApprovedAge && !w.again && !w.followsChanges(w.Unit, map[*discovery.Unit]bool{}) {
		out.Approved, out.Expected = w.approval.Readings(), w.approval.Expects
	}
	return out
}

// followsChanges reports whether a unit that has its turn before a unit, since one needs the
// other, itself or through others, may have changed something in this run.
func (w *operationWork) followsChanges(u *discovery.Unit, seen map[*discovery.Unit]bool) bool {
	before := u.Needs
	if w.mode() == plan.Destroy {
		before = u.NeededBy
	}
	for _, n := range before {
		if seen[n] {
			continue
		}
		seen[n] = true
		if w.o.Approved[n.Name].Changes() || w.followsChanges(n, seen) {
			return true
		}
	}
	return false
}
