package state

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
)

// A Manager stores the state during an apply, so that a crash at any moment loses nothing. The
// caller calls Start before the first provider call, Begin before each provider call, Answer
// before the response has any effect, Write periodically, and End at the end, also with errors.
// If Start fails, nothing is applied and no other method is called. Begin, Answer, Sync and
// Write may be called concurrently. Directory.Apply in package terrace uses an implementation
// for backends, with a journal on disk.
type Manager interface {
	// Start receives the number of changes, and how many of them create an object where there
	// was none.
	Start(ctx context.Context, changes, created int) diag.List
	// Begin records that a provider call is about to be made. id is unique within the apply. action
	// is the name of the operation, such as "create".
	Begin(id int, address, action string) error
	// Answer records the response to the call with the id: the changes of objects in the state.
	Answer(id int, changes []Change) error
	// Sync returns when all records so far are on stable storage.
	Sync() error
	// Write writes the whole state.
	Write(ctx context.Context, s *State) diag.List
	// End ends the apply. final is the last state. If it cannot be written, End saves it another way
	// and returns an error.
	End(final *State) diag.List
}
