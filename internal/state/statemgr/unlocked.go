package statemgr

import (
	"context"
	"errors"
	"io/fs"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// Read reads a state for a command that changes nothing. It merges journals in memory, and
// neither locks nor writes anything.
func Read(ctx context.Context, o Options) (*state.State, diag.List) {
	seen, ds := look(ctx, o)
	for _, m := range seen.foreign { // the state can be shown without the journal
		warning := *m
		warning.Severity = diag.Warning
		ds = append(ds, &warning)
	}
	if seen.folded != nil {
		return seen.folded, ds
	}
	return seen.stored, ds
}

// ReadSummary is like Read, but objects may have no content except their id. It is for lists of
// objects. If a journal must be merged, the whole state is read.
func ReadSummary(ctx context.Context, o Options) (*state.State, diag.List) {
	from, ok := o.Store.(store.SummaryReader)
	if !ok {
		return Read(ctx, o)
	}
	s, ds := from.ReadSummary(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	there := journal.Exists(o.Journal)
	if !there && o.Segments != nil {
		names, err := o.Segments.ListBlobs(ctx, segmentPrefix)
		there = err != nil || len(names) > 0
	}
	if there { // a journal must be merged with the whole state
		return Read(ctx, o)
	}
	return s, ds
}

// seen is the view of a state without the lock.
type seen struct {
	stored *state.State
	folded *state.State // merged with journals; nil if there is none
	// segments means that folded contains a journal from the store.
	segments bool
	live     error // a *journal.LiveError if another run is working on the state
	// foreign contains errors about journals that are not used unless the user agrees.
	foreign diag.List
}

// look reads a state and its journals without changing anything.
func look(ctx context.Context, o Options) (seen, diag.List) {
	out, ds := lookHere(ctx, o)
	if ds.HasErrors() || out.live != nil || o.Segments == nil {
		return out, ds
	}
	return lookIntoSegments(ctx, o, out, ds)
}

// lookHere reads a state and its journal on this machine. They are two files; if a run writes
// one and removes the other meanwhile, lookHere reads both again.
func lookHere(ctx context.Context, o Options) (seen, diag.List) {
	for try := 0; ; try++ {
		s, ds := o.Store.Read(ctx)
		out := seen{stored: s}
		if ds.HasErrors() {
			return out, ds
		}
		there := journal.Exists(o.Journal)
		if !there && try == 0 {
			return out, ds
		}
		rec, err := journal.Inspect(o.Journal, o.Records, o.User)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if there && try < 4 { // its run has just ended and may have written the state after it was read
				continue
			}
			return out, ds
		case err != nil:
			return out, append(ds, diag.Warnf(diag.CodeJournalFiles, nil, "Failed to read the journal of an interrupted run", "An earlier run was interrupted and left a journal of what it did, %s, which cannot be read: %s. What it did since the state was written last is not shown.", o.Journal, err)...)
		}
		if rec.Live {
			out.live = &journal.LiveError{Run: rec.Run}
		}
		if rec.Foreign != nil { // only a command that holds the lock may adopt it
			out.foreign = foreign(o.Journal, rec)
			return out, ds
		}
		if rec.Damaged() {
			ds = append(ds, diag.Warnf(diag.CodeJournalDamaged, nil, "Damaged journal", "%s The file is %s.", rec.Damage(), o.Journal)...)
		}
		next, fits, more := journal.Fold(s, rec)
		if !fits && rec.Live && try < 4 { // its run has just written the state
			continue
		}
		switch {
		case fits:
			out.folded = next
			ds = append(ds, more...)
		case !rec.Live && !shows(s, rec.Changes):
			ds = append(ds, diag.Warnf(diag.CodeJournalOtherState, nil, "Journal of another state", "An earlier run ended before it could write the state, and left the journal %s, which does not continue the present state. What it holds is not shown; the next run that takes the lock saves it apart.", o.Journal)...)
		}
		return out, ds
	}
}

// beside returns a warning that another run is working on the state.
func (h *State) beside() diag.List {
	var live *journal.LiveError
	if !errors.As(h.other, &live) {
		return nil
	}
	return diag.Warnf(diag.CodeJournalOtherRun, nil, "Another run is still running", "The state is being changed by %s. What that has done so far is taken into account, what it is about to do is not.", live.Run)
}

// refused returns the error that another run is working on the state.
func (h *State) refused(live *journal.LiveError) diag.List {
	return diag.Errorf(diag.CodeJournalOtherRun, nil, "Another run is still running", "The state is being changed by %s, and both would write over what the other one did. Its journal is %s. Wait until it has ended and try again. Nothing was changed.", live.Run, h.o.Journal)
}

// Settle checks that a run may change or remove the state in other ways than with Write: no
// other run is working on it, and no journal remains. Write makes the same checks.
func (h *State) Settle(ctx context.Context) diag.List {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.own(ctx)
}

// own checks that a run without the lock may write. No other run may be working. The journal of
// a run that has ended is merged. The state must not have changed since it was read. The caller
// holds mu.
func (h *State) own(ctx context.Context) diag.List {
	if h.o.Lock != nil && h.other == nil {
		return nil
	}
	shown := h.current
	if h.view != nil {
		shown = h.view
	}
	unlock, asked, ds := h.lockToSettle(ctx)
	if ds.HasErrors() {
		return ds
	}
	defer unlock()
	h.view, h.other, h.left = nil, nil, false
	if h.current, ds = h.o.Store.Read(ctx); ds.HasErrors() {
		return ds
	}
	for _, m := range h.recover(ctx, asked) {
		if m.Code != journal.RecoveredCode && m.Code != journal.PendingCode { // these were reported when the state was read
			ds = append(ds, m)
		}
	}
	if ds.HasErrors() {
		return ds
	}
	var live *journal.LiveError
	switch {
	case errors.As(h.other, &live):
		return h.refused(live)
	case !shown.Equal(h.current):
		return append(ds, changed()...)
	}
	return ds
}

// lockToSettle locks the state briefly during a run with -lock=false if a journal must be
// merged permanently, because another run may be about to do the same. If the state cannot be
// locked, the claim on the journal must suffice. asked reports whether the lock was requested
// or is held.
func (h *State) lockToSettle(ctx context.Context) (unlock func(), asked bool, ds diag.List) {
	nothing := func() {}
	if h.unlock != nil {
		return nothing, true, nil
	}
	there, ds := h.anyJournal(ctx)
	if ds.HasErrors() || !there {
		return nothing, false, ds
	}
	claim, err := journal.TakeOver(h.o.Journal, h.o.Records)
	var live *journal.LiveError
	if errors.As(err, &live) {
		return nil, false, h.refused(live)
	}
	if err == nil {
		claim.Close()
	}
	release, ds := h.o.Store.Lock(ctx, h.o.Run, 0)
	switch {
	case store.IsLocked(ds):
		return nil, true, append(diag.Errorf(diag.CodeJournalOtherRun, nil, "Journal of an interrupted run", "A run that was interrupted, or is still running elsewhere, has left a journal. It must be brought into the state before anything else is written. That needs the lock, even with -lock=false, and another run holds it. Nothing was changed."), ds...)
	case ds.HasErrors():
		return nothing, true, nil
	}
	return func() { release() }, true, nil
}

// anyJournal reports whether there is a journal on this machine or in the store.
func (h *State) anyJournal(ctx context.Context) (bool, diag.List) {
	if journal.Exists(h.o.Journal) || h.left {
		return true, nil
	}
	if h.o.Segments == nil {
		return false, nil
	}
	names, err := h.o.Segments.ListBlobs(ctx, segmentPrefix)
	if err != nil {
		return false, diag.Errorf(diag.CodeFilesRead, nil, "Failed to look for journals", "Whether an interrupted run left a journal in the store of the state cannot be found out: %s. Nothing was changed.", err)
	}
	return len(names) > 0, nil
}

// codeChanged is the code of the error that another run has written the state.
const codeChanged = diag.CodeStateChanged

func overwritten(detail string) diag.List {
	return diag.Errorf(codeChanged, nil, "State was changed meanwhile", "%s", detail)
}

func changed() diag.List {
	return overwritten("Since this run read the state, another one has written it, which it could since this run holds no lock. Nothing was changed by this run: start it again, without -lock=false.")
}

// unchanged returns an error if another process has written the state since this run without
// the lock read or wrote it. The caller holds mu.
func (h *State) unchanged(ctx context.Context) diag.List {
	if h.o.Lock != nil {
		return nil
	}
	now, ds := h.o.Store.Read(ctx)
	if !ds.HasErrors() && journal.HeaderOf(now) != journal.HeaderOf(h.current) {
		ds = append(ds, overwritten("Another run has written the state since this one did, which it could since this run holds no lock. What this run did must not be written over it.")...)
	}
	return ds
}
