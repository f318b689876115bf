package state

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
)

// A Manager stores the state during an apply, so that a crash at any moment loses nothing. The
// caller calls Start before the first provider call, Begin before each provider call, Answer
// before the response has any effect, Write periodically, and End at the end, also with errors.
// If Start fails, nothing is applied and no other method is called. Begin, Answer, Sync and
// Write may be called concurrently. The root package has an implementation for state files and
// journals on disk.
type Manager interface {
	// Start receives the number of changes, and how many of them create an object where there
	// was none.
	Start(ctx context.Context, changes, created int) diag.List
	Begin(id int, address, action string) error
	Answer(id int, changes []Change) error
	Sync() error // returns when everything noted so far is on stable storage
	Write(ctx context.Context, s *State) diag.List
	End(final *State) diag.List
}
