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
// A move from one state to another is recorded in a journal for each state. Their changes only
// count if the move was decided. The decision is a file in the user's directory, named after
// the move, which is created when both journals are on disk. Before that neither state changes;
// after that both do, even if processes are killed. The next command on a state merges that
// state's journal. The command that removes the second of the two journals removes the
// decision.

// A Transfer marks the changes of a journal as half of a move between states.
type Transfer struct {
	ID   string // unique identifier of the move
	Into bool   // the objects are moved into this state

	// Decision is a path in format 2. It is never opened.
	Decision string `json:",omitempty"`
}

// NewTransfers returns the records for the two journals of a move. id must be unique.
func NewTransfers(id string) (from, into Transfer) {
	return Transfer{ID: id}, Transfer{ID: id, Into: true}
}

// A decision is the content of the file that decides a move: the paths of the two journals.
type decision struct{ From, Into string }

// move returns the path of the file that decides a move. ok is false if there can be none.
func (u User) move(id string) (path string, ok bool) {
	if u.Dir == "" || id == "" || len(id) > 64 || strings.Trim(id, "0123456789abcdef-") != "" {
		return "", false
	}
	return filepath.Join(u.Dir, movesName, id), true
}

// CanMove returns an error if the user has no directory for decisions.
func (u User) CanMove() error {
	if u.Dir == "" {
		return errNoUser
	}
	return os.MkdirAll(filepath.Join(u.Dir, movesName), 0o700)
}

// Transfer records that the changes of the journal are half of a move. It must be called before
// they are recorded.
func (j *Journal) Transfer(t Transfer) error { return j.twice(kindTransfer, t) }

// Decide decides a move. Both journals must have been synced.
func (u User) Decide(t Transfer, from, into string) error {
	path, ok := u.move(t.ID)
	if !ok {
		return errNoUser
	}
	text, err := json.Marshal(decision{place(from), place(into)})
	if err != nil {
		return err
	}
	if err := createWhole(path, text); err != nil { // the file may exist in spite of the error, but must not count
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		return err
	}
	return nil
}

// decided reports whether a move was decided.
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

// Settle removes the decision of a move if the journal of the other half no longer exists.
// journal is the path of this half's journal; the decision contains the path of the other one.
// Settle is called before and after the journal of this half is removed. t may be nil.
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
	default: // the journal was copied from another directory, where the move is not complete
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

// decide removes the changes of a move that was not decided. For a foreign journal the decision
// is not available. If it is unknown, only objects that come into the state count: an object
// may then be in both states, but is never lost.
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

// moved reports the result of an interrupted move.
func (rec *Recovered) moved(changes int) diag.List {
	var ds diag.List
	switch {
	case rec.Live:
	case rec.Undecided && rec.Undone && len(rec.left) == 0: // the objects were moved
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
