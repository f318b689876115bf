package plan

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
)

// Options say what a plan is about. The zero value is a normal plan of everything. The flags
// of commands set them; the engine, the planner and runs over many units take them.
type Options struct {
	Mode Mode
	// SkipRefresh plans from the state alone: no object is read.
	SkipRefresh bool
	// MinimalRefresh reads an object only if the plan that is made from its state has a
	// change for it, and then plans it again, or if its schema has another version. What the
	// configuration no longer contains is not read.
	MinimalRefresh bool
	// MinimalData reads a data source only if its arguments are not those of the last time, or
	// if something that it depends on changes.
	MinimalData bool
	// RefreshMaxAge is how old a reading by an earlier command may be to stand for a new one;
	// 0 means that everything is read.
	RefreshMaxAge time.Duration

	Targets  []addr.Target // limits the plan to these and what they depend on; nil: everything
	Excludes []addr.Target // leaves these and what depends on them out
	Replace  []addr.Instance

	// GenerateTo is the file for generated configuration of import blocks whose resource has
	// none; "" generates nothing.
	GenerateTo string
	// Defer defers what cannot be planned because variables contain something unknown
	// (Plan.Deferred). Otherwise that is an error. Such a plan cannot be applied.
	Defer bool
	// Time is the result of plantimestamp(); zero means now. A plan that replaces another one
	// has the time of that.
	Time time.Time
	// Forget lets a plan to destroy everything leave objects behind that are not to be
	// destroyed; otherwise its apply ends with an error.
	Forget bool
}

// Readings are what earlier plans found (Plan.Readings), and which of it may stand for new
// readings.
type Readings struct {
	// Recent are those that stand for new ones, if the state still contains what it contained
	// then and the plan does not change the object otherwise than Expected says.
	Recent map[addr.Object]Reading
	// Data are those of data sources, however old, for MinimalData.
	Data map[addr.Object]Reading
	// Expected reports whether a change that was planned with a recent reading is known
	// already, so that there is no reason to read again; nil: none is.
	Expected func(*Change) bool
	// Note adds the readings of this plan to it.
	Note bool
}
