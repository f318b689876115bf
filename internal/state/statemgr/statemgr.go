// Package statemgr manages the state of one configuration during a command: it locks and reads
// the state, merges the journal of a killed run, and writes the state as provider responses
// arrive.
//
// Main type: State, returned by Take. The one rule: a provider's response is in the journal
// before it is reported, and the journal is removed only after a state with all of its content
// was written.
//
// # Life of a state during a command
//
// The state is locked and read, and the journal of a killed run is merged. An apply then starts
// its own journal (Start). Every response is written to it before it has any effect. The whole
// state is written periodically and at the end. If the last write fails, End saves the state as
// errored.tfstate, or as a last resort with the function of the caller.
//
// # Who may change what
//
// A journal is only merged permanently by a process that holds the lock of the state, and only
// if the run that wrote the journal has ended. The lock of the journal file shows whether it
// has (see package journal). This applies to every kind of store: the store has the lock of the
// state, while the journal and its lock are files on this machine. A journal of another user is
// only used if the user agrees (Options.Adopt), since it may have come with the working
// directory. Without the lock (-lock=false, and Read), journals are merged in memory and no
// file is changed. Before such a run writes, unlocked.go checks that no other run is working,
// merges the journal permanently, and returns an error if the state has changed since it was
// read.
package statemgr

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// Options configures Take. Store, Journal and Dir are required.
type Options struct {
	Store   store.Store
	Journal string         // path of the journal
	Records sealing.Sealer // encrypts the journal; nil means no encryption
	Sealer  sealing.Sealer // encrypts errored.tfstate as the Store encrypts states; nil means no encryption
	Dir     string         // the directory for errored.tfstate
	User    journal.User   // the user whose journals are used without asking
	// StateID identifies the state's location and workspace. A journal in the store is only
	// used by commands on the state for which it was written.
	StateID string
	// Adopt is called before the contents of another user's journal are used, with the
	// journal's location. If it returns errors, the journal is not used. nil means that no such
	// journal is used.
	Adopt func(where string, rec *journal.Recovered) diag.List
	Host  Host // nil means that only the returned messages report what happens
	// Segments stores journals next to the state, for commands on other machines. nil means
	// that the store cannot hold journals.
	Segments Segments
	// KeepSegments also stores the journal of this run in Segments.
	KeepSegments bool
	Lock         *store.LockInfo // nil means that the state is not locked; its Info follows the text about journals
	Run          store.LockInfo  // describes this run to others if it does not lock
	Timeout      time.Duration   // how long to wait for the lock
	Lease        *Lease          // nil means that no other process takes over the work
}

// A Host is the program that works on a state.
type Host interface {
	// Note is called with a sentence before the state is written with the contents of a journal.
	Note(sentence string)
	// Rescue receives the text of a state that could not be written anywhere. The text is
	// encrypted if states are. The returned messages explain what the user must do with it.
	Rescue(text []byte) diag.List
}

// A State is a state that is held until Release. Write and the journal methods Begin, Answer
// and Sync (between Start and End) are safe for concurrent use.
type State struct {
	o      Options
	unlock func() diag.List

	mu            sync.Mutex
	current       *state.State // the state in the store; nil if there is none
	view          *state.State // current merged with a journal that must still be merged permanently; nil if there is none
	left          bool         // view contains a journal from the store
	other         error        // a *journal.LiveError if another run is working on the state
	journal       *journal.Journal
	failed        *state.State // the state of the last failed write
	writeConflict bool         // the write failed because another process may have written the state

	abandoned atomic.Bool // the program is about to end; nothing more is written
}

var errAbandoned = errors.New("the run was given up")

// Take locks and reads a state. With errors nothing is held.
func Take(ctx context.Context, o Options) (*State, diag.List) {
	h := &State{o: o}
	if o.Lock == nil {
		seen, ds := look(ctx, o)
		if ds.HasErrors() {
			return nil, ds
		}
		if seen.foreign.HasErrors() {
			return nil, append(ds, seen.foreign...)
		}
		h.current, h.view, h.other, h.left = seen.stored, seen.folded, seen.live, seen.segments
		return h, append(ds, h.beside()...)
	}
	unlock, ds := o.lock(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	h.unlock = unlock
	h.current, ds = o.Store.Read(ctx)
	if !ds.HasErrors() {
		ds = append(ds, h.recover(ctx, true)...)
		ds = append(ds, h.noted(ds)...)
	}
	if ds.HasErrors() {
		return nil, append(ds, h.Release()...)
	}
	return h, ds
}

// recover merges the journals of killed runs into the state: first the journal on this machine,
// then those in the store, the first of which may be a copy. segments is false if the lock was
// not requested; then the journals in the store are not merged, because nothing else shows
// whether their runs have ended.
func (h *State) recover(ctx context.Context, segments bool) diag.List {
	ctx = h.fenced(ctx)
	mine, apart, ds := h.recoverFile(ctx)
	if ds.HasErrors() || h.other != nil || !segments {
		return ds
	}
	return append(ds, h.recoverSegments(ctx, mine, apart)...)
}

// lockText is the text in the lock that another tool shows when it is refused. If this run is
// killed, a local lock ends with its process and does not protect the state any more.
const lockText = "If this run is killed, run a Terrace command before another tool: its journal may hold what the state does not show."

// Current returns the state in the store, merged with a journal; nil if there is none.
func (h *State) Current() *state.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.view != nil {
		return h.view
	}
	return h.current
}

// Release unlocks the state. A journal that was started and not ended remains for the next
// command. It may be called more than once.
func (h *State) Release() diag.List {
	h.mu.Lock()
	j := h.journal
	h.mu.Unlock()
	if j != nil {
		_ = j.Close() // what was written so far remains in the file
	}
	if h.unlock == nil {
		return nil
	}
	unlock := h.unlock
	h.unlock = nil
	return unlock()
}

// recoverFile merges the journal of a killed run into the state and writes it. If the run is
// still working although it does not hold the lock, the journal is only merged in memory. of is
// the run of the journal. apart means that its objects were saved to a separate file.
func (h *State) recoverFile(ctx context.Context) (of journal.Run, apart bool, ds diag.List) {
	claim, err := journal.TakeOver(h.o.Journal, h.o.Records)
	var live *journal.LiveError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return of, false, nil
	case errors.As(err, &live):
		seen, ds := look(ctx, h.o)
		h.current, h.view, h.other = seen.stored, seen.folded, live
		if ds = append(ds, seen.foreign...); ds.HasErrors() {
			return of, false, ds
		}
		return of, false, append(ds, h.beside()...)
	case err != nil:
		return of, false, h.unreadable(err)
	}
	defer claim.Close()
	rec, err := claim.Recover(h.o.Records, h.o.User)
	if err != nil {
		return of, false, h.unreadable(err)
	}
	if ds := h.o.mayUse(h.o.Journal, rec); ds.HasErrors() {
		return of, false, ds
	}
	of = rec.Run
	best, copied := h.wholeCopy(ctx, rec)
	if apart, ds = h.fold(ctx, best); ds.HasErrors() {
		return of, apart, ds
	}
	defer func() {
		if err := h.o.User.Settle(rec.Transfer, h.o.Journal); err != nil {
			ds = append(ds, diag.Warnf(diag.CodeStateFile, nil, "Failed to remove a file", "The note that a move between two states was decided cannot be removed: %s.", err)...)
		}
	}()
	_ = h.o.User.Settle(rec.Transfer, h.o.Journal) // only if the other state is done; otherwise the other state's command settles it
	if rec.Damaged() {
		aside, err := claim.KeepAside()
		if err != nil {
			return of, apart, append(ds, diag.Errorf(diag.CodeJournalFiles, nil, "Failed to move the journal of an interrupted run", "%s What the journal holds is safe now, but the file, %s, cannot be given another name: %s.", rec.Damage(), h.o.Journal, err)...)
		}
		if copied {
			return of, apart, append(ds, diag.Warnf(diag.CodeJournalDamaged, nil, "Damaged journal", "%s The file was kept as %s. Its copy in the store of the state is whole and was used in its place, so that nothing is lost and the file can be removed.", rec.Damage(), aside)...)
		}
		return of, apart, append(ds, diag.Warnf(diag.CodeJournalDamaged, nil, "Damaged journal", "%s The file was kept as %s. Make a plan, which looks at what there really is, and import what the state lacks; then the file can be removed.", rec.Damage(), aside)...)
	}
	if err := claim.Discard(); err != nil {
		return of, apart, append(ds, diag.Errorf(diag.CodeJournalFiles, nil, "Failed to remove the journal of an interrupted run", "What the journal holds is safe now, but the file cannot be removed: %s.", err)...)
	}
	return of, apart, ds
}

// fold merges a journal into the state and writes it. If the journal does not continue the
// state, it saves its objects to a separate file.
func (h *State) fold(ctx context.Context, rec *journal.Recovered) (apart bool, ds diag.List) {
	next, fits, ds := journal.Fold(h.current, rec)
	if rec.Undone {
		return false, ds
	}
	written := !fits && shows(h.current, rec.Changes) // the run was killed before it removed the journal
	if written {
		ds = rec.Unanswered()
	}
	if more := h.note(ds); more.HasErrors() {
		return false, more
	}
	if written {
		return false, ds
	}
	if fits {
		if next != h.current && h.o.Host != nil {
			h.o.Host.Note(rec.Coming())
		}
		return false, append(ds, h.write(ctx, next)...)
	}
	objects, more := journal.StateOfJournal(rec, h.current)
	ds = append(ds, more...)
	_, more = writeApart(h.o, objects)
	return true, append(ds, more...)
}

// codeForeign is the code of the error that a journal belongs to another user.
const codeForeign = diag.CodeJournalForeign

// mayUse returns errors if a journal belongs to another user and the user does not agree to use
// it.
func (o *Options) mayUse(where string, rec *journal.Recovered) diag.List {
	if rec.Foreign == nil {
		return nil
	}
	if o.Adopt != nil {
		return o.Adopt(where, rec)
	}
	return foreign(where, rec)
}

// foreign returns the error that a journal is not used.
func foreign(where string, rec *journal.Recovered) diag.List {
	return diag.Errorf(codeForeign, nil, "Journal of unknown origin", "An interrupted run left a journal that may not be yours (%s): %s. Nothing in it was used, and it was kept. %s If you know this run, use the command \"state recover\" to bring it into the state. Otherwise remove the journal.", where, rec.Foreign, rec.Contents())
}

func (h *State) unreadable(err error) diag.List {
	if errors.Is(err, journal.ErrSealed) {
		return diag.Errorf(diag.CodeJournalFiles, store.PlaceOf(err), "Failed to read the journal of an interrupted run", "An earlier run was interrupted and left a journal of what it did, %s, which cannot be read: %s. Nothing was changed. Run the command again with the encryption that the earlier run had.", h.o.Journal, err)
	}
	return diag.Errorf(diag.CodeJournalFiles, store.PlaceOf(err), "Failed to read the journal of an interrupted run", "An earlier run was interrupted and left a journal of what it did, %s, which cannot be read: %s. Nothing was changed. If there is a copy of the file, put it back; if a newer version wrote it, use that. Otherwise give the file another name, so that it is kept, and run the command again: what the earlier run did after it had last written the state is then not in the state, so compare a plan with what exists, and import what the state lacks.", h.o.Journal, err)
}

// shows reports whether a state contains all changes of a journal.
func shows(s *state.State, changes []state.Change) bool {
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
