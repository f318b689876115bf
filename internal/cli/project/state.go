package project

import (
	"context"
	"strconv"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// A StateSession is a state that is locked, unless the user said not to.
type StateSession struct {
	*operation.Held
	Call    *command.Call
	Started func() // called when an apply begins, once the state is ready for it; may be nil
}

// Begin opens where the state is, takes it, and makes an operation on it, for which nothing
// of the providers was looked at yet. With errors nothing is locked.
func (p *Project) Begin(ctx context.Context, f flags.State, what string) (*operation.Operation, *StateSession, *Place, diag.List) {
	at, ds := p.Backend(ctx)
	if ds.HasErrors() {
		return nil, nil, nil, ds
	}
	held, more := p.OpenState(ctx, at, f, what)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, nil, nil, ds
	}
	return p.Operation(held), held, at, ds
}

// OpenState locks and reads the state of a project.
func (p *Project) OpenState(ctx context.Context, b *Place, f flags.State, what string) (*StateSession, diag.List) {
	opened, ds := OpenStore(p.Call, b, p.Workspace, f)
	if ds.HasErrors() {
		return nil, ds
	}
	at := PlaceOf(p.Call, b, opened, p.Workspace)
	at.KeepSegments = operation.KeepSegmentsOf(f.Journal, p.Plugins.Config.JournalInStore)
	if f.On {
		slow := time.AfterFunc(slowLock, func() { waiting(p.Call) })
		defer slow.Stop()
	}
	o := at.Locked(ctx, operation.Lock{Off: !f.On, Timeout: f.Timeout, Operation: what, Who: p.User() + "@" + p.Host(), Now: p.Now()})
	held, ds := operation.Take(ctx, o)
	if held == nil {
		return nil, ds
	}
	return &StateSession{Held: held, Call: p.Call}, ds
}

// slowLock is how long a lock may take without a word.
const slowLock = 400 * time.Millisecond

// waiting tells that somebody else has the lock.
func waiting(c *command.Call) {
	const text = "Acquiring state lock. This may take a few moments..."
	c.Report.Human.Say(text + "\n")
	c.Report.Stream.Typed(text, "state_lock_acquire", nil)
}

// lockedBy tells who has the lock that is waited for.
func lockedBy(c *command.Call, holder *store.LockInfo) {
	text := "The state is locked by " + backend.Describe(holder) + ". Waiting for the lock..."
	c.Report.Human.Say(text + "\n")
	c.Report.Stream.Log(text)
}

// PlaceOf is where a state is that is kept in a store.
func PlaceOf(c *command.Call, b *Place, st store.Store, workspace string) operation.Place {
	return operation.Place{
		Store: st, Workspace: workspace, Dir: c.KeepDir(), Encryption: b.Encryption,
		Rescue: func(text []byte) diag.List { return rescue(c, text) },
	}
}

// StateOptions says how a state is managed that is kept in a store.
func StateOptions(c *command.Call, b *Place, st store.Store, workspace string) statemgr.Options {
	return PlaceOf(c, b, st, workspace).Manager(c.Report.Context)
}

// rescue prints a state that could be written nowhere.
func rescue(c *command.Call, text []byte) diag.List {
	if _, err := c.Stdout.Write(text); err != nil {
		return diag.Errorf(nil, "Failed to print the state", "The state could not be printed either: %s. The journal holds what is not in the state: leave it where it is.", err)
	}
	return diag.Errorf(nil, "State printed", "As a last resort the state was printed to standard output. Save it as a file and bring it back with \"%s state push\", or with a tool that can.", view.Program)
}

// readStore reads a state for a command that changes nothing.
func readStore(ctx context.Context, c *command.Call, b *Place, st store.Store, workspace string) (*state.State, diag.List) {
	return PlaceOf(c, b, st, workspace).Read(ctx)
}

// Unlock unlocks. It may be called more than once.
func (h *StateSession) Unlock() { h.Call.Report.Tell(h.Release()) }

// Start prepares for an apply. A second interrupt then leaves the journal as it is.
func (h *StateSession) Start(ctx context.Context, changes, created int) diag.List {
	ds := h.Held.Start(ctx, changes, created)
	if ds.HasErrors() {
		return ds
	}
	h.Call.Interrupts.WhenKilled(h.Abandon)
	if h.Started != nil {
		h.Started()
	}
	return ds
}

// End brings the apply to its end.
func (h *StateSession) End(final *state.State) diag.List {
	ds := h.Held.End(final)
	h.Call.Interrupts.WhenKilled(nil)
	return ds
}

// PersistEvery is how often the whole state is written during an apply.
func PersistEvery(c *command.Call) (time.Duration, diag.List) {
	text := c.Env.Get("TF_STATE_PERSIST_INTERVAL")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 20 {
		return 0, diag.Errorf(nil, "Invalid TF_STATE_PERSIST_INTERVAL", "The environment variable TF_STATE_PERSIST_INTERVAL must be a whole number of seconds, 20 at least, not %q.", text)
	}
	return time.Duration(n) * time.Second, nil
}
