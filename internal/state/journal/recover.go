package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/state"
)

// Recovered is the content of a journal.
type Recovered struct {
	Header
	Run     Run
	Live    bool           // its run is still working
	Changes []state.Change // in the order of the answers
	Pending []Intent       // begun without an answer, in the order in which they were begun
	Torn    int64          // number of bytes at the end that are the beginning of a record
	Bad     []Bad          // parts that could not be read, in the order of the file
	BadTail int            // number of answers in the tail that could not be read
	// Foreign is the reason for which the journal is not used unless the user agrees; nil if it
	// belongs to the user.
	Foreign error
	Store   string // identifies the state of the run; "" if the journal does not contain that

	Transfer *Transfer // nil unless the changes are half of a move between states
	Undone   bool      // the move was not decided, so that there are no changes
	// Undecided means that it is unknown whether the move was decided, because the journal is
	// foreign.
	Undecided bool

	left []state.Change // changes of a move that was not decided, or may not have been

	marks   []placed
	started bool // the journal has a header
}

// Bad is a part of a journal that could not be read.
type Bad struct {
	From, To int64  // offsets in the file, To excluded; equal if only the numbers show that records are missing
	Records  uint32 // number of missing records; at the end of the journal and in format 1 at least one
}

// placed is a mark with the number of changes before it.
type placed struct {
	mark
	after int
}

// ErrSealed is the error that a journal is encrypted and no sealer was given.
var ErrSealed = errors.New("the journal is encrypted, and the configuration has no encryption block to read it with")

// empty reports whether a journal has no content because its run was killed while it created
// the file.
func (rec *Recovered) empty() bool {
	return !rec.started && len(rec.Changes) == 0 && len(rec.Pending) == 0 && rec.Transfer == nil && !rec.Damaged()
}

// Parse reads a journal from a Mirror. It is trusted like its store, which also contains the
// state. It is therefore not bound to a user, since other machines must be able to use it, but
// to the state that store identifies.
func Parse(b []byte, sealer sealing.Sealer, store string) (*Recovered, error) {
	rec, err := parse(b, func(bool) ([][]byte, int) { return nil, 0 }, sealer, nil)
	if err == nil && rec.Store != store && !rec.empty() {
		rec.Foreign = errStore
	}
	return rec, err
}

// Exists reports whether there is a journal.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Fold merges the changes of a journal into a state; nil means none. The second result is false
// if the journal does not continue this state. Then the state is returned unchanged, and the
// journal's contents must be saved to a separate file (see StateOfJournal). The serial is
// unchanged; the caller increments it when it writes the result. A state without a lineage gets
// the lineage that the run gave it.
//
// The messages are warnings that name the actions without an answer. There are none if the run
// is still working.
func Fold(s *state.State, rec *Recovered) (*state.State, bool, diag.List) {
	if len(rec.Changes) == 0 {
		rec.left = slices.DeleteFunc(slices.Clone(rec.left), func(c state.Change) bool { // these are removed already
			_, _, ok := s.Object(c.Object)
			return !ok
		})
		return s, true, rec.warnings(nil)
	}
	todo, ok := rec.unwritten(s)
	if !ok {
		return s, false, nil
	}
	if len(todo) > 0 {
		s = apply(s, todo)
		if n := len(rec.marks); n > 0 && s.Lineage == "" { // from the state that the run was about to write
			s = s.WithMeta(rec.marks[n-1].Lineage, s.Serial, s.TerraformVersion)
		}
	}
	return s, true, rec.warnings(todo)
}

// unwritten returns the changes that s does not contain.
func (rec *Recovered) unwritten(s *state.State) ([]state.Change, bool) {
	now := HeaderOf(s)
	for _, m := range slices.Backward(rec.marks) {
		if m.Header != now {
			continue
		}
		if sum, err := digest(s); err == nil && sum == m.Digest {
			return rec.Changes[m.after:], true
		}
	}
	return rec.Changes, rec.started && rec.Header == now
}

func apply(s *state.State, changes []state.Change) *state.State {
	d := s.Edit()
	for _, c := range changes {
		d.Apply(c)
	}
	return d.Freeze()
}

// The codes of the messages of Fold.
const (
	RecoveredCode = diag.CodeJournalRecovered
	PendingCode   = diag.CodeJournalPending
)

// mostNamed is the maximum number of objects in a message.
const mostNamed = 10

// changed returns the names of changed objects, each once, in the order of their last change.
func changed(changes []state.Change) string {
	var names []string
	seen := map[string]bool{}
	for _, c := range slices.Backward(changes) {
		if name := c.Object.String(); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	if n := len(names) - mostNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), n)
	}
	return strings.Join(names, ", ")
}

// warnings reports the changes of a journal that the state did not contain.
func (rec *Recovered) warnings(changes []state.Change) diag.List {
	if rec.Live {
		return nil
	}
	if rec.Transfer != nil {
		return rec.moved(len(changes))
	}
	var ds diag.List
	if len(changes) > 0 {
		ds = append(ds, diag.Warnf(diag.CodeJournalRecovered, nil, "Interrupted run recovered",
			"An earlier run ended before it could write the state. What the providers had answered by then was taken from its journal: %s.", changed(changes))...)
		ds[0].Code = RecoveredCode
	}
	return append(ds, rec.Unanswered()...)
}

// Contents describes the contents of a journal in full sentences, for a user who must decide
// whether to use it.
func (rec *Recovered) Contents() string {
	text := "What it says: it was written by " + rec.Run.String()
	switch {
	case !rec.started:
		text += ", and which state that began with cannot be read."
	case rec.Header == (Header{}):
		text += ", which began without a state."
	default:
		text += fmt.Sprintf(", which began with serial %d of the state with lineage %q.", rec.Serial, rec.Lineage)
	}
	changes := rec.Changes
	if len(changes) == 0 {
		changes = rec.left
	}
	switch {
	case len(changes) > 0 && rec.Transfer != nil:
		text += fmt.Sprintf(" It was to move objects between two states: %s.", changed(changes))
	case len(changes) > 0:
		text += fmt.Sprintf(" These objects changed: %s.", changed(changes))
	default:
		text += " No object changed."
	}
	return text + InFlight(rec.Pending)
}

// InFlight returns a sentence that names actions without an answer, preceded by a space. It is
// "" if there are none.
func InFlight(actions []Intent) string {
	var names []string
	for i, a := range actions {
		if i == mostNamed {
			names = append(names, fmt.Sprintf("%d more", len(actions)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", a.Address, a.Action))
	}
	if len(names) == 0 {
		return ""
	}
	return " These are under way or may have happened: " + strings.Join(names, ", ") + "."
}

// Coming returns the announcement that the contents of a journal are about to be written to the
// state.
func (rec *Recovered) Coming() string {
	return "An earlier run was interrupted. The state is now written with what its journal contains: " + changed(rec.Changes) + "."
}

// Unanswered returns a warning that names the actions without an answer.
func (rec *Recovered) Unanswered() diag.List {
	var ds diag.List
	why := "An earlier run asked for it and ended before the answer came, so the state does not show it."
	if rec.Damaged() {
		why = "An earlier run asked for it, and what can be read of its journal holds no answer, so the state does not show it."
	}
	for _, i := range rec.Pending {
		ds = append(ds, diag.Warnf(diag.CodeJournalPending, nil, "Action may have happened",
			"May have happened: %s (%s). %s Look whether the object was changed; if it was created, import it or remove it by hand.", i.Address, i.Action, why).About(i.Address)...)
		ds[len(ds)-1].Code = PendingCode
	}
	return ds
}

// Damaged reports whether a part of the journal could not be read.
func (rec *Recovered) Damaged() bool { return len(rec.Bad) > 0 || rec.BadTail > 0 }

// Damage describes in full sentences what could not be read.
func (rec *Recovered) Damage() string {
	var parts []string
	for _, b := range rec.Bad {
		what := fmt.Sprintf("bytes %d to %d", b.From, b.To-1)
		if b.From == b.To {
			what = fmt.Sprintf("what stood before byte %d", b.From)
		}
		switch {
		case b.Records == 1:
			what += " (one record)"
		case b.Records > 1:
			what += fmt.Sprintf(" (%d records)", b.Records)
		}
		parts = append(parts, what)
	}
	if rec.BadTail > 0 {
		parts = append(parts, fmt.Sprintf("%d of the answers that were on their way into it", rec.BadTail))
	}
	text := "The journal of the earlier run is damaged: " + strings.Join(parts, ", ") + " cannot be read. Everything else in it was read."
	if !rec.started {
		return text + " Which state it continues is among what cannot be read."
	}
	lost := slices.ContainsFunc(rec.Bad, func(b Bad) bool { return b.Records > 0 }) || rec.BadTail > 0
	switch {
	case !lost:
		return text + " No record is missing."
	case len(rec.Pending) > 0:
		return text + " What that held is not in the state: an answer to one of the actions that are named as \"may have happened\", or something of an object that is not named."
	}
	return text + " What that held is not in the state. Every action that is known to have begun has its answer."
}

// StateOfJournal returns the state to save as errored.tfstate if the journal does not continue
// the present state, and a message about it. The state contains only the objects in the
// journal. Its lineage and serial are those with which the run began.
func StateOfJournal(rec *Recovered, present *state.State) (*state.State, diag.List) {
	s := apply(nil, rec.Changes)
	s = s.WithMeta(rec.Lineage, rec.Serial, s.TerraformVersion)
	was, now := rec.Header, HeaderOf(present)
	why := fmt.Sprintf("it has serial %d now and had %d then", now.Serial, was.Serial)
	if !rec.started {
		ds := diag.Warnf(diag.CodeJournalOtherState, nil, "Journal of an unknown state",
			"An earlier run ended before it could write the state, and the part of its journal that tells which state it continues cannot be read. What the providers had answered (%d changes) can therefore not be put into the state and is saved apart. Compare the two and import what the state lacks.", len(rec.Changes))
		return s, append(ds, rec.warnings(nil)...)
	}
	if was.Lineage != now.Lineage {
		why = fmt.Sprintf("it has lineage %q now and had %q then", now.Lineage, was.Lineage)
	}
	ds := diag.Warnf(diag.CodeJournalOtherState, nil, "Journal of another state",
		"An earlier run ended before it could write the state, and the state has been changed by somebody else since: %s. What the providers had answered (%d changes) can therefore not be put into the state and is saved apart. Compare the two and import what the state lacks.", why, len(rec.Changes))
	return s, append(ds, rec.warnings(nil)...)
}
