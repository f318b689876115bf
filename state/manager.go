package state

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
)

// A Manager keeps the state of an apply so that a crash at any moment loses nothing: Start
// comes before the first call of a provider, Begin before each of them, Answer before its
// answer counts, Write now and then, and End at the end, with errors too. If Start fails,
// nothing is applied and nothing else is called. Begin, Answer, Sync and Write may be called
// concurrently. State files and journals on disk are kept this way by the root package.
type Manager interface {
	// Start gets how many changes there are, and how many of them make objects where there
	// were none.
	Start(ctx context.Context, changes, created int) diag.List
	Begin(id int, address, action string) error
	Answer(id int, changes []Change) error
	Sync() error // returns when all that was noted is safe
	Write(ctx context.Context, s *State) diag.List
	End(final *State) diag.List
}
