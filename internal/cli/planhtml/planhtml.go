// Package planhtml writes the plan of an estate as one HTML page: a map of the units, the
// changes of each unit, the deferred changes with their reasons, the origins of inputs, and a
// search. The page needs neither a server nor a network.
//
// Main types: Page and Unit. The one rule: only the files of this package contain markup. All
// other content is data, which the page's script inserts into the document as text.
//
// # The file
//
// The page contains a style, a script and the data as JSON. Text that many units share is
// written once: lines, changes, source ranges and file names are indices into tables
// (encode.go). The security policy of the page allows this script and this style, by their
// digests, and no address.
package planhtml

import (
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/plan"
)

// A Page is the content of a page.
type Page struct {
	Dir     string // the name of the directory
	Estate  bool   // the plan is that of an estate, not of one directory
	Title   string // such as "Plan of 12 units in live"
	Command string // the command that made the plan, as text
	From    string // the branch and revision of the configuration, as text; may be empty
	Made    string // the time of the plan, as text
	Program string // the program that made the plan, with its version
	// Compares means that the page shows the differences between two revisions, and not a plan.
	Compares bool
	Noun     string // the word for a box, such as "module"; "" means "unit"
	Causes   bool   // the user requested causes: Markdown names them
	Units    []Box
	// Messages are about several units, or about none. The page does not show them.
	Messages []Message
}

// State is the result of a unit. The page distinguishes states by symbol, word and color.
type State string

// Results of a unit.
const (
	Planned  State = "planned"
	Failed   State = "failed"
	NotRun   State = "not run" // another unit failed, or the run was stopped
	Excluded State = "excluded"
	Outside  State = "outside" // not part of the estate; only its name is known
)

// A Box is one box of the map.
type Box struct {
	Name    string
	State   State
	Summary string // the result as a sentence
	Counts  plan.Counts
	Needs   []int // indices of the units that the unit depends on

	Messages []Message
	Changes  []Change
	Waits    []Wait
	Inputs   []Input
	Origins  []view.Origin // of the changes, if the user requested causes
}

// A Message is an error or a warning.
type Message struct {
	Error bool   `json:"error,omitempty"`
	Text  string `json:"text"` // as printed on a terminal
}

// Kind is the kind of a change.
type Kind uint8

// Kinds of changes.
const (
	Drift Kind = iota // made outside of the program
	Resource
	Output
	Line // a line of the configuration that differs from another revision, with its effects
)

// A Change is a part of a unit's plan.
type Change struct {
	Kind Kind
	Op   string // create, update, delete, read, forget, or two of them separated by a dash
	Text string // the text as printed on a terminal, without colors
	// Causes are the causes of lines of Text, in the order of the lines.
	Causes []view.LineCause
}

// A Wait is a deferred change.
type Wait struct {
	What string // its address; "" for the whole unit
	Why  string
	At   string   // the source range of the expression that must be known; may be empty
	For  []Source // the outputs that it waits for
}

// A Source is an output of another unit.
type Source struct {
	Unit  string // the unit with the output
	Ref   string // the expression that reads it
	Input string // the input that is computed from it; may be empty
	At    string // the source range of the expression
}

// An Input is one input of a unit, or a part of one, with its origin.
type Input struct {
	Name  string
	Value string // the value; a description if it is secret
	Steps []Step // from the expression that gives the value back to its origin
}

// A Step is one source range between an input and its origin.
type Step struct {
	Text     string
	File     string
	Line     int
	Column   int
	Role     string // role of the file
	Replaced bool   // another value overrides this one
}
