// Package event is what the engine tells while it works: one type, which the
// human and the JSON views print, each in its way.
//
// Main type: Event. The one rule: an event is sent after what it tells is safe,
// so that nobody is shown an object that a crash could lose.
package event

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
)

// Op is what is done to an object.
type Op uint8

// The operations. The last three are shown as one change and carried out in two steps.
const (
	NoOp Op = iota
	Create
	Read
	Update
	Delete
	Forget
	DeleteThenCreate
	CreateThenDelete
	ForgetThenCreate
)

var opNames = [...]string{"no-op", "create", "read", "update", "delete", "forget", "delete-create", "create-delete", "forget-create"}

func (o Op) String() string { return opNames[o] }

// IsReplace reports whether the object is replaced by another.
func (o Op) IsReplace() bool { return o >= DeleteThenCreate }

// Kind says what happened.
type Kind uint8

// The kinds.
const (
	RefreshStart Kind = iota
	RefreshDone
	ReadStart // a data source
	ReadDone
	ImportStart
	ImportDone
	ApplyStart
	ApplyProgress // every ten seconds while an operation runs
	ApplyDone
	ApplyError
	ProvisionStart
	ProvisionOutput // Text is one line
	ProvisionDone
	ProvisionError
	OpenStart // ephemeral resources
	OpenDone
	RenewStart
	RenewDone
	CloseStart
	CloseDone
	OpenDeferred // an ephemeral resource waits for apply; Text says why
	Message      // Diag
)

// An Event is one thing that happened.
type Event struct {
	Kind        Kind
	Object      addr.Object
	Op          Op            // for Apply*: what is done to the object
	IDKey       string        // name of the attribute that identifies the object, "" if none
	IDValue     string        // its value
	Elapsed     time.Duration // for Progress, Done and Error
	Provisioner string        // for Provision*: its type
	Text        string
	Diag        *diag.Message
	Unit        string // the unit in an estate; "" in a plain folder
}

// A Sink takes events. It may be called concurrently and must not block for long.
type Sink func(Event)

// Send passes an event to a sink that may be nil.
func (s Sink) Send(e Event) {
	if s != nil {
		s(e)
	}
}
