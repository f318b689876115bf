// Package remote contains the data of a run whose units run in other processes: the data that all
// turns share (Job), the input and result of a turn (Turn, Done), the files of the estate
// (Blobs), and the messages between this program and the one that talks to the engine (Message).
//
// Main types: Job, Session, Blobs and Link. The one rule: everything that leaves this process is
// sealed, through Blobs or a Sealer, except messages on the pipe between two programs of one
// machine.
package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/plan"
)

// A Job contains the data that the turns of all units of a run share.
type Job struct {
	Format int    `json:"format"` // JobFormat
	ID     string `json:"id"`     // ID of the run
	// Version is the version of the program that began the run, and of its workers.
	Version string `json:"version"`
	// Request contains the command and its options. Its paths are those of the client.
	Request request.Request `json:"request"`
	Env     []string        `json:"env"`  // environment variables that unit files and modules read; no credentials
	Root    string          `json:"root"` // directory whose files the units may read, on the client
	Dir     string          `json:"dir"`  // working directory of the program, relative to Root, with slashes
	// Tree is the name of the files below Root in the blob store. "" means that workers have the
	// same files at the same path.
	Tree string `json:"tree,omitempty"`
	Repo bool   `json:"repo,omitempty"` // Root is a git repository
	// Commits contains git's answers about the commits of filters, as a git.Record in JSON, with
	// the names of the trees from which units were read. nil means that workers run git
	// themselves.
	Commits *Ref `json:"commits,omitempty"`

	Op       string    `json:"op"` // operation on the units: plan, apply, validate or init
	At       time.Time `json:"at"` // result of timestamp() in unit files
	Who      string    `json:"who"`
	Approved *Ref      `json:"approved,omitempty"` // saved plan to apply
	Asked    bool      `json:"asked,omitempty"`    // Approved was approved in this run, and does not come from a file
	Asks     bool      `json:"asks,omitempty"`     // the user is asked about deferred actions
	Save     bool      `json:"save,omitempty"`     // plans are returned, whatever Request contains
	Calls    int       `json:"calls,omitempty"`    // concurrent provider calls of a turn; 0 means the default
	// CallsOf is the maximum number of concurrent calls of a turn to one configuration of a
	// provider, by the provider's source.
	CallsOf map[string]int `json:"calls_of,omitempty"`
	// Was contains the texts that places had in the revision of -since; see plan.Options.
	Was   map[string]string `json:"was,omitempty"`
	Color bool              `json:"color,omitempty"`
	Width int               `json:"width,omitempty"`
}

// JobFormat is the version of the form of Job and Turn. It changes whenever a worker with another
// form would misunderstand them.
const JobFormat = 2

// UnmarshalJSON implements json.Unmarshaler. A job of another format, or with unknown fields, is
// an error: a worker must not run a part of what the user requested.
func (j *Job) UnmarshalJSON(text []byte) error {
	var of struct{ Format int }
	if err := json.Unmarshal(text, &of); err != nil {
		return err
	}
	if of.Format != JobFormat {
		return fmt.Errorf("the job has the format %d, and this program reads the format %d: the run was begun by another version", of.Format, JobFormat)
	}
	type fields Job
	return Strictly(text, (*fields)(j), "job")
}

// UnmarshalJSON implements json.Unmarshaler. Unknown fields are an error.
func (t *Turn) UnmarshalJSON(text []byte) error {
	type fields Turn
	return Strictly(text, (*fields)(t), "turn")
}

// Strictly decodes JSON. Unknown fields are an error. name describes the value in the error.
func Strictly(text []byte, into any, name string) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the %s cannot be read by this version of the program: %w", name, err)
	}
	return nil
}

// A Turn is the input of a worker that runs a unit.
type Turn struct {
	Unit   string         `json:"unit"`
	Number int            `json:"number"`           // number of the turn of this unit in the run, starting at 1
	Needs  map[string]Ref `json:"needs,omitempty"`  // outputs of the units it depends on, by name
	Yes    bool           `json:"yes,omitempty"`    // deferred actions were approved
	Memory int            `json:"memory,omitempty"` // memory of the turn in MiB; 0 means that it is not considered
}

// Done is the result of a turn.
type Done struct {
	Outcome schedule.Outcome `json:"outcome"`
	// Asks means that the turn stopped at deferred actions that need approval.
	Asks bool `json:"asks,omitempty"`
	// Outputs contains the outputs of the unit, as EncodeOutputs returns them. nil means that
	// those in its state are used.
	Outputs *Ref `json:"outputs,omitempty"`
	Report  Ref  `json:"report"` // a Report for the client
}

// A Ref refers to a text. A small text is contained in the Ref, and a large one is in the blob
// store.
type Ref struct {
	Text []byte `json:"text,omitempty"`
	Blob string `json:"blob,omitempty"`
}

// A Report contains the data of a turn that the client shows or saves.
type Report struct {
	// Chunks contains the output of the turn, in order.
	Chunks []Chunk `json:"chunks,omitempty"`
	Result *Result `json:"result"`
	// Warnings contains the warnings without a source range, which are shown once for all units.
	Warnings []Warning `json:"warnings,omitempty"`
	// Errors is the text of the errors.
	Errors string `json:"errors,omitempty"`
	// Pieces, Origins and Page contain the plan in the form that the command line shows.
	Pieces  json.RawMessage `json:"pieces,omitempty"`
	Origins json.RawMessage `json:"origins,omitempty"`
	Page    json.RawMessage `json:"page,omitempty"`
	// Plan is the unit's part of a saved plan, as returned by saved.Saving.Export.
	Plan []byte `json:"plan,omitempty"`
}

// A Chunk is text for one of the client's streams.
type Chunk struct {
	To   Stream `json:"to"`
	Text string `json:"text"`
}

// A Stream is a destination of text.
type Stream string

// The streams. Events receives the lines of -json.
const (
	Stdout Stream = "out"
	Stderr Stream = "err"
	Events Stream = "events"
)

// A Warning is a warning that the client prints once for all units that report it.
type Warning struct {
	Code    string `json:"code,omitempty"`
	Title   string `json:"title"`
	Text    string `json:"text"`
	Address string `json:"address,omitempty"`
	Printed string `json:"printed,omitempty"` // the warning as printed on a terminal
}

// A Result is the serializable part of a report.Result.
type Result struct {
	Status   report.Status        `json:"status"`
	Reason   string               `json:"reason,omitempty"`
	Cause    string               `json:"cause,omitempty"`
	Message  string               `json:"message,omitempty"`
	Started  time.Time            `json:"started"`
	Ended    time.Time            `json:"ended"`
	Counts   plan.Counts          `json:"counts"`
	Reads    plan.Reads           `json:"reads"`
	Changes  bool                 `json:"changes,omitempty"`
	Drift    int                  `json:"drift,omitempty"`
	Deferred []report.Deferral    `json:"deferred,omitempty"`
	Accepted []plan.AcceptedDrift `json:"accepted,omitempty"`
	Code     int                  `json:"code,omitempty"`
}

// ResultOf returns the serializable part of a result.
func ResultOf(r *report.Result) *Result {
	return &Result{r.Status, r.Reason, r.Cause, r.Message, r.Started, r.Ended, r.Counts, r.Reads, r.Changes, r.Drift, r.Deferred, r.Accepted, r.Code}
}

// Fill copies r to into. ended is the end of the turn by the engine's clock. Only the duration
// comes from the worker, since the clocks of workers may be wrong.
func (r *Result) Fill(into *report.Result, ended time.Time) {
	into.Status, into.Reason, into.Cause, into.Message, into.Code = r.Status, r.Reason, r.Cause, r.Message, r.Code
	into.Counts, into.Reads, into.Changes, into.Drift, into.Deferred, into.Accepted = r.Counts, r.Reads, r.Changes, r.Drift, r.Deferred, r.Accepted
	if !ended.IsZero() && r.Ended.After(r.Started) {
		into.Started, into.Ended = ended.Add(r.Started.Sub(r.Ended)), ended
	}
}
