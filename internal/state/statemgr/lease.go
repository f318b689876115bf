package statemgr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Lease is the right to work on a state that another process takes over when this process
// stops responding. It defines the information in the lock, from whom the lock may be taken
// over, and how to find out that the lease has expired. After that nothing is written, and
// pending requests are not repeated.
type Lease struct {
	// Info is stored in the lock for a process that takes over.
	Info string
	// Succeeds reports whether this run may take over the lock from holder, because holder is an
	// abandoned earlier attempt at the same work.
	Succeeds func(holder store.LockInfo) bool
	// Held returns an error after the lease has expired, when another process may work on the
	// state. It is called before every write and before each provider call that changes
	// something.
	Held func() error
	// Note stores the messages about an earlier run's journal for a process that takes over. It
	// is called before the journal is removed. nil means that only this process reports them.
	Note func(diag.List) error
	// Noted returns the messages that earlier attempts stored; nil means none.
	Noted func() diag.List
}

// note stores messages about an earlier run.
func (h *State) note(ds diag.List) diag.List {
	if len(ds) == 0 || h.o.Lease == nil || h.o.Lease.Note == nil {
		return nil
	}
	if err := h.o.Lease.Note(ds); err != nil {
		return diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The journal of an earlier run was not brought into the state, since %s.", err)
	}
	return nil
}

// noted returns the messages of earlier attempts, without those in found.
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

// held returns an error if the lease has expired.
func (h *State) held() error {
	if h.o.Lease == nil {
		return nil
	}
	if err := h.o.Lease.Held(); err != nil {
		return fmt.Errorf("another process took the work over: %w", err)
	}
	return nil
}

// fenced returns a context for writes. Each request first checks whether the lease has expired.
func (h *State) fenced(ctx context.Context) context.Context {
	if h.o.Lease == nil {
		return ctx
	}
	return store.WithFence(ctx, h.held)
}

// lock locks the state. It takes the lock over from a holder that this run succeeds.
func (o *Options) lock(ctx context.Context) (unlock func() diag.List, ds diag.List) {
	info := *o.Lock
	info.Info = strings.TrimSpace(lockText + " " + info.Info)
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
		// Another process may take the lock over first. Then this call fails, and the lock is
		// waited for like any other.
		if more := unlocker.ForceUnlock(ctx, holder.ID); more.HasErrors() {
			return nil, more
		}
	}
	return o.Store.Lock(ctx, info, o.Timeout)
}
