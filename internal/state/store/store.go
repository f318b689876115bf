// Package store defines the interface of places that store state: they read, write and lock one
// state, and list, create and delete workspaces.
//
// Main types: Store and Workspaces, which each kind of store implements in its own package, and
// LockInfo. The one rule: an unreadable state never counts as missing, and no write leaves an
// incomplete state. Package storetest checks both.
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A Store stores the state of one workspace.
type Store interface {
	// Read returns the state, or nil if there is none yet.
	Read(ctx context.Context) (*state.State, diag.List)
	// Write replaces the state, completely or not at all. The caller sets serial and lineage
	// (see NextSerial). A store with backups keeps the state that the first write of a run
	// replaces.
	Write(ctx context.Context, s *state.State) diag.List
	// Lock prevents other processes, including OpenTofu and Terraform, from changing the state.
	// It retries until timeout; 0 means one attempt. With errors unlock is nil. unlock may be
	// called more than once.
	Lock(ctx context.Context, info LockInfo, timeout time.Duration) (unlock func() diag.List, ds diag.List)
}

// A SummaryReader is a Store that can read a state without most of its content: objects have
// only their id (see statefile.ParseStream).
type SummaryReader interface {
	ReadSummary(ctx context.Context) (*state.State, diag.List)
}

// A Preparer is a Store that can check, before anything is applied, whether a later Write would
// fail for lack of space or permission. room is a generous estimate of all bytes that will be
// written, including backup and journal. growth estimates the growth of the state in bytes.
type Preparer interface {
	Prepare(ctx context.Context, room, growth int64) diag.List
}

// An Unlocker is a Store whose lock can be released by another process, given the ID of the
// lock.
type Unlocker interface {
	ForceUnlock(ctx context.Context, id string) diag.List
}

// FileText returns a function that writes the text of a state file in its readable form,
// encrypted if s is not nil.
func FileText(s sealing.Sealer, st *state.State) (func(io.Writer) error, error) {
	write := func(w io.Writer) error { return statefile.Write(w, st, true) }
	if s == nil {
		return write, nil
	}
	return s.Seal(sealing.Plaintext{Write: write, Serial: st.Serial, Lineage: st.Lineage, Indent: true})
}

// Workspaces manages the states of one configuration, by workspace name.
type Workspaces interface {
	// List returns the names, sorted; "default" always comes first.
	List(ctx context.Context) ([]string, diag.List)
	// Create creates an empty workspace. If it exists, that is an error.
	Create(ctx context.Context, name string) diag.List
	// Delete deletes a workspace with its state, even if that is not empty. The default
	// workspace cannot be deleted.
	Delete(ctx context.Context, name string) diag.List
}

// Default is the name of the workspace that always exists.
const Default = "default"

// LockInfo describes the holder of a lock, in the form that OpenTofu and Terraform use, too.
// Lock sets ID, Created and Path if they are empty.
type LockInfo struct {
	ID        string
	Operation string // e.g. "OperationTypeApply"
	Info      string
	Who       string // user@host
	Version   string
	Created   time.Time
	Path      string
}

// JSON returns the info in the form that is stored with a lock.
func (i LockInfo) JSON() []byte {
	b, err := json.Marshal(i)
	if err != nil {
		return []byte("{}") // the year of a time is greater than 9999
	}
	return b
}

// ParseLockInfo parses the result of JSON.
func ParseLockInfo(b []byte) (LockInfo, error) {
	var i LockInfo
	err := json.Unmarshal(b, &i)
	return i, err
}

// String returns a description for the user, with one field per line.
func (i LockInfo) String() string {
	return "  ID:        " + i.ID +
		"\n  Path:      " + i.Path +
		"\n  Operation: " + i.Operation +
		"\n  Who:       " + i.Who +
		"\n  Version:   " + i.Version +
		"\n  Created:   " + i.Created.UTC().Format("2006-01-02 15:04:05.999999999 -0700 MST") +
		"\n  Info:      " + i.Info
}

// A RunMark identifies the run that holds a lock, in LockInfo.Info. All locks of a run have the
// same mark.
type RunMark struct {
	ID      string
	Process int // ID of the process that runs on the holder's machine; 0 means unknown
}

// String returns the mark as a sentence; "" if it has no ID.
func (m RunMark) String() string {
	if m.ID == "" {
		return ""
	}
	return fmt.Sprintf("Run %s, process %d.", m.ID, m.Process)
}

// runMark matches a RunMark in the text of a lock, and the text in the lock of a run on workers
// (see package temporal/worker).
var runMark = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[Rr]un ([^\s,]+), (?:process (\d+)\.|turn )`)
})

// Run returns the mark of the run that holds the lock. ok is false if the lock has none, as the
// locks of other tools.
func (i LockInfo) Run() (m RunMark, ok bool) {
	found := runMark().FindStringSubmatch(i.Info)
	if found == nil {
		return m, false
	}
	m.ID = found[1]
	m.Process, _ = strconv.Atoi(found[2]) // the run on workers has no process
	return m, true
}

// Same reports whether both describe the same lock. Stores that use one ID for all locks of a
// state differ in the other fields.
func (i LockInfo) Same(o LockInfo) bool {
	return i.ID == o.ID && i.Operation == o.Operation && i.Info == o.Info && i.Who == o.Who && i.Created.Equal(o.Created)
}

// A PlacedError is an error with a source range, such as the block of a key provider. Without a
// file it hides the ranges of wrapped errors.
type PlacedError struct {
	At  source.Range
	Err error
}

func (e *PlacedError) Error() string { return e.Err.Error() }
func (e *PlacedError) Unwrap() error { return e.Err }

// PlaceOf returns the source range of an error, or nil if it has none.
func PlaceOf(err error) *source.Range {
	if e, ok := errors.AsType[*PlacedError](err); ok && e.At.Filename != "" {
		at := e.At
		return &at
	}
	return nil
}

// LockedCode is the code of the message that another process holds a lock.
const LockedCode = diag.CodeStateLocked

// IsLocked reports whether a lock could not be taken because another process holds it, and not
// for another reason.
func IsLocked(ds diag.List) bool {
	return slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == LockedCode })
}

// Locked returns the message that another process holds a lock. what is a sentence without its
// full stop that names the state and the holder. holder is nil if it is unknown.
func Locked(what string, holder *LockInfo) diag.List {
	m := &diag.Message{Code: LockedCode, Severity: diag.Error, Summary: "Error acquiring the state lock", Detail: what + "."}
	if holder != nil {
		m.Detail += "\n\nLock Info:\n" + holder.String()
		m.Extra = holder
	}
	m.Detail += "\n\nThe lock keeps two runs from changing the state at the same time. Wait until the other run has ended and try again, or give it time with -lock-timeout."
	return diag.List{m}
}

// NextSerial returns next with the lineage and serial with which it must be written. old is the
// state in the store; nil means none. write is false if nothing changed; then the result is
// old.
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

// NewID returns a random UUID for a lineage or a lock.
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

// ValidWorkspace reports whether a name is valid for a workspace: it must not change when it is
// escaped for the path of a URL. This is OpenTofu's rule.
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
