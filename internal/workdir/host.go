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

// A Host is the program that works with a directory. It asks the user, and it receives events. The
// command line, the run of a unit and embedding programs implement it. Its methods may be called
// concurrently. Embed Silent to implement only some of them.
type Host interface {
	// Asks reports whether the user can be asked.
	Asks() bool
	// Ask asks the user and returns the answer. The error is the reason why there is no answer:
	// ErrNobody if the user cannot be asked.
	Ask(ctx context.Context, q Question) (string, error)
	// Event receives an event about an object.
	Event(e event.Event)
	// Slow receives a line of text about an operation that takes long. The text ends with a newline.
	Slow(text string)
	// Waiting is called while this process waits for the lock of the state. holder describes the
	// lock of another process; nil means that the store has not reported it yet.
	Waiting(holder *store.LockInfo)
	// Note receives a sentence about a change of the state that follows: the contents of a
	// journal are written to it.
	Note(sentence string)
	// Rescue shows a state that could not be written anywhere. The returned messages explain what
	// the user must do with it.
	Rescue(text []byte) diag.List
	// Expect announces the expected growth of the heap, in bytes, and whether provider plugins are
	// about to be started.
	Expect(bytes int64, plugins bool)
	// Running receives the function that stops the providers, before the first provider starts. It
	// receives nil when the caller stops the providers itself.
	Running(end func())
	// Changing is called when an apply starts to change a state. The caller calls done at its
	// end. A program that must exit before that abandons the state first.
	Changing(s *statemgr.State) (done func())
}

// A Question is a question to the user.
type Question struct {
	Variable *config.Variable // variable whose value is needed; nil for another question
	Title    string           // title; "" if Variable is set
	Text     string           // explanation
}

// ErrNobody is the error of Host.Ask if the user cannot be asked.
var ErrNobody = errors.New("nobody can be asked")

// Silent is a Host that cannot ask the user and ignores all events.
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

// Rescue returns nil: the journal still contains the changes.
func (Silent) Rescue([]byte) diag.List { return nil }

// Expect does nothing.
func (Silent) Expect(int64, bool) {}

// Running does nothing.
func (Silent) Running(func()) {}

// Changing does nothing.
func (Silent) Changing(*statemgr.State) func() { return func() {} }

var _ Host = Silent{}
