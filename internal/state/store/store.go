// Package store is what the engine asks of a place where state lives: read,
// write and lock one state, and list, create and delete workspaces.
//
// Main types: Store and Workspaces, which each kind of place implements in a
// package of its own, and LockInfo. The one rule: a state that could not be
// read is never taken for one that does not exist, and no write leaves half of
// a state behind. Package storetest checks that.
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A Store holds the state of one workspace.
type Store interface {
	// Read returns the state, or nil if there is none yet.
	Read(ctx context.Context) (*state.State, diag.List)
	// Write replaces the state, wholly or not at all. Serial and lineage are the
	// caller's (see NextSerial). Where the store keeps backups, it keeps the
	// state that the first write of a run replaces.
	Write(ctx context.Context, s *state.State) diag.List
	// Lock keeps others, of both peers too, from changing the state. It tries
	// until the timeout; 0 tries once. With errors unlock is nil. unlock is
	// idempotent.
	Lock(ctx context.Context, info LockInfo, timeout time.Duration) (unlock func() diag.List, ds diag.List)
}

// A SummaryReader is a Store that can read a state without most of what is in it: of objects
// it has the id alone (see statefile.ParseStream).
type SummaryReader interface {
	ReadSummary(ctx context.Context) (*state.State, diag.List)
}

// A Preparer is a Store that can find out, before anything is applied, that a
// later Write would fail, for want of room or of permission. room is a generous guess at
// what is written meanwhile, in backup and journal too; growth at how much larger the state
// becomes.
type Preparer interface {
	Prepare(ctx context.Context, room, growth int64) diag.List
}

// An Unlocker is a Store whose lock can be released by another process than the one
// that took it, given the ID of the lock.
type Unlocker interface {
	ForceUnlock(ctx context.Context, id string) diag.List
}

// FileText is the text of a state file for people's eyes, encrypted if s is not nil.
func FileText(s sealing.Sealer, st *state.State) (func(io.Writer) error, error) {
	write := func(w io.Writer) error { return statefile.Write(w, st, true) }
	if s == nil {
		return write, nil
	}
	return s.Seal(sealing.Plaintext{Write: write, Serial: st.Serial, Lineage: st.Lineage, Indent: true})
}

// Workspaces are the states of one configuration, by name.
type Workspaces interface {
	// List returns the names in order; "default" is always the first.
	List(ctx context.Context) ([]string, diag.List)
	// Create makes an empty workspace; one that exists is an error.
	Create(ctx context.Context, name string) diag.List
	// Delete removes a workspace with its state, whatever is in it. The default
	// workspace cannot be deleted.
	Delete(ctx context.Context, name string) diag.List
}

// Default is the workspace that always exists.
const Default = "default"

// LockInfo tells who holds a lock and why, as both peers write it. Lock fills
// in an ID, Created and Path that are empty.
type LockInfo struct {
	ID        string
	Operation string // e.g. "OperationTypeApply"
	Info      string
	Who       string // user@host
	Version   string
	Created   time.Time
	Path      string
}

// JSON is the info as it is kept beside a lock.
func (i LockInfo) JSON() []byte {
	b, err := json.Marshal(i)
	if err != nil {
		return []byte("{}") // a time with a year past 9999
	}
	return b
}

// ParseLockInfo reads what JSON wrote.
func ParseLockInfo(b []byte) (LockInfo, error) {
	var i LockInfo
	err := json.Unmarshal(b, &i)
	return i, err
}

// String tells the info to a user, a line a field.
func (i LockInfo) String() string {
	return "  ID:        " + i.ID +
		"\n  Path:      " + i.Path +
		"\n  Operation: " + i.Operation +
		"\n  Who:       " + i.Who +
		"\n  Version:   " + i.Version +
		"\n  Created:   " + i.Created.UTC().Format("2006-01-02 15:04:05.999999999 -0700 MST") +
		"\n  Info:      " + i.Info
}

// A PlacedError is an error with the place of what it is about, such as the block of a key
// provider. One without a file hides the places of those that it wraps.
type PlacedError struct {
	At  source.Range
	Err error
}

func (e *PlacedError) Error() string { return e.Err.Error() }
func (e *PlacedError) Unwrap() error { return e.Err }

// PlaceOf is the place of what an error is about; nil if it names none.
func PlaceOf(err error) *source.Range {
	if e, ok := errors.AsType[*PlacedError](err); ok && e.At.Filename != "" {
		at := e.At
		return &at
	}
	return nil
}

// LockedCode is the code of the message that somebody else holds a lock.
const LockedCode = diag.CodeStateLocked

// IsLocked reports whether a lock could not be taken because somebody else holds it,
// and not because there is none to take.
func IsLocked(ds diag.List) bool {
	return slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == LockedCode })
}

// Locked makes the message for a lock that somebody else holds. what is a sentence without
// its period that says which state is locked, and by whom; holder is nil if nothing is known
// of it.
func Locked(what string, holder *LockInfo) diag.List {
	m := &diag.Message{Code: LockedCode, Severity: diag.Error, Summary: "Error acquiring the state lock", Detail: what + "."}
	if holder != nil {
		m.Detail += "\n\nLock Info:\n" + holder.String()
		m.Extra = holder
	}
	m.Detail += "\n\nThe lock keeps two runs from changing the state at the same time. Wait until the other run has ended and try again, or give it time with -lock-timeout."
	return diag.List{m}
}

// NextSerial gives a state the lineage and serial that it is to be written
// with, where old is what the store holds now (nil: nothing). write is false if
// nothing changed, and then the result is old.
func NextSerial(old, next *state.State) (out *state.State, write bool) {
	if old == nil {
		if next == nil {
			next = state.New()
		}
		lineage := next.Lineage
		if lineage == "" {
			lineage = NewID()
		}
		return next.WithMeta(lineage, next.Serial+1, state.LanguageVersion), true
	}
	if old.Equal(next) {
		return old, false
	}
	lineage := old.Lineage
	if lineage == "" {
		lineage = NewID()
	}
	if next == nil {
		next = state.New()
	}
	return next.WithMeta(lineage, old.Serial+1, state.LanguageVersion), true
}

// NewID makes a random UUID, for a lineage or a lock.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[:8], b[:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:], b[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// ValidWorkspace reports whether a workspace may have this name: what is not
// changed when it becomes a part of the path of a URL, as the peers have it.
func ValidWorkspace(name string) bool {
	if name == "" || name == "." || name == ".." {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == '~', c == '$', c == '&', c == '+', c == '=', c == ':', c == '@':
		default:
			return false
		}
	}
	return true
}
