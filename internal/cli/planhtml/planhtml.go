// Package planhtml writes the plan of an estate as one page for a browser: a map of
// the units with what changes where, each unit's changes, what is deferred and why,
// where its inputs come from, and a search over all of it. The page needs neither a
// server nor a network.
//
// Main types: Page and Unit. The one rule: nothing of a page is markup but what stands
// in this package's own files; all that comes from outside is data, which the page's
// script puts into the document as text.
//
// # The file
//
// The page is a frame with a style, a script and the data as JSON. Text that stands in
// many units is there once: lines of changes, changes as a whole, places and file names
// are indices into tables (encode.go). The page's policy allows this one script and
// this one style, by their digests, and no address at all.
package planhtml

import "github.com/terrace-iac/terrace/plan"

// A Page is what is shown.
type Page struct {
	Title   string // such as "Plan of 12 units in live"
	Command string // that made it, in words
	Made    string // when, in words
	Program string // and version, that made it
	Units   []Unit
}

// State is what became of a unit. The page tells states apart by sign, word and color.
type State string

// The states.
const (
	Planned  State = "planned"
	Failed   State = "failed"
	NotRun   State = "not run" // since another failed, or the run was stopped
	Excluded State = "excluded"
	Outside  State = "outside" // it lies outside of the estate; only its name is known
)

// A Unit is one box of the map.
type Unit struct {
	Name    string
	State   State
	Summary string // what came of it, in a sentence
	Counts  plan.Counts
	Needs   []int // indices of other units of the page

	Messages []string // errors and warnings, as a terminal shows them
	Changes  []Change
	Waits    []Wait
	Inputs   []Input
}

// Kind says what a change is about.
type Kind uint8

// The kinds.
const (
	Drift Kind = iota // found changed outside of the program
	Resource
	Output
)

// A Change is a part of a unit's plan.
type Change struct {
	Kind Kind
	Op   string // create, update, delete, read, forget, or two of them with a dash between
	Text string // as a terminal shows it, without colors
}

// A Wait is something that is deferred.
type Wait struct {
	What string // its address; "" for the unit as a whole
	Why  string
	At   string   // the place that has to be known; may be empty
	For  []Source // the outputs that it waits for
}

// A Source is an output of another unit.
type Source struct {
	Unit  string // that has the output
	Ref   string // how it is read
	Input string // that is made of it; may be empty
	At    string // where it is read
}

// An Input is one input of a unit, or a part of one, and where it comes from.
type Input struct {
	Name  string
	Value string // in words where it must not be seen
	Steps []Step // from the place that gives it to where it was written
}

// A Step is one place on the way of an input.
type Step struct {
	Text     string
	File     string
	Line     int
	Column   int
	Role     string // of the file
	Replaced bool   // the value there lost to the one before
}
