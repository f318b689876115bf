// Package remote is what a run of an estate has to know when its units have their turns in
// other processes: what all turns have in common (Job), what one is given and what comes
// of it (Turn, Done), the files that travel (Blobs, Tree), and the conversation between
// the program and the one that speaks with the engine (Message).
//
// Main types: Job, Session, Blobs and Link. The one rule: nothing leaves this process but
// sealed, through Blobs or a Sealer, except on the pipe between two programs of one
// machine.
package remote

import (
	"encoding/json"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/plan"
)

// A Job is what the turns of all units of a run have in common.
type Job struct {
	ID string `json:"id"` // of the run
	// Version is that of the program that began the run, and of the workers that have its turns.
	Version string   `json:"version"`
	Args    []string `json:"args"` // the command line, without the program's name
	Env     []string `json:"env"`  // what of the environment says what is run: no credentials
	Root    string   `json:"root"` // the folder whose files the units may read, as the client has it
	Dir     string   `json:"dir"`  // the folder that the program was started in, below Root, with slashes
	// Tree names the files below Root in the blob store. "" says that workers see the same
	// files under the same path.
	Tree string `json:"tree,omitempty"`
	Repo bool   `json:"repo,omitempty"` // Root is a repository of git
	// Commits is what git says of the commits that filters are about, as JSON of git.Record, which
	// names the files of those that units were read in. nil: workers ask git themselves.
	Commits *Ref `json:"commits,omitempty"`

	Op       string    `json:"op"` // plan or apply
	At       time.Time `json:"at"` // what timestamp() gives in unit files
	Who      string    `json:"who"`
	Approved *Ref      `json:"approved,omitempty"` // the saved plan that is applied
	Asked    bool      `json:"asked,omitempty"`    // Approved was shown and asked about just now, and is no file
	Asks     bool      `json:"asks,omitempty"`     // deferred work is asked about
	Save     bool      `json:"save,omitempty"`     // plans are wanted, whatever Args say
	Calls    int       `json:"calls,omitempty"`    // how many calls of providers a turn has at once; 0: as always
	// CallsOf is how many of them a turn has at once of one configuration of a provider, by
	// the provider's source.
	CallsOf map[string]int `json:"calls_of,omitempty"`
	Color   bool           `json:"color,omitempty"`
	Width   int            `json:"width,omitempty"`
}

// A Turn is what a worker is given for the turn of a unit.
type Turn struct {
	Unit   string         `json:"unit"`
	Number int            `json:"number"`           // counts the turns of the unit in the run, from 1
	Needs  map[string]Ref `json:"needs,omitempty"`  // outputs of the units that it needs, by name
	Yes    bool           `json:"yes,omitempty"`    // deferred work was approved
	Memory int            `json:"memory,omitempty"` // MiB that the turn takes; 0: nobody counts
}

// Done is what comes of a turn.
type Done struct {
	Outcome schedule.Outcome `json:"outcome"`
	// Asks says that the turn was broken off since it came to work that was deferred and
	// has to be approved.
	Asks bool `json:"asks,omitempty"`
	// Outputs are those of the unit, as EncodeOutputs has them; nil: what its state says.
	Outputs *Ref `json:"outputs,omitempty"`
	Report  Ref  `json:"report"` // for the client
}

// A Ref is a text that travels: in itself if it is small, else through the blob store.
type Ref struct {
	Text []byte `json:"text,omitempty"`
	Blob string `json:"blob,omitempty"`
}

// A Report is what the client hears of a turn.
type Report struct {
	// Chunks are the output of the turn, in order.
	Chunks []Chunk `json:"chunks,omitempty"`
	Result *Result `json:"result"`
	// Warnings are those about no place, which are shown once for all units.
	Warnings []Warning `json:"warnings,omitempty"`
	// Errors is the text of what was wrong.
	Errors string `json:"errors,omitempty"`
	// Pieces and Page are what the command line shows of the plan, in its own form.
	Pieces json.RawMessage `json:"pieces,omitempty"`
	Page   json.RawMessage `json:"page,omitempty"`
	// Plan is the unit of a saved plan, as saved.Saving exports it.
	Plan []byte `json:"plan,omitempty"`
}

// A Chunk is text for one of the streams of the client.
type Chunk struct {
	To   Stream `json:"to"`
	Text string `json:"text"`
}

// A Stream is where text goes.
type Stream string

// The streams. Events are lines of -json.
const (
	Stdout Stream = "out"
	Stderr Stream = "err"
	Events Stream = "events"
)

// A Warning is a message without a place.
type Warning struct {
	Code  string `json:"code,omitempty"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// A Result is a report.Result without what only its process has.
type Result struct {
	Status   report.Status     `json:"status"`
	Reason   string            `json:"reason,omitempty"`
	Cause    string            `json:"cause,omitempty"`
	Message  string            `json:"message,omitempty"`
	Started  time.Time         `json:"started"`
	Ended    time.Time         `json:"ended"`
	Counts   plan.Counts       `json:"counts"`
	Reads    plan.Reads        `json:"reads"`
	Changes  bool              `json:"changes,omitempty"`
	Deferred []report.Deferral `json:"deferred,omitempty"`
	Code     int               `json:"code,omitempty"`
}

// ResultOf is what of a result travels.
func ResultOf(r *report.Result) *Result {
	return &Result{r.Status, r.Reason, r.Cause, r.Message, r.Started, r.Ended, r.Counts, r.Reads, r.Changes, r.Deferred, r.Code}
}

// Fill makes a result what travelled. It ended when the engine took it; how long it took, its
// worker knows: the clocks of workers may be wrong, and none is compared with another.
func (r *Result) Fill(into *report.Result, ended time.Time) {
	into.Status, into.Reason, into.Cause, into.Message, into.Code = r.Status, r.Reason, r.Cause, r.Message, r.Code
	into.Counts, into.Reads, into.Changes, into.Deferred = r.Counts, r.Reads, r.Changes, r.Deferred
	if !ended.IsZero() && r.Ended.After(r.Started) {
		into.Started, into.Ended = ended.Add(r.Started.Sub(r.Ended)), ended
	}
}
