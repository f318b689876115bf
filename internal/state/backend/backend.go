// Package backend knows where state can live: a Kind has a schema and opens to a
// Backend, which lists the workspaces of one configuration and opens the store of
// each. Every place that names a backend goes through it: the block, the options of
// init, remote_state of units, terraform_remote_state, saved plans and the record
// that init keeps in the data folder.
//
// Main types: Kind, Backend and Object, which a kind implements in a package of its
// own below this one, and NewStore, which makes a store.Store of an Object. The one
// rule: nothing outside of a kind's package asks for its name.
//
// # What an Object promises
//
// An error is final: the object has repeated what may be repeated (see package
// rest), with its own waiting, until the context ended or it gave up. It never takes
// a state that could not be read for one that is not there. Write replaces the whole
// state or nothing, and only where the store still holds what the caller read, if
// the store can tell (ErrChanged). Whoever holds the lock is asked about before each
// write: a lock that was lost is ErrLockLost, and nothing is written then.
package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A Kind is one kind of backend.
type Kind struct {
	Name string // as in `backend "NAME"`

	// Schema has exactly the arguments and blocks that the peers have, with their
	// types: the record in the data folder and its hash depend on the set of them, so
	// one more would keep a peer from reading the record.
	Schema *schema.Block
	// Ask are arguments that are needed unless one of the environment variables is set:
	// init asks for them as for those that the schema requires.
	Ask map[string][]string

	// Reached are arguments that say where the service is: messages that it is waited for name
	// the place of the first one that is set.
	Reached []string
	// Place is a text that is the same for configurations that lead to the same states, as
	// far as that is known without opening them; "" where it is not. dir is
	// what relative paths count from, "" if that is not known. nil: the arguments together.
	Place func(cfg cty.Value, dir string) string
	// InFolder is the configuration that keeps state in a folder; nil but for the kind
	// that is taken where nothing names one.
	InFolder func(dir string) cty.Value
	// Settings says that the block is no backend block: it has no options of init, and a
	// change of it needs none either.
	Settings bool
	// Runs says that the service of the kind can carry out plans and applies.
	Runs bool
	// Bootstrap are the arguments of a unit's remote_state that say how the store itself
	// is made, with their types. They are not part of the schema.
	Bootstrap map[string]cty.Type

	// Open checks a configuration and makes what is needed to reach it. cfg is of the
	// schema's implied type, wholly known and without marks, null where nothing was
	// set; environment and defaults are the kind's to add. Errors are *Error, with the
	// argument to look at, or several joined.
	Open func(ctx context.Context, cfg cty.Value, s Services) (Backend, error)
}

// Services are the effects that a kind may use. All but Progress are set.
type Services struct {
	Env sys.Env // the complete environment
	// Renew gives the environment again, with keys that do not end before the returned
	// time (zero: while the process lasts); nil: it stays as it is.
	Renew func(ctx context.Context) (sys.Env, time.Time, error)
	Dir   string // paths in configuration are relative to it; absolute
	Start string // where the program was started, which paths are shown from; "" is Dir
	Home  string // "" if there is none
	Who   string // user@host, for locks
	Now   func() time.Time
	// Sleep waits, or returns the context's error sooner.
	Sleep func(ctx context.Context, d time.Duration) error
	// Run runs programs that give credentials (az, gcloud, credential_process, exec).
	Run func(ctx context.Context, c sys.Command) error
	// Transport is the base of every HTTP connection. It is used as it is, so that many
	// units share its connections; only to change TLS or the proxy a kind clones it (and
	// keeps the clone in Shared). Its proxy is that of Env.
	Transport *http.Transport
	// Answer is how long the user lets a service take to answer; 0: nobody said, so each
	// kind takes what is usual. The Transport has it already.
	Answer time.Duration
	// Unusable is what is wrong with what the user said of that; no backend opens then.
	Unusable error
	// Version is the language version, as locks and requests name it.
	Version string
	// Token gives the credentials that the CLI configuration has for a host, "" for none.
	Token func(ctx context.Context, host string) (string, error)
	// Service is where a host has a service, by its discovery document.
	Service func(ctx context.Context, host, service string) (*url.URL, error)
	// Progress is what a kind tells while something takes long; nil: nobody listens.
	Progress func(line string)
	// Slow hears of what has not answered for SlowAfter, e.g. "the store of the state
	// s3://bucket/key (main.tf line 3)"; nil: nobody does.
	Slow      func(what string)
	SlowAfter time.Duration
	// Reached is that argument of Kind.Reached, "" for none.
	Reached string
	// Shared is what outlives one configuration: a client with its credentials that
	// serves the states of many units.
	Shared *Shared
}

// Shared keeps what the configurations of a process have in common, by name. The
// zero Shared is empty; Get may be called concurrently.
type Shared struct {
	all parallel.Cache[string, any]
}

// Get returns what goes by a name, and makes it the first time. The name begins with
// the kind's and holds everything that the thing depends on; it is never shown.
func (s *Shared) Get(name string, make func() any) any { return s.all.Pure(name, make) }

// A Backend is a configuration that was opened. Its methods may be called
// concurrently.
type Backend interface {
	// List returns the names of the workspaces, in order; those kinds that have a
	// default workspace name it first, whether or not it has state. ErrNoWorkspaces
	// says that there is nothing but the default one.
	List(ctx context.Context) ([]string, error)
	// Delete removes a workspace with its state, whatever is in it, and what the kind
	// keeps beside the state, but not a lock that somebody holds.
	Delete(ctx context.Context, workspace string) error
	// Store opens the state of a workspace, which need not exist. Nothing is sent.
	Store(workspace string, o StoreOptions) (store.Store, error)
}

// StoreOptions say how a store is used.
type StoreOptions struct {
	// Sealer encrypts state; nil leaves it in the clear.
	Sealer sealing.Sealer
	// The flags -state, -state-out and -backup, for kinds of files alone.
	StatePath, OutPath, BackupPath string
	// Unit is the unit that the state belongs to, "" for none: two units with one file
	// are an error.
	Unit string
	// IgnoreVersion accepts a workspace that is made for another version of the language.
	IgnoreVersion bool
	// Waiting is called once if the lock is held by somebody else and is waited for.
	// holder is nil if nothing is known of them. nil: nobody wants to know.
	Waiting func(holder *store.LockInfo)
	// Locate gives messages of the backend their place: that of the argument which they are
	// about (see Blame), or that of the block. nil: it stands nowhere.
	Locate func(diag.List) diag.List
}

// Located are messages about the backend with their place.
func (o StoreOptions) Located(ds diag.List) diag.List {
	if o.Locate == nil || len(ds) == 0 {
		return ds
	}
	return o.Locate(ds)
}

// A Creator is a Backend in which a workspace is more than its state. In others a
// workspace is created by writing an empty state.
type Creator interface {
	Create(ctx context.Context, workspace string) error
}

// An Initializer is a Backend that init makes ready: what is configured and missing is
// created.
type Initializer interface {
	Initialize(ctx context.Context) error
}

// A Named is a Backend whose workspaces may have names of their own.
type Named interface {
	// Sole is the name of the only workspace, "" where there can be several.
	Sole() string
	// HasDefault reports whether there is a workspace "default".
	HasDefault() bool
}

// HasDefault reports whether a backend has a workspace "default".
func HasDefault(b Backend) bool {
	n, ok := b.(Named)
	return !ok || n.HasDefault()
}

// A VariableSource is a Backend whose workspaces have values for input variables, for what
// runs here though the workspace is made for runs at the service.
type VariableSource interface {
	InputVariables(ctx context.Context, workspace string) (map[string]cty.Value, error)
}

// A Clearer is a Backend whose states are emptied, with a backup, once they were
// copied elsewhere.
type Clearer interface {
	Clear(ctx context.Context, workspace string, o StoreOptions) error
}

// A Placer is a store.Store that names the place of its state, so that two users of
// one place are found. Every store of a kind is one.
type Placer interface {
	Place() string
}

// A Journaler is a store.Store that says where the journal of an apply belongs,
// because it must be found by everyone who works on the state.
type Journaler interface {
	JournalPath() string
}

// A Payload is what an Object holds.
type Payload struct {
	Data []byte // nil if there is none
	// Version names this very content where the store can tell (a generation, an ETag,
	// an index); "" where it cannot. Of no content it may be a version too.
	Version string
}

// Prior is what a writer knows of the content that it replaces.
type Prior struct {
	Version string // as Read or Write returned it; "" where there is none
	Absent  bool   // there was no content
	Unknown bool   // nothing was read, so nothing is compared
}

// An Object holds the state of one workspace as bytes, on a service. Its methods may
// be called concurrently.
type Object interface {
	// Read returns what there is. No object, or one without content, is a Payload
	// without Data.
	Read(ctx context.Context) (Payload, error)
	// Write replaces what there is and returns the new version, "" where the store has
	// none. What prior says must still be so where the store can compare, or the error
	// is ErrChanged and nothing was written; without versions the caller compares by
	// reading. lock is the ID of the lock that the caller holds, "" for none; where it
	// is not held any more, the error is ErrLockLost and nothing was written. A version
	// with an error says that data was written, and something beside it was not.
	Write(ctx context.Context, data []byte, prior Prior, lock string) (version string, err error)
	// Lock tries once. It returns the ID that Unlock takes, which may be another than
	// info's. A lock that is held is a *LockedError. An Object without locks returns
	// ErrNoLocks.
	Lock(ctx context.Context, info store.LockInfo) (id string, err error)
	// Unlock releases a lock of this process, or of another that is known by its ID
	// (force-unlock). An ID that does not hold the lock is an error that names both.
	Unlock(ctx context.Context, id string) error
}

// A Limited Object cannot hold more than so many bytes, as far as it can tell before
// writing; advice says what to do about it. Sealed bytes cannot be compressed.
type Limited interface {
	Limit(sealed bool) (bytes int64, advice string)
}

// Blobs are further objects beside a state, such as the segments of a journal. The
// names are made of lower-case letters, digits, "-", "." and "/".
type Blobs interface {
	PutBlob(ctx context.Context, name string, data []byte) error
	GetBlob(ctx context.Context, name string) ([]byte, error) // ErrNoBlob
	ListBlobs(ctx context.Context, prefix string) ([]string, error)
	DeleteBlob(ctx context.Context, name string) error // nil if there is none
}

// DeleteBlobs deletes all objects beside a state.
func DeleteBlobs(ctx context.Context, b Blobs) error {
	names, err := b.ListBlobs(ctx, "")
	for _, name := range names {
		if err == nil {
			err = b.DeleteBlob(ctx, name)
		}
	}
	return err
}

// A Checker looks at a configured store for the command that examines one: its
// credentials, and what the service says of versioning, encryption and the clock. What
// all kinds have in common is examined by package doctor. It changes nothing but objects
// of its own that it removes.
type Checker interface {
	// Check calls report for everything that was looked at; workspace is the one in use.
	Check(ctx context.Context, workspace string, report func(Finding))
}

// A Lockless Backend says why its configuration has no locks.
type Lockless interface {
	WhyNoLocks() string
}

// A Prober is an Object that can show whether the service keeps the conditions of writes.
type Prober interface {
	// Probe is an object beside the state, not there yet, that is written as the state is;
	// remove takes it away.
	Probe() (probe Object, remove func(ctx context.Context) error)
}

// A Finding is one thing that a Checker looked at.
type Finding struct {
	What       string // e.g. "versioning of the bucket"
	OK         bool
	Detail     string // one line; of something good what it is, or why nothing can be said
	Permission string // what is needed for it, in the service's words; "" if nothing is missing
}

// Sentinel errors of kinds.
var (
	ErrNoWorkspaces = errors.New("workspaces not supported")
	ErrNoLocks      = errors.New("locking not supported")
	ErrChanged      = errors.New("the state in the store is not the one that was read")
	ErrLockLost     = errors.New("the lock is not held any more")
	ErrNoBlob       = errors.New("no such object")
)

// A LockedError says that somebody else holds the lock.
type LockedError struct {
	Holder *store.LockInfo // nil if nothing is known of it
	Reason string          // "" or what else the store says, one line
	// Again asks for another attempt at once: the holder vanished in between.
	Again bool
}

func (e *LockedError) Error() string {
	switch {
	case e.Reason != "":
		return e.Reason
	case e.Holder != nil && e.Holder.Who == "":
		return "the state is locked, and the lock does not say by whom"
	case e.Holder != nil:
		return fmt.Sprintf("the state is locked by %s since %s", e.Holder.Who, e.Holder.Created.UTC().Format(time.RFC3339))
	}
	return "the state is locked"
}

// An Error is a failure of a kind, in the parts of a message to the user. It wraps
// ErrChanged and ErrLockLost where one of them is the cause.
type Error struct {
	Argument string // the argument of the block to look at, e.g. "bucket"; "" for none
	Code     string // of diag's table; "" takes the one of the operation
	Summary  string // a label, e.g. "Failed to read the state"; "" lets the caller name what it did
	Answer   string // what the service answered, in one line and without secrets
	Advice   string // what to do, a sentence
	// Permission is what the credentials lack, in the service's words; "" if that is not
	// what is wrong. The advice says it too.
	Permission string
	Err        error // for errors.Is; not shown
}

func (e *Error) Error() string {
	if e.Advice == "" {
		return e.Answer
	}
	return e.Answer + ". " + e.Advice
}

func (e *Error) Unwrap() error { return e.Err }

// AdviceOn is what to do about an answer that does not tell it, by its HTTP status.
func AdviceOn(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "The service has too much to do: try again later, or with fewer runs at once."
	case status >= 500:
		return "The service failed: try again, and if it lasts, look at its log or ask who keeps it."
	}
	return "What it answered says what it does not accept: compare that with the arguments of the backend, and see what \"backend doctor\" finds."
}

// NotHeld is the error of an Object whose lock nobody holds.
func NotHeld(id string) error {
	return &Error{Answer: fmt.Sprintf("the lock %q is not held: the state is not locked", id), Advice: "There is nothing to release.", Err: errNotOurs}
}

// WrongID is the error of an Object whose lock has another ID.
func WrongID(id, holder string) error {
	return &Error{Answer: fmt.Sprintf("the lock ID %q does not match that of the lock, %q", id, holder), Advice: "Give the ID of the lock, once you know that the run which holds it has ended.", Err: errNotOurs}
}

// errNotOurs is wrapped by the errors about locks that are not held, or not by who gives an ID.
var errNotOurs = errors.New("the lock is not held")
