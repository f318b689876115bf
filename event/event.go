// Package event defines the events that the engine sends during an operation. The human and the
// JSON views print them.
//
// Main type: Event. The one rule: an event is sent after the change that it reports is stored
// safely, so that users are never shown an object that a crash could lose.
package event

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
)

// Op is the operation on an object.
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

// String returns the name of the operation in JSON output, such as "create" or "delete-create".
func (o Op) String() string { return opNames[o] }

// IsReplace reports whether the object is replaced by another.
func (o Op) IsReplace() bool { return o >= DeleteThenCreate }

// Kind is the kind of an event.
type Kind uint8

// The kinds.
const (
	RefreshStart Kind = iota
	RefreshDone
	ReadStart // of a data source
	ReadDone
	ImportStart
	ImportDone
	ApplyStart
	ApplyProgress // every ten seconds during an operation
	ApplyDone
	ApplyError
	ProvisionStart
	ProvisionOutput // Text is one line
	ProvisionDone
	ProvisionError
	OpenStart // of an ephemeral resource
	OpenDone
	RenewStart
	RenewDone
	CloseStart
	CloseDone
	OpenDeferred // an ephemeral resource is opened during apply; Text is the reason
	Message      // Diag
)

// An Event reports one step of an operation. Text and Diag are set for the kinds whose comments
// mention them.
type Event struct {
	Kind        Kind
	Object      addr.Object
	Op          Op            // for Apply*: the operation on the object
	IDKey       string        // name of the attribute that identifies the object; "" if there is none
	IDValue     string        // value of that attribute
	Elapsed     time.Duration // for Progress, Done and Error
	Provisioner string        // for Provision*: the type of the provisioner
	Text        string
	Diag        *diag.Message
	Unit        string // the unit in a run over many units; "" in a plain directory
}

// A Sink receives events. It must be safe for concurrent use and must not block for long.
type Sink func(Event)

// Send sends an event to a sink, which may be nil.
func (s Sink) Send(e Event) {
	if s != nil {
		s(e)
	}
}
