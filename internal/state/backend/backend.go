// Package backend defines backends: a Kind has a schema and opens to a Backend, which lists the
// workspaces of one configuration and opens the store of each. Everything that names a backend
// uses it: backend blocks, the options of init, remote_state of units, terraform_remote_state,
// saved plans and the record of init in the data directory.
//
// Main types: Kind, Backend and Object, which a kind implements in its own package below this
// one, and NewStore, which converts an Object to a store.Store. The one rule: nothing outside
// of a kind's package compares its name.
//
// # Guarantees of an Object
//
// An error is final: the object has repeated requests as far as possible (see package rest),
// until the context ended or the retries were used up. An unreadable state is never reported as
// missing. Write replaces the whole state or nothing. If the store can compare, Write only
// replaces the content that the caller read (ErrChanged). Before each write the object checks
// the lock of the caller. If the lock is lost, Write returns ErrLockLost and writes nothing.
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
	Name string // the NAME in `backend "NAME"`

	// Schema has exactly the arguments and blocks of OpenTofu and Terraform, with their types.
	// The record in the data directory and its hash depend on them, so that an additional
	// argument would prevent those programs from reading the record.
	Schema *schema.Block
	// Ask lists further required arguments, each with the environment variables that can
	// replace it. init asks the user for them like for arguments that the schema requires.
	Ask map[string][]string

	// Reached lists arguments with the address of the service. Messages about waiting for it
	// have the source range of the first that is set.
	Reached []string
	// Place returns a text that is equal for configurations with the same states, as far as
	// that is known without opening them; "" if it is not known. dir is the base of relative
	// paths; "" means unknown. A nil Place means that all arguments together identify the
	// states.
	Place func(cfg cty.Value, dir string) string
	// InFolder returns the configuration that stores state in a directory. It is nil except for
	// the default kind.
	InFolder func(dir string) cty.Value
	// Settings means that the kind is not configured by a backend block. It has no options of
	// init, and changing it does not need any.
	Settings bool
	// Runs means that the service of the kind can execute plans and applies.
	Runs bool
	// Bootstrap contains arguments of a unit's remote_state about creating the store, with
	// their types. They are not part of the schema.
	Bootstrap map[string]cty.Type

	// Open validates a configuration and prepares access to it. cfg has the schema's implied
	// type, is wholly known and without marks; missing arguments are null. The kind adds values
	// from the environment and defaults. Errors are *Error with the affected argument, or
	// several of them joined.
	Open func(ctx context.Context, cfg cty.Value, s Services) (Backend, error)
}

// Services are the effects that a kind may use. All fields except Progress are set.
type Services struct {
	Env sys.Env // the complete environment
	// Renew returns a new environment with credentials that are valid until the returned time;
	// zero means during the whole process. nil means that the environment does not change.
	Renew func(ctx context.Context) (sys.Env, time.Time, error)
	Dir   string // base of relative paths in configuration; absolute
	Start string // directory in which the program was started, relative to which paths are shown; "" means Dir
	Home  string // the user's home directory; "" if there is none
	Who   string // user@host, for locks
	Now   func() time.Time
	// Sleep waits for d. If the context ends first, it returns the context's error.
	Sleep func(ctx context.Context, d time.Duration) error
	// Run runs programs that return credentials (az, gcloud, credential_process, exec).
	Run func(ctx context.Context, c sys.Command) error
	// Transport is the base of all HTTP connections. Kinds use it directly, so that many units
	// share its connections. To change TLS settings or the proxy, a kind clones it and keeps
	// the clone in Shared. Its proxy is that of Env.
	Transport *http.Transport
	// Answer is the user's time limit for responses of a service; 0 means that the kind uses
	// its own. Transport has this limit already.
	Answer time.Duration
	// Unusable is the error in the user's setting of Answer. If it is set, no backend can be
	// opened.
	Unusable error
	// Version is the language version in locks and requests.
	Version string
	// Token returns the credentials for a host in the CLI configuration; "" if there are none.
	Token func(ctx context.Context, host string) (string, error)
	// Service returns the address of a service from the discovery document of a host.
	Service func(ctx context.Context, host, service string) (*url.URL, error)
	// Progress receives messages during long operations; nil ignores them.
	Progress func(line string)
	// Slow is called with the description of a service that has not responded for SlowAfter,
	// for example "the store of the state s3://bucket/key (main.tf line 3)". nil ignores that.
	Slow      func(what string)
	SlowAfter time.Duration
	// Reached is the argument from Kind.Reached that applies; "" means none.
	Reached string
	// Shared contains data that several configurations share, such as a client with its
	// credentials for the states of many units.
	Shared *Shared
}

// Shared contains objects that several configurations of a process use, by name. The zero value
// is empty. It is safe for concurrent use.
type Shared struct {
	all parallel.Cache[string, any]
}

// Get returns the object with a name. On the first call it creates the object with make. The
// name begins with the kind's name and contains everything that the object depends on. It is
// never shown.
func (s *Shared) Get(name string, make func() any) any { return s.all.Pure(name, make) }

// A Backend is an opened configuration. It is safe for concurrent use.
type Backend interface {
	// List returns the names of the workspaces, sorted. A kind with a default workspace lists
	// it first, even if it has no state. ErrNoWorkspaces means that there is only the default
	// workspace.
	List(ctx context.Context) ([]string, error)
	// Delete deletes a workspace with its state, even if that is not empty, and all other
	// objects of the workspace except a lock of another process.
	Delete(ctx context.Context, workspace string) error
	// Store opens the state of a workspace, which need not exist. It sends no request.
	Store(workspace string, o StoreOptions) (store.Store, error)
}

// StoreOptions configures Backend.Store.
type StoreOptions struct {
	// Sealer encrypts state; nil means no encryption.
	Sealer sealing.Sealer
	// The flags -state, -state-out and -backup; only for local files.
	StatePath, OutPath, BackupPath string
	// Unit is the unit to which the state belongs; "" means none. Two units with one file are
	// an error.
	Unit string
	// IgnoreVersion accepts a workspace that is configured for another language version.
	IgnoreVersion bool
	// Waiting is called once if the lock is held by another process and waited for. holder is
	// nil if it is unknown. nil means no notification.
	Waiting func(holder *store.LockInfo)
	// Locate adds a source range to messages of the backend: that of the argument (see Blame),
	// or that of the block. nil means that there is none.
	Locate func(diag.List) diag.List
}

// Located returns messages about the backend with their source range.
func (o StoreOptions) Located(ds diag.List) diag.List {
	if o.Locate == nil || len(ds) == 0 {
		return ds
	}
	return o.Locate(ds)
}

// A Creator is a Backend in which a workspace consists of more than its state. In other
// backends a workspace is created by writing an empty state.
type Creator interface {
	Create(ctx context.Context, workspace string) error
}

// An Initializer is a Backend that init prepares by creating missing configured objects.
type Initializer interface {
	Initialize(ctx context.Context) error
}

// A Named is a Backend that may restrict the names of workspaces.
type Named interface {
	// Sole returns the name of the only workspace; "" if there can be several.
	Sole() string
	// HasDefault reports whether there is a workspace named "default".
	HasDefault() bool
}

// HasDefault reports whether a backend has a workspace named "default".
func HasDefault(b Backend) bool {
	n, ok := b.(Named)
	return !ok || n.HasDefault()
}

// A VariableSource is a Backend whose workspaces contain values of input variables. They are
// used by commands that run here although the workspace is meant for runs on the service.
type VariableSource interface {
	InputVariables(ctx context.Context, workspace string) (map[string]cty.Value, error)
}

// A Clearer is a Backend whose states are emptied, with a backup, after they were copied
// elsewhere.
type Clearer interface {
	Clear(ctx context.Context, workspace string, o StoreOptions) error
}

// A Placer is a store.Store that identifies the location of its state, so that two users of one
// location are detected. The stores of all kinds implement it.
type Placer interface {
	Place() string
}

// A Journaler is a store.Store that determines the location of the journal of an apply, because
// everyone who works on the state must find it.
type Journaler interface {
	JournalPath() string
}

// A Payload is the content of an Object.
type Payload struct {
	Data []byte // nil if there is none
	// Version identifies this content (a generation, an ETag, an index); "" if the store has no
	// versions. Missing content may have a version, too.
	Version string
}

// Prior describes the content that a writer expects to replace.
type Prior struct {
	Version string // as returned by Read or Write; "" if there is none
	Absent  bool   // there was no content
	Unknown bool   // nothing was read, so that nothing is compared
}

// An Object stores the state of one workspace as bytes, on a service. It is safe for concurrent
// use.
type Object interface {
	// Read returns the content. If the object does not exist or is empty, Data is nil.
	Read(ctx context.Context) (Payload, error)
	// Write replaces the content and returns its version; "" if the store has no versions. If
	// the store can compare, the content must still match prior. Otherwise Write returns
	// ErrChanged and writes nothing. Without versions the caller compares by reading. lock is
	// the ID of the caller's lock; "" means none. If that lock is no longer held, Write returns
	// ErrLockLost and writes nothing. A version together with an error means that the data was
	// written, but something related was not.
	Write(ctx context.Context, data []byte, prior Prior, lock string) (version string, err error)
	// Lock makes one attempt. It returns the ID for Unlock, which may differ from info's. If
	// the lock is held, the error is a *LockedError. An Object without locks returns
	// ErrNoLocks.
	Lock(ctx context.Context, info store.LockInfo) (id string, err error)
	// Unlock releases a lock of this process, or a lock of another process with a known ID
	// (force-unlock). If the ID is not that of the held lock, the error names both.
	Unlock(ctx context.Context, id string) error
}

// A Limited Object has a maximum size. Limit returns that size in bytes, and advice for the user
// whose state is larger. sealed means that the bytes are encrypted, so that they cannot be compressed.
type Limited interface {
	Limit(sealed bool) (bytes int64, advice string)
}

// Blobs stores further objects next to a state, such as the segments of a journal. Names
// consist of lower-case letters, digits, "-", "." and "/".
type Blobs interface {
	PutBlob(ctx context.Context, name string, data []byte) error
	GetBlob(ctx context.Context, name string) ([]byte, error) // the error is ErrNoBlob if there is none
	ListBlobs(ctx context.Context, prefix string) ([]string, error)
	DeleteBlob(ctx context.Context, name string) error // nil if there is none
}

// DeleteBlobs deletes all objects next to a state.
func DeleteBlobs(ctx context.Context, b Blobs) error {
	names, err := b.ListBlobs(ctx, "")
	for _, name := range names {
		if err == nil {
			err = b.DeleteBlob(ctx, name)
		}
	}
	return err
}

// A Checker examines a configured store for a command: its credentials, versioning, encryption
// and clock. Package doctor examines what all kinds have in common. A Checker only changes
// objects of its own, which it deletes.
type Checker interface {
	// Check calls report for each result. workspace is the selected workspace.
	Check(ctx context.Context, workspace string, report func(Finding))
}

// A Lockless Backend returns the reason for which its configuration has no locks.
type Lockless interface {
	WhyNoLocks() string
}

// A Prober is an Object that can test whether the service honours conditional writes.
type Prober interface {
	// Probe returns an object next to the state that does not exist yet and is written like the
	// state. remove deletes it.
	Probe() (probe Object, remove func(ctx context.Context) error)
}

// A Finding is one result of a Checker.
type Finding struct {
	What       string // for example "versioning of the bucket"
	OK         bool
	Skipped    bool   // not examined, for the reason in Detail; OK is true
	Detail     string // one line; a description if the result is good, or the reason for an unknown result
	Permission string // the missing permission, as named by the service; "" if none is missing
}

// The sentinel errors of kinds.
var (
	ErrNoWorkspaces = errors.New("workspaces not supported")
	ErrNoLocks      = errors.New("locking not supported")
	ErrChanged      = errors.New("the state in the store is not the one that was read")
	ErrLockLost     = errors.New("the lock is not held any more")
	ErrNoBlob       = errors.New("no such object")
)

// A LockedError reports that another process holds the lock.
type LockedError struct {
	Holder *store.LockInfo // nil if it is unknown
	Reason string          // further information from the store, one line; may be ""
	// Again requests an immediate further attempt, because the lock was released in between.
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

// An Error is an error of a kind, divided into the parts of a message. It wraps ErrChanged and
// ErrLockLost if one of them is the cause.
type Error struct {
	Argument string // the affected argument of the block, such as "bucket"; "" means none
	Code     string // a message code of package diag; "" means the code of the operation
	Summary  string // such as "Failed to read the state"; "" means the summary of the operation
	Answer   string // the response of the service, in one line and without secrets
	Advice   string // what to do, a sentence
	// Permission is the permission that the credentials lack, as named by the service; "" if
	// the error has another cause. Advice contains it, too.
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

// AdviceOn returns advice for an HTTP status, for responses without advice.
func AdviceOn(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "The service has too much to do: try again later, or with fewer runs at once."
	case status >= 500:
		return "The service failed: try again, and if it lasts, look at its log or ask who keeps it."
	}
	return "What it answered says what it does not accept: compare that with the arguments of the backend, and see what \"backend doctor\" finds."
}

// NotHeld is the error of unlocking an Object that is not locked.
func NotHeld(id string) error {
	return &Error{Answer: fmt.Sprintf("the lock %q is not held: the state is not locked", id), Advice: "There is nothing to release.", Err: errNotOurs}
}

// WrongID is the error of unlocking an Object with the ID of another lock.
func WrongID(id, holder string) error {
	return &Error{Answer: fmt.Sprintf("the lock ID %q does not match that of the lock, %q", id, holder), Advice: "Give the ID of the lock, once you know that the run which holds it has ended.", Err: errNotOurs}
}

// errNotOurs is wrapped by errors about a lock that is not held, or has another ID.
var errNotOurs = errors.New("the lock is not held")
