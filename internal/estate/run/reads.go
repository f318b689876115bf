package run

import (
	"time"

	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// Reads configures which results of earlier reads the plans of a run may reuse.
type Reads struct {
	// ApprovedAge is the maximum age of the reads of the plan that was approved in this run.
	// Older ones are not reused.
	ApprovedAge time.Duration
	// Logs is the directory in which commands record their reads. "" records nothing.
	Logs string
}

// reads returns the results of earlier reads that the plan of the unit may reuse. Reads of the
// approved plan may be reused if no unit that runs before this one may have changed anything
// since.
func (w *operationWork) reads() *workdir.Reads {
	o := w.o.Reads
	out := &workdir.Reads{Logs: o.Logs, Now: w.Machine.Now}
	if made := w.approval.Time(); !made.IsZero() && w.Machine.Now().Sub(made) < o.ApprovedAge && !w.again && !w.followsChanges(w.Unit, map[*discovery.Unit]bool{}) {
		out.Approved, out.Expected = w.approval.Readings(), w.approval.Expects
	}
	return out
}

// followsChanges reports whether any unit that must run before u, directly or indirectly, may
// have changed something in this run. seen contains the units that were already visited.
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
