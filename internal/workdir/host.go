package workdir

import (
	"context"
	"errors"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Host is the program around a directory: it can be asked, and it hears what happens. The
// command line, the run of a unit and embedding programs implement it. The methods may be
// called concurrently. Embed Silent to implement only some of them.
type Host interface {
	// Asks reports whether the user can be asked.
	Asks() bool
	// Ask asks the user. The error says why there is no answer: ErrNobody if nobody can be
	// asked.
	Ask(ctx context.Context, q Question) (string, error)
	// Event reports what happens to an object.
	Event(e event.Event)
	// Slow reports what is being waited for, in a line of text, when that takes long.
	Slow(text string)
	// Waiting reports that somebody else has the lock of the state. holder is nil as long as
	// the store has not said who.
	Waiting(holder *store.LockInfo)
	// Note reports what is about to be done to the state, in a sentence: that the contents of
	// a journal are written to it.
	Note(sentence string)
	// Rescue shows a state that could be written nowhere, and returns what to do with it.
	Rescue(text []byte) diag.List
	// Expect announces how much memory is about to be used, in bytes, and whether plugins
	// are about to work beside this process.
	Expect(bytes int64, plugins bool)
	// Running gets what ends the providers once they may run, and nil when they have ended.
	Running(end func())
	// Changing reports that an apply changes a state, until done is called. A program that
	// has to end in between abandons the state first.
	Changing(s *statemgr.State) (done func())
}

// A Question is what the user is asked.
type Question struct {
	Variable *config.Variable // whose value is asked for; nil for another question
	Title    string           // of a question that is about no variable
	Text     string           // explains it
}

// ErrNobody is the error of Host.Ask if nobody can be asked.
var ErrNobody = errors.New("nobody can be asked")

// Silent is a Host that answers nothing and says nothing.
type Silent struct{}

// Asks returns false.
func (Silent) Asks() bool { return false }

// Ask returns ErrNobody.
func (Silent) Ask(context.Context, Question) (string, error) { return "", ErrNobody }

// Event does nothing.
func (Silent) Event(event.Event) {}

// Slow does nothing.
func (Silent) Slow(string) {}

// Waiting does nothing.
func (Silent) Waiting(*store.LockInfo) {}

// Note does nothing.
func (Silent) Note(string) {}

// Rescue leaves the state to its journal.
func (Silent) Rescue([]byte) diag.List { return nil }

// Expect does nothing.
func (Silent) Expect(int64, bool) {}

// Running does nothing.
func (Silent) Running(func()) {}

// Changing does nothing.
func (Silent) Changing(*statemgr.State) func() { return func() {} }

var _ Host = Silent{}
