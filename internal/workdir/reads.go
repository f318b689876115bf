package workdir

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/plan/readlog"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// Reads are the readings of earlier commands, which plan.Options may let a plan use.
type Reads struct {
	Logs string // the directory of what commands have read; "" keeps nothing
	Now  func() time.Time
	// Approved are the readings of the plan that was approved, if they are new enough, and
	// Expected the changes that it had. They go before those of the log.
	Approved map[addr.Object]plan.Reading
	Expected func(*plan.Change) bool
	Failed   func(error) // called when readings were not kept, which only costs time; may be nil
}

// set sets the readings that a plan from a state may use.
func (r *Reads) set(out *engine.PlanOptions, from *state.State) {
	out.Readings = plan.Readings{Note: true}
	if out.RefreshMaxAge > 0 || out.MinimalData {
		log := readlog.Open(r.Logs, from)
		out.Readings.Data = log.Data()
		if out.RefreshMaxAge > 0 {
			out.Readings.Recent = log.Recent(r.Now().Add(-out.RefreshMaxAge), r.Now())
		}
	}
	if len(r.Approved) > 0 {
		out.Readings.Recent, out.Readings.Expected = r.Approved, r.Expected
	}
}

// keep keeps what a plan has read, and what became of its apply, nil before it.
func (r *Reads) keep(p *plan.Plan, done *readlog.Applied) {
	if r == nil {
		return
	}
	if err := readlog.Keep(r.Logs, p, done); err != nil && r.Failed != nil {
		r.Failed(err)
	}
}
