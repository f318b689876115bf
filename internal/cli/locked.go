package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statefile"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
)

// # The way of the state through a command
//
// Lock, read, and fold in what the journal of a killed run holds. An apply then
// starts a journal of its own, in which every answer of a provider is noted
// before it counts, and writes the whole state every 20 seconds and at its end.
// Where the last write fails, the state goes to errored.tfstate, or failing
// that to standard output. Only then the journal is removed.

// A held state is locked, unless the user said not to.
type held struct {
	session *session
	store   *local.Store
	unlock  func() diag.List

	mu      sync.Mutex
	current *state.State // as the store has it; nil if it has none
	journal *journal.Journal
	failed  *state.State // what could not be written last

	abandoned atomic.Bool // the program is about to end; nothing is written any more
}

var errAbandoned = errors.New("the run was given up")

// abandon leaves state and journal as they are: what becomes of the calls that
// are under way is not known any more, and the journal is to say so.
func (h *held) abandon() {
	h.abandoned.Store(true)
	h.mu.Lock() // a write that has begun comes to its end
	defer h.mu.Unlock()
}

// Begin, Answer and Sync pass on to the journal.
func (h *held) Begin(id int, address, action string) error {
	if h.abandoned.Load() {
		return errAbandoned
	}
	return h.journal.Begin(id, address, action)
}

// Answer implements engine.Journal.
func (h *held) Answer(id int, changes []state.Change) error {
	if h.abandoned.Load() {
		return errAbandoned
	}
	return h.journal.Answer(id, changes)
}

// Sync implements engine.Journal.
func (h *held) Sync() error {
	if h.abandoned.Load() {
		return errAbandoned
	}
	return h.journal.Sync()
}

// hold locks and reads the state of a project.
func (p *project) hold(ctx context.Context, b backend, f stateFlags, operation string) (*held, diag.List) {
	h := &held{session: p.session, store: local.Open(p.storeOptions(b, p.workspace, f))}
	if f.on {
		unlock, ds := h.store.Lock(ctx, store.LockInfo{Operation: operation, Who: p.User() + "@" + p.Host(), Version: statefile.Version, Created: p.Now()}, f.timeout)
		if ds.HasErrors() {
			return nil, ds
		}
		h.unlock = unlock
	}
	s, ds := h.store.Read(ctx)
	if ds.HasErrors() {
		h.release()
		return nil, ds
	}
	h.current = s
	more := h.recover(ctx)
	if ds = append(ds, more...); ds.HasErrors() {
		h.release()
		return nil, ds
	}
	return h, ds
}

// release unlocks. It may be called more than once.
func (h *held) release() {
	if h.unlock != nil {
		h.session.tell(h.unlock())
		h.unlock = nil
	}
}

// recover folds the journal of a killed run into the state and writes it.
func (h *held) recover(ctx context.Context) diag.List {
	path := h.store.JournalPath()
	if !journal.Exists(path) {
		return nil
	}
	rec, err := journal.Recover(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to read the journal of an interrupted run", "A run of %s was interrupted and left a journal of what it did, %s, which cannot be read: %s.", view.Product, path, err)
	}
	next, fits, ds := journal.Fold(h.current, rec)
	if !fits && holds(h.current, rec.Changes) { // killed after the state was written and before the journal was removed
		ds = nil
	} else if !fits {
		apart, more := journal.Apart(rec, h.current)
		ds = append(ds, more...)
		_, more = local.WriteApart(h.session.Dir, apart)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
	} else if more := h.write(ctx, next); more.HasErrors() {
		return append(ds, more...)
	}
	if err := journal.Discard(path); err != nil {
		return append(ds, diag.Errorf(nil, "Failed to remove the journal of an interrupted run", "What the journal holds is safe now, but the file cannot be removed: %s.", err)...)
	}
	return ds
}

// holds reports whether a state shows everything that a journal tells.
func holds(s *state.State, changes []state.Change) bool {
	last := make(map[addr.Object]*state.Object, len(changes))
	for _, c := range changes {
		last[c.Object] = c.New
	}
	for a, want := range last {
		have, _, ok := s.Object(a)
		if ok != (want != nil) || ok && !have.Equal(want) {
			return false
		}
	}
	return true
}

// write writes a state if it differs from what the store has.
func (h *held) write(ctx context.Context, s *state.State) diag.List {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.abandoned.Load() {
		return diag.Errorf(nil, "Interrupted", "The state was not written, since %s.", errAbandoned)
	}
	next, changed := store.NextSerial(h.current, s)
	if !changed {
		h.failed = nil
		return nil
	}
	if h.journal != nil {
		if err := h.journal.Written(next); err != nil {
			h.failed = next
			return diag.Errorf(nil, "Failed to write the journal", "The journal of this run cannot be written: %s.", err)
		}
	}
	ds := h.store.Write(ctx, next)
	if ds.HasErrors() {
		h.failed = next
		return ds
	}
	h.current, h.failed = next, nil
	return ds
}

// begin prepares for an apply: it finds out whether the state can be written
// and starts the journal.
func (h *held) begin(ctx context.Context, changes int) diag.List {
	const perObject = 2 << 10 // a guess at what an object takes, in state, backup and journal
	if ds := h.store.Prepare(ctx, int64(changes+1)*perObject); ds.HasErrors() {
		return ds
	}
	j, err := journal.Create(h.store.JournalPath(), journal.HeaderOf(h.current), nil)
	if err != nil {
		return diag.Errorf(nil, "Failed to start the journal", "Before anything is applied, a journal is started beside the state, so that nothing is lost if the run is killed. It cannot be written: %s. Nothing was changed.", err)
	}
	h.journal = j
	h.session.whenKilled(h.abandon)
	return nil
}

// end brings the apply to its end: where the state could not be written it is
// saved another way.
func (h *held) end(final *state.State) diag.List {
	if h.journal == nil || h.abandoned.Load() {
		return nil
	}
	h.session.whenKilled(nil)
	j := h.journal
	if h.failed == nil {
		if err := j.Remove(); err != nil {
			return diag.Warnf(nil, "Failed to remove the journal", "The state was written, but the journal of this run, %s, cannot be removed: %s.", h.store.JournalPath(), err)
		}
		return nil
	}
	last := h.failed
	if final != nil {
		last = final.WithMeta(last.Lineage, last.Serial, last.TerraformVersion)
	}
	ds := diag.Errorf(nil, "Failed to save state", "The state could not be written to its place. It was saved as told below, and the journal %s holds it too.", h.store.JournalPath())
	_, more := local.WriteErrored(h.session.Dir, last)
	if !more.HasErrors() {
		_ = j.Close()
		return append(ds, more...)
	}
	ds = append(ds, more...)
	if err := dump(h.session.Stdout, last); err != nil {
		ds = append(ds, diag.Errorf(nil, "Failed to print the state", "The state could not be printed either: %s. The journal holds what is not in the state: leave it where it is.", err)...)
	} else {
		ds = append(ds, diag.Errorf(nil, "State printed", "As a last resort the state was printed to standard output. Save it as a file and bring it back with \"%s state push\", or with a tool that can.", view.Program)...)
	}
	_ = j.Close()
	return ds
}

func dump(w io.Writer, s *state.State) error { return statefile.Write(w, s, true) }

// shown reads a state for a command that changes nothing: what a journal holds
// is folded in, and nothing is written.
func (s *session) shown(ctx context.Context, st *local.Store) (*state.State, diag.List) {
	out, ds := st.Read(ctx)
	if ds.HasErrors() || !journal.Exists(st.JournalPath()) {
		return out, ds
	}
	rec, err := journal.Recover(st.JournalPath(), nil)
	if err != nil {
		return out, ds // another run may have ended just now, or is at work
	}
	next, fits, more := journal.Fold(out, rec)
	if !fits {
		return out, ds
	}
	return next, append(ds, more...)
}

// persistEvery is how often the whole state is written during an apply.
func (s *session) persistEvery() (time.Duration, diag.List) {
	text := s.Env.Get("TF_STATE_PERSIST_INTERVAL")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 20 {
		return 0, diag.Errorf(nil, "Invalid TF_STATE_PERSIST_INTERVAL", "The environment variable TF_STATE_PERSIST_INTERVAL must be a whole number of seconds, 20 at least, not %q.", text)
	}
	return time.Duration(n) * time.Second, nil
}

// stale reports whether a state is another one than that which a plan was made from.
func stale(planned, now *state.State) bool {
	if planned == nil || now == nil {
		return (planned == nil || planned.Lineage == "") != (now == nil)
	}
	return planned.Lineage != now.Lineage || planned.Serial != now.Serial
}
