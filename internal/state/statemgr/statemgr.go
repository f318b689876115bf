// Package statemgr keeps the state of one configuration while a command works on it:
// locked, read, brought up to date from the journal of a killed run, and written
// as answers come in.
//
// Main type: State, made by Take. The one rule: what a provider has answered is in
// the journal before it is reported, and the journal is removed only when a
// state that holds all of it was written.
//
// # The way of the state through a command
//
// Lock, read, and fold in what the journal of a killed run holds. An apply then
// starts a journal of its own (Start), in which every answer is noted before it
// counts, and writes the whole state now and then and at its end. Where the last
// write fails (End), the state goes to errored.tfstate, or failing that where the
// caller says.
//
// # Who may touch what
//
// A journal is folded in for good by who holds the lock of the state, and only if the
// run that wrote it has ended, which the journal's own lock tells (see package
// journal). That holds for every kind of store: the lock of the state is the store's,
// the journal and its lock are always files of this machine. A journal that is not the
// user's own is used only if the user asks for it (Options.Adopt): it may have come with the
// working directory. Whoever holds no lock
// (-lock=false, and Read) folds in memory and changes no file, until it writes: then,
// in unlocked.go, it makes sure that nobody else is at work, folds in for good, and
// refuses if the state is another one than it was read as.
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

// Options say which state is held and how. Store, Journal and Dir are required.
type Options struct {
	Store   store.Store
	Journal string         // the path of the journal
	Records sealing.Sealer // what the journal is sealed with; nil: with nothing
	Sealer  sealing.Sealer // what errored.tfstate is sealed with, as the Store seals states; nil: with nothing
	Dir     string         // the folder for errored.tfstate
	User    journal.User   // whose journals are used without being asked for
	// StateID names the place of the state and its workspace. A journal in the store is
	// used only by commands on the state that it was written for.
	StateID string
	// Adopt is asked before the contents of a journal are used that is not the user's own, with
	// where it is; errors keep it from being used. nil: no such journal is used.
	Adopt func(where string, rec *journal.Recovered) diag.List
	// Recovering is called with a sentence before the state is written with the contents of
	// a journal. nil: only the messages that are returned tell of it.
	Recovering func(sentence string)
	// Segments are where a journal may be besides, for whoever works on the state on
	// another machine; nil: the store has no room for one.
	Segments Segments
	// KeepSegments keeps the journal of this run there too.
	KeepSegments bool
	Lock         *store.LockInfo // nil: the state is not locked
	Run          store.LockInfo  // tells others of the run where it does not lock
	Timeout      time.Duration   // how long to try for the lock
	Lease        *Lease          // nil: the work is this process's to its end
	// Rescue is given the text of a state that could be written nowhere, sealed if states
	// are; nil: there is no way left.
	Rescue func(text []byte) diag.List
}

// A State is held until Release. Write and the methods of a journal (Begin, Answer
// and Sync, between Start and End) may be called concurrently.
type State struct {
	o      Options
	unlock func() diag.List

	mu            sync.Mutex
	current       *state.State // as the store has it; nil if it has none
	view          *state.State // with a journal folded in that is still to be folded in for good; nil if there is none
	left          bool         // a journal in the store is part of view
	other         error        // a *journal.LiveError if another run is at work
	journal       *journal.Journal
	failed        *state.State // what could not be written last
	writeConflict bool         // since somebody else may have written the state

	abandoned atomic.Bool // the program is about to end; nothing is written any more
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

// recover folds the journals of killed runs into the state: that of this machine, then
// those in the store, of which the first may be a copy. Those in the store are left
// alone where the lock was not asked for: nothing else tells whether their runs ended.
func (h *State) recover(ctx context.Context, segments bool) diag.List {
	ctx = h.fenced(ctx)
	mine, apart, ds := h.recoverFile(ctx)
	if ds.HasErrors() || h.other != nil || !segments {
		return ds
	}
	return append(ds, h.recoverSegments(ctx, mine, apart)...)
}

// lockText is what a peer shows that is refused, perhaps just before somebody kills this
// run: once its process has ended, a local lock stops nobody any more.
const lockText = "If this run is killed, run a Terrace command before another tool: its journal may hold what the state does not show."

// Current is the state as the store has it, with what a journal adds to it; nil if
// there is none.
func (h *State) Current() *state.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.view != nil {
		return h.view
	}
	return h.current
}

// Release unlocks. A journal that was started and not brought to its end is left for
// the next command. It may be called more than once.
func (h *State) Release() diag.List {
	h.mu.Lock()
	j := h.journal
	h.mu.Unlock()
	if j != nil {
		_ = j.Close() // what is in the file is what there is
	}
	if h.unlock == nil {
		return nil
	}
	unlock := h.unlock
	h.unlock = nil
	return unlock()
}

// recoverFile folds the journal of a killed run into the state and writes it. That of a
// run that is at work, though it does not hold the lock, is folded in memory. The run is
// that of the journal; apart says that it was saved apart.
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
	_ = h.o.User.Settle(rec.Transfer, h.o.Journal) // if the other state is done; else after this one is
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

// fold folds what a journal tells into the state and writes it, or saves it apart.
func (h *State) fold(ctx context.Context, rec *journal.Recovered) (apart bool, ds diag.List) {
	next, fits, ds := journal.Fold(h.current, rec)
	if rec.Undone {
		return false, ds
	}
	written := !fits && shows(h.current, rec.Changes) // killed before the journal was removed
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
		if next != h.current && h.o.Recovering != nil {
			h.o.Recovering(rec.Coming())
		}
		return false, append(ds, h.write(ctx, next)...)
	}
	objects, more := journal.StateOfJournal(rec, h.current)
	ds = append(ds, more...)
	_, more = writeApart(h.o, objects)
	return true, append(ds, more...)
}

// codeForeign is the code of the error about a journal that is not the user's own.
const codeForeign = diag.CodeJournalForeign

// mayUse returns errors if a journal is neither the user's own nor to be used all the same.
func (o *Options) mayUse(where string, rec *journal.Recovered) diag.List {
	if rec.Foreign == nil {
		return nil
	}
	if o.Adopt != nil {
		return o.Adopt(where, rec)
	}
	return foreign(where, rec)
}

// foreign is the error that a journal is not used.
func foreign(where string, rec *journal.Recovered) diag.List {
	return diag.Errorf(codeForeign, nil, "Journal of unknown origin", "An interrupted run left a journal that may not be yours (%s): %s. Nothing in it was used, and it was kept. %s If you know this run, use the command \"state recover\" to bring it into the state. Otherwise remove the journal.", where, rec.Foreign, rec.Contents())
}

func (h *State) unreadable(err error) diag.List {
	if errors.Is(err, journal.ErrSealed) {
		return diag.Errorf(diag.CodeJournalFiles, store.PlaceOf(err), "Failed to read the journal of an interrupted run", "An earlier run was interrupted and left a journal of what it did, %s, which cannot be read: %s. Nothing was changed. Run the command again with the encryption that the earlier run had.", h.o.Journal, err)
	}
	return diag.Errorf(diag.CodeJournalFiles, store.PlaceOf(err), "Failed to read the journal of an interrupted run", "An earlier run was interrupted and left a journal of what it did, %s, which cannot be read: %s. Nothing was changed. If there is a copy of the file, put it back; if a newer version wrote it, use that. Otherwise give the file another name, so that it is kept, and run the command again: what the earlier run did after it had last written the state is then not in the state, so compare a plan with what exists, and import what the state lacks.", h.o.Journal, err)
}

// shows reports whether a state shows everything that a journal tells.
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
