package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
)

// # Moves between two states
//
// A move from one state to another is noted in a journal of each, whose changes count
// only if the move was decided. The decision is a file beside one of them, which is made
// once both journals are on disk: from then on both states change, before it neither
// does, whatever is killed. Each state is then brought up to date by its own journal,
// by whoever works on it next, and who is last to remove a journal removes the decision.

// A Transfer says that the changes of a journal are one half of a move between states.
type Transfer struct {
	ID string
	// Decision is the file that exists once the move is decided, and Other the journal of
	// the other half: relative to the folder of the journal where they can be.
	Decision, Other string
}

// NewTransfers are the notes for the two journals of a move. id tells it from all others.
func NewTransfers(id, from, into string) (a, b Transfer) {
	decision := into + "-moved-" + id
	return Transfer{id, relative(from, decision), relative(from, into)}, Transfer{id, relative(into, decision), relative(into, from)}
}

// relative is a path as seen from the folder of a journal, so that the two may be moved
// together.
func relative(journal, path string) string {
	if rel, err := filepath.Rel(filepath.Dir(journal), path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

func (t *Transfer) path(journal, name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(journal), name)
}

// Transfer notes that the changes of the journal are half of a move. It comes before them.
func (j *Journal) Transfer(t Transfer) error { return j.twice(kindTransfer, t) }

// Decide decides a move whose two journals are synced. journal is that of t.
func (t *Transfer) Decide(journal string) error {
	path := t.path(journal, t.Decision)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "The move %s between two states is decided. The journals beside this file carry it out.\n", t.ID)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil { // it may be there: whoever finds the journals must not think so
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// decided reports whether a move is decided, as seen from a journal.
func (t *Transfer) decided(journal string) (bool, error) {
	_, err := os.Lstat(t.path(journal, t.Decision))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Settle removes the decision if the other half of a move has no journal any more. It is
// called before and after the journal of this half is removed.
func (t *Transfer) Settle(journal string) error {
	if t == nil || Exists(t.path(journal, t.Other)) {
		return nil
	}
	if err := os.Remove(t.path(journal, t.Decision)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// decide leaves out the changes of a move that was not decided.
func (rec *Recovered) decide(journal string) error {
	if rec == nil || rec.Transfer == nil {
		return nil
	}
	yes, err := rec.Transfer.decided(journal)
	if err != nil {
		return fmt.Errorf("whether a move between two states was decided cannot be found out: %w", err)
	}
	if !yes {
		rec.Undone, rec.Changes, rec.marks = len(rec.Changes) > 0, nil, nil
	}
	return nil
}

// The codes of the messages about moves between states.
const (
	MovedCode   = "journal/moved"
	UnmovedCode = "journal/unmoved"
)

// moved tells a user what became of an interrupted move.
func (rec *Recovered) moved(changes int) diag.List {
	var ds diag.List
	switch {
	case rec.Live:
	case rec.Undone:
		ds = diag.Warnf(nil, "Interrupted move undone", "An earlier run was to move objects between this state and another and ended before that was decided. Neither state was changed by it.")
		ds[0].Code = UnmovedCode
	case changes > 0:
		ds = diag.Warnf(nil, "Interrupted move completed", "An earlier run moved objects between this state and another and ended before it had written both. This state has its part of the move now (changes: %d); the other one gets its part from the next command there.", changes)
		ds[0].Code = MovedCode
	}
	return ds
}
