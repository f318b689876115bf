package statemgr

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// migrating is implemented by a store.Store that can report that the state it read is not
// encrypted as configured.
type migrating interface{ Migrating() bool }

// otherOutput is implemented by a store that may write to another file than it reads
// (-state-out). Such a store is written even if nothing changed.
type otherOutput interface{ OtherOutput() bool }

// Migrating reports whether the state must be written even if nothing changed, because it is
// not encrypted as configured.
func (h *State) Migrating() bool {
	m, ok := h.o.Store.(migrating)
	return ok && m.Migrating()
}

// Write writes a state if it differs from the one in the store, or if that is not encrypted as
// configured.
func (h *State) Write(ctx context.Context, s *state.State) diag.List {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.abandoned.Load() {
		return diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The state was not written, since %s.", errAbandoned)
	}
	if err := h.held(); err != nil {
		return diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The state was not written, since %s.", err)
	}
	if h.journal != nil {
		return h.write(ctx, s)
	}
	ds := h.own(ctx)
	if ds.HasErrors() {
		return ds
	}
	return append(ds, h.write(ctx, s)...)
}

// write writes a state that this run is allowed to write. The caller holds mu.
func (h *State) write(ctx context.Context, s *state.State) diag.List {
	ctx = h.fenced(ctx)
	next, changed := store.NextSerial(h.current, s)
	if !changed && h.Migrating() {
		next, changed = h.current.WithMeta(h.current.Lineage, h.current.Serial+1, state.LanguageVersion), true
	}
	if e, ok := h.o.Store.(otherOutput); !changed && ok && e.OtherOutput() && next != nil {
		return h.o.Store.Write(ctx, next)
	}
	if !changed {
		h.failed = nil
		return nil
	}
	if h.exhausted(next) {
		return noSerial()
	}
	if ds := h.unchanged(ctx); ds.HasErrors() {
		h.failed, h.writeConflict = next, writeConflict(ds)
		return ds
	}
	if h.journal != nil {
		if err := h.journal.Written(next); err != nil {
			h.failed = next
			return diag.Errorf(diag.CodeJournalFiles, store.PlaceOf(err), "Failed to write the journal", "The journal of this run cannot be written: %s.", err)
		}
	}
	ds := h.o.Store.Write(ctx, next)
	if ds.HasErrors() {
		h.failed, h.writeConflict = next, writeConflict(ds)
		return ds
	}
	h.current, h.failed, h.writeConflict = next, nil, false
	return ds
}

// writeConflict reports whether a write failed because another process has written the state,
// or may have.
func writeConflict(ds diag.List) bool {
	return slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool {
		switch m.Code {
		case diag.CodeBackendChanged, diag.CodeBackendLockLost, codeChanged:
			return true
		}
		return false
	})
}

// lastSerial is the largest serial that can be written. Two more are reserved for the state
// that is saved after a failed write.
const lastSerial = math.MaxUint64 - 2

// exhausted reports whether the serials after a state are used up. Incrementing further would
// start at 0 again, which is older than all copies.
func (h *State) exhausted(s *state.State) bool {
	return s != nil && s.Serial > lastSerial || s != nil && s.Serial == 0 && h.current != nil && h.current.Serial > lastSerial
}

func noSerial() diag.List {
	return diag.Errorf(diag.CodeStateSerialExhausted, nil, "Serial of the state is exhausted", "The serial of the state is the highest that there can be, so that nothing newer can be written: somebody edited it, or it is damaged. Nothing was changed. Write the state to a file with \"state pull > state.tfstate\", set a low serial in it, and bring it back with \"state push -force state.tfstate\".")
}

// Start prepares for an apply with the given number of changes. created is the number of
// changes that create objects where there were none. It checks that the state can be written
// and starts the journal. From then on h implements the state.Manager of the engine.
func (h *State) Start(ctx context.Context, changes, created int) diag.List {
	const perObject = 2 << 10 // estimated size of an object
	h.mu.Lock()
	defer h.mu.Unlock()
	ds := h.own(ctx)
	if ds.HasErrors() {
		return ds
	}
	if h.exhausted(h.current) {
		return noSerial()
	}
	if p, ok := h.o.Store.(store.Preparer); ok {
		ds = append(ds, p.Prepare(ctx, int64(changes+1)*perObject, int64(created)*perObject)...)
		if ds.HasErrors() {
			return ds
		}
	}
	o := journal.Options{
		Header: journal.HeaderOf(h.current), Run: h.run(), Sealer: h.o.Records, User: h.o.User, Store: h.o.StateID, Answers: 2*changes + 2, // a replacement has two answers
	}
	if h.o.KeepSegments {
		if h.o.Segments == nil {
			return diag.Errorf(diag.CodeStateJournalStoreFailed, nil, "Journal cannot be kept in the store", "The journal of this run is to be kept beside the state, but its store has no room for more than the state. Leave -journal=store out, or keep the state in a store that has. Nothing was changed.")
		}
		o.Mirror = newMirror(h.fenced(context.WithoutCancel(ctx)), h.o.Segments, o.Run, h.held)
	}
	j, err := journal.Create(h.o.Journal, o)
	if errors.Is(err, journal.ErrExists) {
		var live *journal.LiveError
		claim, taken := journal.TakeOver(h.o.Journal, h.o.Records)
		if errors.As(taken, &live) {
			return h.refused(live)
		}
		if taken == nil {
			claim.Close()
		}
	}
	if err != nil {
		return diag.Errorf(diag.CodeJournalFiles, store.PlaceOf(err), "Failed to start the journal", "Before anything is applied, a journal is started, so that nothing is lost if the run is killed. It cannot be written: %s. Nothing was changed.", err)
	}
	h.journal = j
	return ds
}

// run returns the description of this run in the journal.
func (h *State) run() journal.Run {
	info := h.o.Run
	if h.o.Lock != nil {
		info = *h.o.Lock
	}
	return journal.Run{Operation: info.Operation, Who: info.Who, Process: os.Getpid(), Since: info.Created}
}

// Begin records that a provider call is about to be made. After Abandon, Begin, Answer and Sync
// record nothing.
func (h *State) Begin(id int, address, action string) error {
	if h.abandoned.Load() {
		return errAbandoned
	}
	if err := h.held(); err != nil {
		return err
	}
	return h.journal.Begin(id, address, action)
}

// Answer records the response to a provider call.
func (h *State) Answer(id int, changes []state.Change) error {
	if h.abandoned.Load() {
		return errAbandoned
	}
	if err := h.held(); err != nil {
		return err
	}
	return h.journal.Answer(id, changes)
}

// Sync returns when all records are on stable storage.
func (h *State) Sync() error {
	if h.abandoned.Load() {
		return errAbandoned
	}
	if err := h.held(); err != nil {
		return err
	}
	return h.journal.Sync()
}

// Abandon leaves state and journal as they are, for a program that is about to end. The results
// of pending calls are unknown, and the journal must show that. It returns when no write is in
// progress.
func (h *State) Abandon() {
	h.abandoned.Store(true)
	h.mu.Lock() // a write in progress is completed
	defer h.mu.Unlock()
}

// End ends an apply. If the state cannot be written, it saves final another way, or if final is
// nil the last state that could not be written.
func (h *State) End(final *state.State) diag.List {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := h.journal
	if j == nil || h.abandoned.Load() || h.held() != nil {
		return nil // the next command uses the journal
	}
	h.journal = nil
	if h.failed == nil {
		if err := j.Remove(); err != nil {
			return diag.Warnf(diag.CodeJournalFiles, nil, "Failed to remove the journal", "The state was written, but the journal of this run, %s, cannot be removed: %s.", h.o.Journal, err)
		}
		return nil
	}
	last := h.failed
	if final != nil {
		last = final
	}
	// The next command merges the journal and writes the serial that was to be written here.
	// The saved state also contains outputs. To be pushed after that, it must be newer.
	last = last.WithMeta(h.failed.Lineage, h.failed.Serial+1, h.failed.TerraformVersion)
	ds := diag.Errorf(diag.CodeStateFile, nil, "Failed to save state", "The state could not be written to its place. It was saved as described below, and the journal %s holds it too.", h.o.Journal)
	_, more := writeErrored(h.o, last, h.writeConflict)
	ds = append(ds, more...)
	if more.HasErrors() && h.o.Host != nil {
		var b bytes.Buffer
		text, err := store.FileText(h.o.Sealer, last)
		if err == nil {
			err = text(&b)
		}
		if err != nil {
			return append(ds, diag.Errorf(diag.CodeBackendWriteFailed, store.PlaceOf(err), "Failed to encrypt the state", "The state cannot be printed either: %s. The journal holds it: leave it where it is.", err)...)
		}
		ds = append(ds, h.o.Host.Rescue(b.Bytes())...)
	}
	if err := j.Close(); err != nil {
		ds = append(ds, diag.Warnf(diag.CodeJournalFiles, nil, "Failed to close the journal", "%s.", err)...)
	}
	return ds
}
