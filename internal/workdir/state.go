package workdir

import (
	"context"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A StatePlace is the location of one state, with the settings for its journal and encryption.
type StatePlace struct {
	Store      store.Store
	Workspace  string
	Dir        string             // directory of journals for remote states, and of errored.tfstate
	Encryption *encryption.Config // nil means no encryption
	User       journal.User       // user whose journals are read
	Host       Host               // nil means Silent
	// KeepSegments selects whether journals are also written to the store.
	KeepSegments KeepSegments
	// Segments receives the journals if the store cannot hold them. nil means that they cannot be
	// stored elsewhere.
	Segments statemgr.Segments
}

// KeepSegments selects whether the journal of an apply is written to the store of the state, in
// addition to the local disk.
type KeepSegments int

const (
	NoSegments KeepSegments = iota // on this machine only
	WhereRoom                      // also in the store, if it can hold journals
	Always                         // also in the store; a store that cannot hold journals is an error
)

// KeepSegmentsOf converts the value of -journal or TERRACE_JOURNAL. configured is the setting of the
// CLI configuration, which applies if journal is "".
func KeepSegmentsOf(journal string, configured bool) KeepSegments {
	switch {
	case journal == "store":
		return Always
	case journal == "" && configured:
		return WhereRoom
	}
	return NoSegments
}

// OpenStore opens the store of a workspace's state.
func OpenStore(b backend.Backend, workspace string, o backend.StoreOptions) (store.Store, diag.List) {
	st, err := b.Store(workspace, o)
	if err != nil {
		return nil, o.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to open the state", "", err))
	}
	return st, nil
}

// A Lock configures the locking of a state.
type Lock struct {
	Off       bool
	Timeout   time.Duration // how long to wait for another process
	Operation string        // name of the operation in the lock
	Who       string        // user@host
	Run       store.RunMark // the run that holds the lock
	Now       time.Time
}

// Manager returns the options of the state's manager, without a lock.
func (p StatePlace) Manager(ctx context.Context) statemgr.Options {
	host := p.Host
	if host == nil {
		host = Silent{}
	}
	target := p.Encryption.State(ctx)
	segments := p.Segments
	if own := backend.BlobsOf(p.Store); own != nil {
		segments = own
	}
	return statemgr.Options{
		Store: p.Store, Journal: backend.JournalPath(p.Store, p.Dir, p.Workspace), StateID: backend.StateID(p.Store, p.Workspace),
		User: p.User, Host: host,
		Segments: segments, KeepSegments: p.KeepSegments == Always || p.KeepSegments == WhereRoom && segments != nil,
		Dir: p.Dir, Records: target.Records(), Sealer: target.States(),
	}
}

// An OpenState is a state that this process has read and, unless locking is off, locked. Release ends
// it.
type OpenState struct {
	*statemgr.State
	options statemgr.Options
	host    Host   // receives Changing; may be nil
	began   func() // called by Start after the state is ready; may be nil
	done    func() // returned by Changing
}

// Start prepares the state for an apply and reports its start. changes is the number of planned
// changes, created that of new objects.
func (h *OpenState) Start(ctx context.Context, changes, created int) diag.List {
	ds := h.State.Start(ctx, changes, created)
	if ds.HasErrors() {
		return ds
	}
	if h.host != nil {
		h.done = h.host.Changing(h.State)
	}
	if h.began != nil {
		h.began()
	}
	return ds
}

// End writes the final state of an apply and reports its end.
func (h *OpenState) End(final *state.State) diag.List {
	if h.done != nil {
		defer h.done()
	}
	return h.State.End(final)
}

// slowLock is the time after which a wait for a lock is reported.
const slowLock = 400 * time.Millisecond

// Take locks and reads a state, and merges the journal of a killed run into it. StatePlace.Locked
// returns the options. slow is called if locking and reading take longer than slowLock; it may be
// nil. If the OpenState is nil, the list contains the errors.
func Take(ctx context.Context, o statemgr.Options, slow func()) (*OpenState, diag.List) {
	if slow != nil && o.Lock != nil {
		t := time.AfterFunc(slowLock, slow)
		defer t.Stop()
	}
	s, ds := statemgr.Take(ctx, o)
	if s == nil {
		return nil, ds
	}
	return &OpenState{State: s, options: o}, ds
}

// Between releases the state, calls do, which takes the state together with another one, and takes
// the state again. It returns an error if the state then differs from expected, because another
// process has changed it.
func (h *OpenState) Between(ctx context.Context, do func(own statemgr.Options) diag.List, expected *state.State) diag.List {
	ds := h.Release()
	if ds = append(ds, do(h.options)...); ds.HasErrors() {
		return ds
	}
	st, more := statemgr.Take(ctx, h.options)
	if ds = append(ds, more...); st == nil {
		return ds
	}
	if h.State = st; !st.Current().Equal(expected) {
		ds = append(ds, diag.Errorf(diag.CodeStateChanged, nil, "State was changed meanwhile", "Another run has written the state since it was planned on. The moves between units were made; plan again for the rest.")...)
	}
	return ds
}

// Locked returns the options of Take, with a lock. They also serve callers that take two states.
func (p StatePlace) Locked(ctx context.Context, l Lock) statemgr.Options {
	o := p.Manager(ctx)
	o.Run = store.LockInfo{Operation: l.Operation, Who: l.Who, Info: l.Run.String(), Version: statefile.Version, Created: l.Now}
	if !l.Off {
		o.Lock, o.Timeout = &o.Run, l.Timeout
	}
	return o
}

// Read reads the state without locking or changing it. It returns nil if there is none.
func (p StatePlace) Read(ctx context.Context) (*state.State, diag.List) {
	return statemgr.Read(ctx, p.Manager(ctx))
}
