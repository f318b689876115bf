package states

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A LeftLock is the lock on the state of a unit that another run holds, or left when it was
// killed.
type LeftLock struct {
	Holder *store.LockInfo // nil if the store does not name the holder
	// Bound means that the lock ends with the process of its run, which is therefore still
	// working. Release cannot release such a lock.
	Bound bool

	place Location
	store store.Store
	probe store.LockInfo
}

// LockOf returns the lock on the state of a place, or nil if it is not locked. Stores name the
// holder only when they refuse a lock. So LockOf takes the lock and, if it gets it, releases it
// at once.
func (k *Keeper) LockOf(ctx context.Context, p Location) (*LeftLock, diag.List) {
	o, ds := k.Options(ctx, p, arguments.Lock{}, "force-unlock")
	if ds.HasErrors() {
		return nil, ds
	}
	_, can := o.Store.(store.Unlocker)
	l := &LeftLock{Bound: !can, place: p, store: o.Store, probe: o.Run}
	locked, holder, more := l.look(ctx)
	if ds = append(ds, more...); !locked || more.HasErrors() {
		return nil, ds
	}
	l.Holder = holder
	return l, ds
}

// look reports whether the state is locked, and by whom.
func (l *LeftLock) look(ctx context.Context) (locked bool, holder *store.LockInfo, ds diag.List) {
	unlock, ds := l.store.Lock(ctx, l.probe, 0)
	if !store.IsLocked(ds) {
		if !ds.HasErrors() {
			ds = append(ds, unlock()...)
		}
		return false, nil, ds
	}
	for _, m := range ds {
		if info, ok := m.Extra.(*store.LockInfo); ok && info != nil && info.ID != "" {
			holder = info
		}
	}
	return true, holder, nil
}

// Release releases the lock. If another run has released or taken it since LockOf, it changes
// nothing and returns an error.
func (l *LeftLock) Release(ctx context.Context) diag.List {
	locked, holder, ds := l.look(ctx)
	if ds.HasErrors() {
		return ds
	}
	if !locked || holder == nil || !holder.Same(*l.Holder) {
		return append(ds, diag.Errorf(diag.CodeBackendLockFailed, l.place.At, "Failed to unlock state", "The lock %s on the state of %s was released or taken by another run since it was listed. It was left as it is.", l.Holder.ID, l.place.named())...)
	}
	return append(ds, l.store.(store.Unlocker).ForceUnlock(ctx, holder.ID)...)
}
