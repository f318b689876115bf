package operation

import (
	"context"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A Place is where one state is, with what belongs to it.
type Place struct {
	Store      store.Store
	Workspace  string
	Dir        string             // for journals of states elsewhere, and for errored.tfstate
	Encryption *encryption.Config // nil for in the clear
	// KeepSegments keeps the journals of applies in the store, too.
	KeepSegments bool
	// Rescue prints a state that could be written nowhere; nil: it is in the journal alone.
	Rescue func(text []byte) diag.List
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
func (p Place) Manager(ctx context.Context) statemgr.Options {
	target := p.Encryption.State(ctx)
	return statemgr.Options{
		Store: p.Store, Journal: backend.JournalPath(p.Store, p.Dir, p.Workspace), Segments: backend.BlobsOf(p.Store), KeepSegments: p.KeepSegments,
		Dir: p.Dir, Codec: target.Codec(), Sealer: target.Sealer(), Rescue: p.Rescue,
	}
}

// Take locks and reads the state, and brings in what the journal of a killed run holds.
func (p Place) Take(ctx context.Context, l Lock) (*statemgr.State, diag.List) {
	return statemgr.Take(ctx, p.Locked(ctx, l))
}

// Locked are the options of Take, for who takes two states at once.
func (p Place) Locked(ctx context.Context, l Lock) statemgr.Options {
	o := p.Manager(ctx)
	o.Run = store.LockInfo{Operation: l.Operation, Who: l.Who, Version: statefile.Version, Created: l.Now}
	if !l.Off {
		o.Lock, o.Timeout = &o.Run, l.Timeout
	}
	return o
}

// Read reads the state for somebody who changes nothing.
func (p Place) Read(ctx context.Context) (*state.State, diag.List) {
	return statemgr.Read(ctx, p.Manager(ctx))
}
