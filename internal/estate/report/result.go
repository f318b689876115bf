// Package report is what came of the units of a run: a Result for each, with what was
// deferred, and the report that is written of them to a file.
//
// Main types: Result, Deferral and Options. The one rule: a report is in the form of
// Terragrunt's schema v4, so that what reads that reads this.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
)

// A Result is what came of one unit in a run.
type Result struct {
	Unit    *discovery.Unit
	Status  Status
	Reason  string // for reports: run error, ancestor error, exclude block
	Cause   string // the unit before it that failed or did not run, the label of the block that decided, or the error's summary
	Message string // what the ignore block says that took a failure for success
	Blocker Blocker
	Started time.Time
	Ended   time.Time
	Diags   diag.List
	Set     *source.Set // where the places in Diags lie, if not in the estate's own
	Plan    *plan.Plan
	Counts  plan.Counts
	Reads   plan.Reads
	Changes bool // the plan would do something
	// Deferred is what cannot be planned before other units are applied.
	Deferred []Deferral
	Code     int
}

// A Blocker is the unit that is behind an ancestor error: that failed first, or that was
// kept from running. The zero value is none.
type Blocker struct {
	Name string
	Kept bool // it did not fail: it was not run
}

// Status is what became of a unit in a run.
type Status string

// The statuses, in the words of run reports.
const (
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Excluded  Status = "excluded"
	EarlyExit Status = "early exit"
)

// LeaveOut makes the result of a unit that takes no part. Why is its cause, unless that
// is its own exclude block.
func (r *Result) LeaveOut() {
	r.Status, r.Reason, r.Cause, r.Code = Excluded, "exclude block", r.Unit.Excluded, 0
	if r.Cause == discovery.ByItself {
		r.Cause = ""
	}
}

// Fail notes that the unit failed with messages, the first of which is the cause.
func (r *Result) Fail(ds diag.List) {
	r.Status, r.Reason, r.Code = Failed, "run error", max(r.Code, 1)
	r.Cause = ds.Errors()[0].Summary
}

// Break notes that the unit was not run.
func (r *Result) Break(reason, cause string) {
	r.Status, r.Reason, r.Cause, r.Code = EarlyExit, reason, cause, 1
}

// A Deferral is something that cannot be planned before other units are applied.
type Deferral struct {
	Address string        // in the unit's module; "" for the unit as a whole
	Reason  string        // in words, to go behind "because"
	At      *source.Range // what has to be known; nil if there is no place for it
	Waits   []Wait
}

// A Wait is an output that something waits for.
type Wait struct {
	Unit  string       // the unit that has the output
	Ref   string       // how it is read, such as dependency.net.outputs.id
	Input string       // the input that is made of it; "" if it goes elsewhere
	At    source.Range // where it is read
	Where string       // the same for people, from the estate's root
}

// String tells the deferral in a sentence without a period.
func (d Deferral) String() string {
	what := d.Address
	if what == "" {
		what = "all of it"
	}
	text := what + ": " + d.Reason
	if d.At != nil {
		text += fmt.Sprintf(" (%s:%d)", d.At.Filename, d.At.Start.Line)
	}
	if len(d.Waits) == 0 {
		return text
	}
	return text + "; it waits for " + waitsText(d.Waits)
}

// waitsText lists what is waited for, each output once.
func waitsText(all []Wait) string {
	var out []string
	for _, w := range all {
		text := fmt.Sprintf("%s (unit %s, read at %s", w.Ref, w.Unit, w.Where)
		if w.Input != "" {
			text += ", input " + w.Input
		}
		if text += ")"; !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}
