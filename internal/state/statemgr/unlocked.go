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

// Read reads a state for a command that changes nothing: what a journal holds is
// folded in, and nothing is locked or written.
func Read(ctx context.Context, o Options) (*state.State, diag.List) {
	seen, ds := look(ctx, o)
	for _, m := range seen.foreign { // the state can be shown without it
		warning := *m
		warning.Severity = diag.Warning
		ds = append(ds, &warning)
	}
	if seen.folded != nil {
		return seen.folded, ds
	}
	return seen.stored, ds
}

// ReadSummary reads a state as Read does, but without what objects consist of, where it need
// not look into them: of attributes there is the id then. It serves to list what there is.
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
	if there { // it is held to the whole state
		return Read(ctx, o)
	}
	return s, ds
}

// seen is a state as it looks to who holds no lock.
type seen struct {
	stored *state.State
	folded *state.State // with what a journal holds; nil if nothing is folded in
	// segments tells that a journal in the store is among that.
	segments bool
	live     error // a *journal.LiveError if a run is at work
	// foreign are errors about journals that are not used unless the user asks for it.
	foreign diag.List
}

// look reads a state and its journals, and changes nothing.
func look(ctx context.Context, o Options) (seen, diag.List) {
	out, ds := lookHere(ctx, o)
	if ds.HasErrors() || out.live != nil || o.Segments == nil {
		return out, ds
	}
	return lookIntoSegments(ctx, o, out, ds)
}

// lookHere reads a state and its journal on this machine. State and journal are two
// files: where a run writes one and removes the other meanwhile, it looks again.
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
			if there && try < 4 { // its run has just ended, and may have written the state since
				continue
			}
			return out, ds
		case err != nil:
			return out, append(ds, diag.Warnf(diag.CodeJournalFiles, nil, "Failed to read the journal of an interrupted run", "An earlier run was interrupted and left a journal of what it did, %s, which cannot be read: %s. What it did since the state was written last is not shown.", o.Journal, err)...)
		}
		if rec.Live {
			out.live = &journal.LiveError{Run: rec.Run}
		}
		if rec.Foreign != nil { // which only a command that holds the lock may adopt
			out.foreign = foreign(o.Journal, rec)
			return out, ds
		}
		if rec.Damaged() {
			ds = append(ds, diag.Warnf(diag.CodeJournalDamaged, nil, "Damaged journal", "%s The file is %s.", rec.Damage(), o.Journal)...)
		}
		next, fits, more := journal.Fold(s, rec)
		if !fits && rec.Live && try < 4 { // it has just written the state
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

// beside tells a run that another one is at work on the state.
func (h *State) beside() diag.List {
	var live *journal.LiveError
	if !errors.As(h.other, &live) {
		return nil
	}
	return diag.Warnf(diag.CodeJournalOtherRun, nil, "Another run is still running", "The state is being changed by %s. What that has done so far is taken into account, what it is about to do is not.", live.Run)
}

// refused is the error that another run is at work.
func (h *State) refused(live *journal.LiveError) diag.List {
	return diag.Errorf(diag.CodeJournalOtherRun, nil, "Another run is still running", "The state is being changed by %s, and both would write over what the other one did. Its journal is %s. Wait until it has ended and try again. Nothing was changed.", live.Run, h.o.Journal)
}

// Settle makes sure that a run may change or remove the state by other ways than
// Write, which does the same: nobody else is at work, and no journal is left.
func (h *State) Settle(ctx context.Context) diag.List {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.own(ctx)
}

// own makes sure that a run without the lock may write: that no other run is at work,
// that the journal of a run that ended is in the state, and that the state is the one
// that was read. The caller holds mu.
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
		if m.Code != journal.RecoveredCode && m.Code != journal.PendingCode { // which were said when the state was read
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

// lockToSettle locks the state for a moment though the run has -lock=false, where a
// journal must be folded in for good: another run may be about to do the same. Where
// the state cannot be locked at all, the claim on the journal must do. asked tells
// whether the lock was asked for, or is held anyway.
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

// anyJournal reports whether there is a journal, here or in the store.
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

// unchanged makes sure that nobody has written the state since a run without the lock
// read or wrote it. The caller holds mu.
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
