package plan

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
)

// Options configures a plan. The zero value makes a normal plan of everything. Command flags
// set them. The engine, the planner and runs over many units use them.
type Options struct {
	Mode Mode
	// SkipRefresh plans from the stored state. No object is read.
	SkipRefresh bool
	// MinimalRefresh skips reading an object if the plan from stored state has no change for
	// it. Otherwise the object is read and planned again. Objects with another schema version
	// are always read. Objects that the configuration no longer contains are not read.
	MinimalRefresh bool
	// MinimalData reads a data source only if its arguments changed since the last read, or if
	// an object that it depends on changes.
	MinimalData bool
	// RefreshMaxAge is the maximum age at which a reading by an earlier command replaces a new
	// one. 0 means that everything is read.
	RefreshMaxAge time.Duration

	// Targets limit the plan to these and their dependencies; nil means everything. Excludes omit
	// these and everything that depends on them. Both can contain patterns; the plan contains
	// what they match.
	Targets, Excludes []addr.Target
	Replace           []addr.Instance
	// ReplacePatterns are replaced like Replace: all instances in state that they match.
	ReplacePatterns []addr.Target

	// GenerateTo is the file for generated configuration of import blocks without a resource
	// block. "" generates nothing.
	GenerateTo string
	// Defer defers objects that cannot be planned because values are unknown, with everything
	// that depends on them; see Plan.Deferred. Without Defer that is an error. A plan to destroy
	// defers nothing.
	Defer bool
	// DeferInputs only defers objects that cannot be planned because variables contain unknown
	// values. A plan that defers such objects cannot be applied.
	DeferInputs bool
	// Causes adds to each change the places that set its new values; see Change.Causes.
	Causes bool
	// AllOrigins also adds the places that set the other values; see Change.Origins.
	AllOrigins bool
	// Was contains the texts that places had in another revision, by FILE:LINE; see Cause.Was.
	Was map[string]string `json:"-"`
	// Accept is the list of accepted drift, which Plan.Drift does not contain.
	Accept Acceptances
	// Time is the result of plantimestamp(). Zero means now. A plan that replaces another plan
	// uses the time of that plan.
	Time time.Time
	// Forget allows a plan to destroy everything to leave objects that must not be destroyed.
	// Without Forget its apply ends with an error.
	Forget bool
}

// Readings are results of earlier plans (Plan.Readings) that may replace reading an object
// again.
type Readings struct {
	// Recent readings replace new ones if the state still contains the same object, and the
	// plan makes no change to the object other than those that Expected accepts.
	Recent map[addr.Object]Reading
	// Data are readings of data sources of any age, for MinimalData.
	Data map[addr.Object]Reading
	// Expected reports whether a change that was planned with a recent reading is already
	// known, so that reading the object again is not necessary. nil means that no change is.
	Expected func(*Change) bool
	// Note adds the readings of this plan to the plan.
	Note bool
}
