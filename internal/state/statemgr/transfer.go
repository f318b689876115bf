package statemgr

import (
	"cmp"
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// key returns the sort key of a state. All processes lock two states in the order of their
// keys.
func (o *Options) key() string {
	if p, ok := o.Store.(interface{ Place() string }); ok {
		return cmp.Or(p.Place(), o.Journal)
	}
	return o.Journal
}

// TakePair locks and reads two states, always in the same order, so that two runs never wait
// for each other. With errors nothing is held.
func TakePair(ctx context.Context, a, b Options) (x, y *State, ds diag.List) {
	switch c := cmp.Compare(a.key(), b.key()); {
	case c == 0 || a.Journal == b.Journal:
		return nil, nil, diag.List{{Code: diag.CodeStateSame, Severity: diag.Error, Summary: "Both states are the same", Detail: "Nothing can be moved from a state into itself this way. Leave out where to move to: then the address changes within the state."}}
	case c > 0:
		y, x, ds = TakePair(ctx, b, a)
		return x, y, ds
	}
	if x, ds = Take(ctx, a); x == nil {
		return nil, nil, ds
	}
	y, more := Take(ctx, b)
	if ds = append(ds, more...); y == nil {
		return nil, nil, append(ds, x.Release()...)
	}
	return x, y, ds
}

// Transfer changes two states atomically, even if the program is killed. The next command on
// either state completes a move that was decided, and undoes one that was not. out are the
// changes of from, and in those of into. into is written first: a program that ignores journals
// may see an object twice, but never misses one.
func Transfer(ctx context.Context, from, into *State, out, in []state.Change) diag.List {
	return transfer(ctx, from, into, out, in, func(string) bool { return true })
}

// The steps of a transfer. Tests interrupt it after each of them.
const (
	stepFromNoted = "the journal of the source is written"
	stepIntoNoted = "both journals are written"
	stepDecided   = "the move is decided"
	stepInto      = "the destination is written"
	stepFrom      = "both states are written"
	stepFromDone  = "the journal of the source is removed"
	stepSettled   = "the decision is removed"
)

// transfer implements Transfer. goOn is called after each step. If it returns false, everything
// remains as a killed run leaves it.
func transfer(ctx context.Context, from, into *State, out, in []state.Change, goOn func(step string) bool) diag.List {
	for _, h := range []*State{from, into} {
		h.mu.Lock()
		defer h.mu.Unlock()
		if ds := h.own(ctx); ds.HasErrors() {
			return ds
		}
	}
	ctx = context.WithoutCancel(ctx) // from here on the transfer is not interrupted
	if err := into.o.User.CanMove(); err != nil {
		return diag.Errorf(diag.CodeStateFile, nil, "Failed to prepare the move", "A move between two states needs a note outside of the working directory, which completes it if the run is killed. There is no place for it: %s. Neither state was changed.", err)
	}
	a, b := journal.NewTransfers(store.NewID())
	halves := []*half{{State: from, note: a, changes: out}, {State: into, note: b, changes: in}}
	left := func() diag.List { // releases the files like the end of the process
		for _, h := range halves {
			h.close()
		}
		return diag.Errorf(diag.CodeEstateMove, nil, "Move left", "The move was not finished.")
	}
	undo := func(why string, err error) diag.List {
		ds := diag.Errorf(diag.CodeStateFile, nil, "Failed to prepare the move", "%s: %s. Neither state was changed.", why, err)
		for _, h := range halves {
			ds = append(ds, h.remove()...)
		}
		return ds
	}
	for i, step := range []string{stepFromNoted, stepIntoNoted} {
		if err := halves[i].write(); err != nil {
			return undo("The journal "+halves[i].o.Journal+" cannot be written", err)
		}
		if !goOn(step) {
			return left()
		}
	}
	if err := into.o.User.Decide(b, from.o.Journal, into.o.Journal); err != nil {
		return undo("The move cannot be noted as decided", err)
	}
	if !goOn(stepDecided) {
		return left()
	}
	var ds diag.List
	for i, step := range []string{stepInto, stepFrom} {
		h := halves[1-i]
		if more := h.store(ctx); more.HasErrors() {
			ds = append(ds, more...)
			ds = append(ds, diag.Errorf(diag.CodeStateFile, nil, "Failed to write both states", "The move is decided, and noted in the journals %s and %s. The next command on each of the states completes it there.", from.o.Journal, into.o.Journal)...)
			for _, h := range halves {
				h.close()
			}
			return ds
		}
		if !goOn(step) {
			return left()
		}
	}
	ds = append(ds, halves[0].remove()...)
	if !goOn(stepFromDone) {
		return left()
	}
	if err := into.o.User.Settle(&b, into.o.Journal); err != nil {
		ds = append(ds, diag.Warnf(diag.CodeStateFile, nil, "Failed to remove a file", "Both states were written, but the note that the move was decided cannot be removed: %s.", err)...)
	}
	if !goOn(stepSettled) {
		return left()
	}
	return append(ds, halves[1].remove()...)
}

// half is one of the two states of a transfer, with its journal.
type half struct {
	*State
	note    journal.Transfer
	changes []state.Change
	j       *journal.Journal
}

// write writes the changes to the journal on disk.
func (h *half) write() error {
	var err error
	if h.j, err = journal.Create(h.o.Journal, journal.Options{Header: journal.HeaderOf(h.current), Run: h.run(), Sealer: h.o.Records, User: h.o.User, Store: h.o.StateID, Answers: 1}); err != nil {
		return err
	}
	if err = h.j.Transfer(h.note); err == nil {
		err = h.j.Answer(0, h.changes)
	}
	if err == nil {
		err = h.j.Sync()
	}
	return err
}

// store writes the state with the changes.
func (h *half) store(ctx context.Context) diag.List {
	d := h.current.Edit()
	for _, c := range h.changes {
		d.Apply(c)
	}
	h.journal = h.j // write notifies the journal about the state
	defer func() { h.journal = nil }()
	ds := h.State.write(ctx, d.Freeze())
	if ds.HasErrors() {
		h.failed = nil // the journal contains the state
	}
	return ds
}

func (h *half) close() {
	if h.j != nil {
		_ = h.j.Close() // what was written so far remains in the file
	}
}

func (h *half) remove() diag.List {
	if h.j == nil {
		return nil
	}
	if err := h.j.Remove(); err != nil {
		return diag.Warnf(diag.CodeJournalFiles, nil, "Failed to remove the journal", "The journal %s cannot be removed: %s.", h.o.Journal, err)
	}
	return nil
}
