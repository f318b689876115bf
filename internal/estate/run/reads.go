package run

import (
	"time"

	"github.com/terrace-iac/terrace/internal/operation"
)

// Reads say what the plans of a run do not read. Zero reads everything.
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

// reads say what the plan of a unit does not read.
func (w *operationWork) reads() *operation.Reads {
	o := w.o.Plans.Reads
	out := &operation.Reads{Minimal: o.Minimal || w.at.extra.Minimal, MinimalData: o.MinimalData, MaxAge: o.MaxAge, Logs: o.Logs, Now: w.Machine.Now}
	if made := w.approval.Time(); !made.IsZero() && w.Machine.Now().Sub(made) < o.ApprovedAge && !w.again {
		out.Approved, out.Expected = w.approval.Readings(), w.approval.Expects
	}
	return out
}
