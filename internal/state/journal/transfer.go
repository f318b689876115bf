package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// # Moves between two states
//
// A move from one state to another is noted in a journal of each, whose changes count
// only if the move was decided. The decision is a file in the user's directory, named after the
// move, which is made once both journals are on disk: from then on both states change, before it
// neither does, whatever is killed. Each state is then brought up to date by its own journal,
// by the next command that works on it, and the command that removes the last of the two
// journals removes the decision.

// A Transfer says that the changes of a journal are one half of a move between states.
type Transfer struct {
	ID   string // tells the move from all others
	Into bool   // the objects come into this state

	// Decision is what format 2 had: a path, which is not followed.
	Decision string `json:",omitempty"`
}

// NewTransfers are the notes for the two journals of a move. id tells it from all others.
func NewTransfers(id string) (from, into Transfer) {
	return Transfer{ID: id}, Transfer{ID: id, Into: true}
}

// A decision is what the file says that decides a move: the paths of the two journals.
type decision struct{ From, Into string }

// move is the file that decides a move. ok is false if there can be none.
func (u User) move(id string) (path string, ok bool) {
	if u.Dir == "" || id == "" || len(id) > 64 || strings.Trim(id, "0123456789abcdef-") != "" {
		return "", false
	}
	return filepath.Join(u.Dir, movesName, id), true
}

// CanMove returns an error if the user has no place for the notes of moves.
func (u User) CanMove() error {
	if u.Dir == "" {
		return errNoUser
	}
	return os.MkdirAll(filepath.Join(u.Dir, movesName), 0o700)
}

// Transfer notes that the changes of the journal are half of a move. It comes before them.
func (j *Journal) Transfer(t Transfer) error { return j.twice(kindTransfer, t) }

// Decide decides a move whose two journals are synced.
func (u User) Decide(t Transfer, from, into string) error {
	path, ok := u.move(t.ID)
	if !ok {
		return errNoUser
	}
	text, err := json.Marshal(decision{place(from), place(into)})
	if err != nil {
		return err
	}
	if err := createWhole(path, text); err != nil { // it may be there: nobody must think so
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		return err
	}
	return nil
}

// decided reports whether a move is decided.
func (u User) decided(t *Transfer) (bool, error) {
	path, ok := u.move(t.ID)
	if !ok {
		return false, nil
	}
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Settle removes the decision of a move if the other half has no journal any more. journal is
// that of this half; the decision says where the other one is. Settle is called before and
// after the journal of this half is removed. t may be nil.
func (u User) Settle(t *Transfer, journal string) error {
	if t == nil {
		return nil
	}
	path, ok := u.move(t.ID)
	if !ok {
		return nil
	}
	text, err := readfile.Whole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var d decision
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return err
	}
	var other string
	switch place(journal) {
	case d.From:
		other = d.Into
	case d.Into:
		other = d.From
	default: // the journal was brought from another directory, where the move is still open
		return nil
	}
	if Exists(filepath.FromSlash(other)) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// decide leaves out the changes of a move that was not decided. Of a foreign journal, whose
// user's notes are not here, only what comes into the state counts if nothing is known: then
// an object may be in both states, but it is never in none.
func (rec *Recovered) decide(u User) error {
	if rec == nil || rec.Transfer == nil {
		return nil
	}
	yes, err := u.decided(rec.Transfer)
	if err != nil {
		return fmt.Errorf("whether a move between two states was decided cannot be found out: %w", err)
	}
	if !yes && rec.Foreign != nil {
		rec.Undecided = true
		yes = rec.Transfer.Into
	}
	if !yes {
		rec.Undone, rec.left, rec.Changes, rec.marks = len(rec.Changes) > 0, rec.Changes, nil, nil
	}
	return nil
}

// The codes of the messages about moves between states.
const (
	MovedCode     = diag.CodeJournalMoved
	UnmovedCode   = diag.CodeJournalUnmoved
	UndecidedCode = diag.CodeJournalMoveUnknown
)

// moved tells a user what became of an interrupted move.
func (rec *Recovered) moved(changes int) diag.List {
	var ds diag.List
	switch {
	case rec.Live:
	case rec.Undecided && rec.Undone && len(rec.left) == 0: // they were moved
	case rec.Undecided && rec.Undone:
		ds = diag.Warnf(diag.CodeJournalMoveUnknown, nil, "Interrupted move kept back", "An earlier run was to move objects from this state to another one: %s. Whether it came to that is not known here, so they were left in this state. Look whether the other state has them; if so, remove them here with \"state rm\", which destroys nothing.", changed(rec.left))
		ds[0].Code = UndecidedCode
	case rec.Undecided && changes > 0:
		ds = diag.Warnf(diag.CodeJournalMoveUnknown, nil, "Interrupted move taken over", "An earlier run was to move objects from another state into this one: %s. This state has them now. Look whether the other state still has them; if so, remove them there with \"state rm\", which destroys nothing.", changed(rec.Changes))
		ds[0].Code = UndecidedCode
	case rec.Undone:
		ds = diag.Warnf(diag.CodeJournalUnmoved, nil, "Interrupted move undone", "An earlier run was to move objects between this state and another and ended before that was decided. Neither state was changed by it.")
		ds[0].Code = UnmovedCode
	case changes > 0:
		ds = diag.Warnf(diag.CodeJournalMoved, nil, "Interrupted move completed", "An earlier run moved objects between this state and another and ended before it had written both. This state has its part of the move now (changes: %d); the other one gets its part from the next command there.", changes)
		ds[0].Code = MovedCode
	}
	return ds
}
