package run

import (
	"time"

	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/readlog"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// Reads say what the plans of a run do not read, see engine.PlanOptions. Zero reads
// everything.
type Reads struct {
	Minimal     bool
	MinimalData bool
	// MaxAge is how old a reading of an earlier command may be to stand for a new one.
	MaxAge time.Duration
	// ApprovedAge is the same for readings of the plan that was approved in this run.
	ApprovedAge time.Duration
	// Logs is the folder of what commands have read; "" keeps nothing.
	Logs string
}

// reads sets what the plan of a unit does not read of a state.
func (t *Turn) reads(out *engine.PlanOptions, prev *state.State) {
	o, now := t.o.Plans.Reads, t.Machine.Now()
	out.MinimalRefresh, out.MinimalData = o.Minimal || t.extra.Minimal, o.MinimalData
	r := engine.Readings{Note: true}
	if o.MaxAge > 0 || o.MinimalData {
		log := readlog.Open(o.Logs, prev)
		r.Args = log.Args()
		if o.MaxAge > 0 {
			r.Recent = log.Recent(now.Add(-o.MaxAge))
		}
	}
	if made := t.approval.Time(); !made.IsZero() && now.Sub(made) < o.ApprovedAge && !t.again {
		if recent := t.approval.Readings(); len(recent) > 0 {
			r.Recent, r.Expected = recent, t.approval.Expects
		}
	}
	out.Readings = r
}

// noteReads keeps what a plan has read, and what its apply left in state, nil before.
func (t *Turn) noteReads(p *plan.Plan, final *state.State) {
	_ = readlog.Keep(t.o.Plans.Reads.Logs, p, final, t.Machine.Now()) // a help and no more
}
