// Package report contains the results of the units of a run: a Result for each, with the parts
// that were deferred, and the report file.
//
// Main types: Result, Deferral and Options. The one rule: a report has the form of Terragrunt's
// schema v4, so that programs that read such reports can read it.
package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
)

// A Result is the result of one unit in a run.
type Result struct {
	Unit    *discovery.Unit
	Status  Status
	Reason  string // reason in reports: run error, ancestor error or exclude block
	Cause   string // name of the dependency that failed or did not run, label of the block that decided, or summary of the error
	Message string // message of the ignore block that turned the failure into a success
	Blocker Blocker
	Started time.Time
	Ended   time.Time
	Diags   diag.List
	Set     *source.Set // source text of Diags; nil means the text of the estate
	Plan    *plan.Plan
	Counts  plan.Counts
	Reads   plan.Reads
	Changes bool // the plan contains changes
	Drift   int  // objects that changed outside of the configuration, in a refresh-only plan; otherwise 0
	// Accepted is the drift that the list of accepted drift contains.
	Accepted []plan.AcceptedDrift
	// Deferred contains the parts that cannot be planned before other units are applied.
	Deferred []Deferral
	Code     int
	// Interrupted means that the unit failed, or was not run, after the run was interrupted.
	Interrupted bool
}

// A Blocker is the unit that caused an ancestor error: it failed, or it was not run. The zero
// value means none.
type Blocker struct {
	Name string
	Kept bool // it was not run
}

// Status is the outcome of a unit in a run.
type Status string

// The statuses, as they are written in run reports.
const (
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Excluded  Status = "excluded"
	EarlyExit Status = "early exit"
)

// LeaveOut sets the result of a unit that is excluded. The reason becomes its cause, unless its
// own exclude block excludes it.
func (r *Result) LeaveOut() {
	r.Status, r.Reason, r.Cause, r.Code = Excluded, "exclude block", r.Unit.Excluded, 0
	if r.Cause == discovery.ByItself {
		r.Cause = ""
	}
}

// Fail sets the result of a unit that failed with messages. The first error is the cause.
func (r *Result) Fail(ds diag.List) {
	r.Status, r.Reason, r.Code = Failed, "run error", max(r.Code, 1)
	r.Cause = ds.Errors()[0].Summary
}

// Break sets the result of a unit that was not run.
func (r *Result) Break(reason, cause string) {
	r.Status, r.Reason, r.Cause, r.Code = EarlyExit, reason, cause, 1
}

// A Deferral is an object or a unit that cannot be planned before other units are applied.
type Deferral struct {
	Address string        // address in the unit's module; "" for the unit as a whole
	Reason  string        // reason in words, which can follow "because"
	At      *source.Range // source range of the unknown value; nil if there is none
	Waits   []Wait
	Objects []string // addresses of the objects of the unit that it waits for
}

// A Wait is an output of another unit that a deferral waits for.
type Wait struct {
	Unit  string       // name of the unit with the output
	Ref   string       // reference to the output, such as dependency.net.outputs.id
	Input string       // input that depends on the output; "" if no input does
	At    source.Range // source range of the reference
	Where string       // At as text, relative to the estate's root
}

// String returns the deferral as a sentence without a period.
func (d Deferral) String() string {
	what := d.Address
	if what == "" {
		what = "all of it"
	}
	return plan.DeferralText(what, d.Reason, d.At, slices.Concat(d.Objects, waitTexts(d.Waits)))
}

// waitTexts returns the outputs as text, each once.
func waitTexts(all []Wait) []string {
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
	return out
}
