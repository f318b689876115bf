package workdir

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/plan/readlog"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// Reads gives a plan access to the objects that earlier commands read, so that the plan need not read
// them again. plan.Options decides which of them a plan uses.
type Reads struct {
	Logs string // directory of the read logs; "" stores nothing
	Now  func() time.Time
	// Approved contains the readings of the approved plan, if they are new enough. Expected
	// reports whether the approved plan contained a change. They replace the readings of the log.
	Approved map[addr.Object]plan.Reading
	Expected func(*plan.Change) bool
	Failed   func(error) // called if readings cannot be stored, which only costs time later; may be nil
}

// set sets the readings that a plan of the state from may use.
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

// keep stores the objects that a plan has read. done is the result of its apply; nil means that the
// plan has not been applied. r may be nil.
func (r *Reads) keep(p *plan.Plan, done *readlog.Applied) {
	if r == nil {
		return
	}
	if err := readlog.Keep(r.Logs, p, done); err != nil && r.Failed != nil {
		r.Failed(err)
	}
}
