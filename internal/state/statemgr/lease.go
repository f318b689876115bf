package statemgr

import (
	"context"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Lease is what a run has that another process takes over when this one falls silent:
// what it leaves in its lock, whose lock it takes over itself, and how it learns that its
// time is over. After that it writes nothing, not even what is already under way.
type Lease struct {
	// Info goes into the lock, for whoever takes over.
	Info string
	// Succeeds reports whether the holder of a lock is one whose place this run takes: an
	// earlier attempt at the same work, which has been given up.
	Succeeds func(holder store.LockInfo) bool
	// Held is an error once somebody else may be at work. It is asked before everything
	// that is written, and before each call of a provider that changes something.
	Held func() error
	// Note keeps what a journal said of an earlier run, for whoever takes over, before the
	// journal goes; nil: only this process reports it.
	Note func(diag.List) error
	// Noted is what attempts that were given up had noted; nil: nothing.
	Noted func() diag.List
}

// note keeps messages about an earlier run.
func (h *State) note(ds diag.List) diag.List {
	if len(ds) == 0 || h.o.Lease == nil || h.o.Lease.Note == nil {
		return nil
	}
	if err := h.o.Lease.Note(ds); err != nil {
		return diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The journal of an earlier run was not brought into the state, since %s.", err)
	}
	return nil
}

// noted is what earlier attempts noted, but for what this one found again.
func (h *State) noted(found diag.List) (out diag.List) {
	if h.o.Lease == nil || h.o.Lease.Noted == nil {
		return nil
	}
	for _, m := range h.o.Lease.Noted() {
		if !slices.ContainsFunc(found, func(x *diag.Message) bool { return x.Code == m.Code && x.Detail == m.Detail }) {
			out = append(out, m)
		}
	}
	return out
}

// held is the error of a lease that is over.
func (h *State) held() error {
	if h.o.Lease == nil {
		return nil
	}
	if err := h.o.Lease.Held(); err != nil {
		return fmt.Errorf("another process took the work over: %w", err)
	}
	return nil
}

// fenced is a context for what is written: each request asks whether the lease is over.
func (h *State) fenced(ctx context.Context) context.Context {
	if h.o.Lease == nil {
		return ctx
	}
	return store.WithFence(ctx, h.held)
}

// lock locks the state, and takes the lock over from a holder that this run succeeds.
func (o *Options) lock(ctx context.Context) (unlock func() diag.List, ds diag.List) {
	info := *o.Lock
	if info.Info == "" {
		info.Info = lockText
	}
	t := o.Lease
	if t == nil {
		return o.Store.Lock(ctx, info, o.Timeout)
	}
	info.Info = t.Info
	unlock, ds = o.Store.Lock(ctx, info, 0)
	if !store.IsLocked(ds) {
		return unlock, ds
	}
	unlocker, can := o.Store.(store.Unlocker)
	for _, m := range ds {
		holder, ok := m.Extra.(*store.LockInfo)
		if !ok || holder == nil || !can || !t.Succeeds(*holder) {
			continue
		}
		// Somebody else may have done so in between: then this fails, and the lock is waited
		// for as any other.
		if more := unlocker.ForceUnlock(ctx, holder.ID); more.HasErrors() {
			return nil, more
		}
	}
	return o.Store.Lock(ctx, info, o.Timeout)
}
