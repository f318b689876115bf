package workdir

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/plan/readlog"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// Reads say what a plan does not read, see engine.PlanOptions. Zero reads everything.
type Reads struct {
	Minimal     bool
	MinimalData bool
	MaxAge      time.Duration // how old a reading of an earlier command may be to stand for a new one
	Logs        string        // the folder of what commands have read; "" keeps nothing
	Now         func() time.Time
	// Approved are the readings of the plan that was approved, if they are new enough, and
	// Expected the changes that it had. They go before those of the log.
	Approved map[addr.Object]plan.Reading
	Expected func(*plan.Change) bool
	Failed   func(error) // called when readings were not kept, which only costs time; may be nil
}

// set sets what a plan from a state does not read.
func (r *Reads) set(out *engine.PlanOptions, from *state.State) {
	out.MinimalRefresh, out.MinimalData = r.Minimal, r.MinimalData
	out.Readings = engine.Readings{Note: true}
	if r.MaxAge > 0 || r.MinimalData {
		log := readlog.Open(r.Logs, from)
		out.Readings.Data = log.Data()
		if r.MaxAge > 0 {
			out.Readings.Recent = log.Recent(r.Now().Add(-r.MaxAge), r.Now())
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
