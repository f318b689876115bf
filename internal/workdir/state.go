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

// A StatePlace is where one state is, with what belongs to it.
type StatePlace struct {
	Store      store.Store
	Workspace  string
	Dir        string             // for journals of states elsewhere, and for errored.tfstate
	Encryption *encryption.Config // nil for in the clear
	User       journal.User       // whose journals are used
	Host       Host               // nil means Silent
	// KeepSegments says whether the journals of applies are kept in the store, too.
	KeepSegments KeepSegments
	// Segments is where they are kept instead, for a store without room; nil: nowhere.
	Segments statemgr.Segments
}

// KeepSegments says whether the journals of applies are kept in the store of the state, too.
type KeepSegments int

const (
	NoSegments KeepSegments = iota // on this machine alone
	WhereRoom                      // where the store has room for them
	Always                         // a store without room for them is an error
)

// KeepSegmentsOf understands -journal and TERRACE_JOURNAL, where "" means what the CLI
// configuration says.
func KeepSegmentsOf(journal string, configured bool) KeepSegments {
	switch {
	case journal == "store":
		return Always
	case journal == "" && configured:
		return WhereRoom
	}
	return NoSegments
}

// OpenStore opens the state of a workspace.
func OpenStore(b backend.Backend, workspace string, o backend.StoreOptions) (store.Store, diag.List) {
	st, err := b.Store(workspace, o)
	if err != nil {
		return nil, o.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to open the state", "", err))
	}
	return st, nil
}

// A Lock says for what a state is locked.
type Lock struct {
	Off       bool
	Timeout   time.Duration // how long somebody else is waited for
	Operation string        // as lock files have it
	Who       string        // user@host
	Now       time.Time
}

// Manager are the options of the state's manager, without a lock.
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

// An OpenState is a state that was taken.
type OpenState struct {
	*statemgr.State
	options statemgr.Options
	host    Host   // hears that an apply changes the state; nil: nobody
	began   func() // called when an apply begins, once the state is ready for it; may be nil
	done    func() // ends what the host heard of
}

// Start prepares for an apply.
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

// End brings the apply to its end.
func (h *OpenState) End(final *state.State) diag.List {
	if h.done != nil {
		defer h.done()
	}
	return h.State.End(final)
}

// slowLock is how long a lock may take without a word.
const slowLock = 400 * time.Millisecond

// Take locks and reads a state, as Locked has it, and brings in what the journal of a killed
// run holds. slow, which may be nil, is called when the lock takes its time.
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

// Between gives the state up while do takes it together with another one, and takes it
// again. It must be then what was expected, or somebody else was there.
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

// Locked are the options of Take, and of who takes two states at once.
func (p StatePlace) Locked(ctx context.Context, l Lock) statemgr.Options {
	o := p.Manager(ctx)
	o.Run = store.LockInfo{Operation: l.Operation, Who: l.Who, Version: statefile.Version, Created: l.Now}
	if !l.Off {
		o.Lock, o.Timeout = &o.Run, l.Timeout
	}
	return o
}

// Read reads the state for somebody who changes nothing.
func (p StatePlace) Read(ctx context.Context) (*state.State, diag.List) {
	return statemgr.Read(ctx, p.Manager(ctx))
}
