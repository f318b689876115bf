package estate

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/estate/states"
)

// Bootstrap creates the store that the remote_state block of a unit describes. If there is
// nothing to create, nothing is the reason.
func (e *Estate) Bootstrap(ctx context.Context, u *discovery.Unit) (nothing string, ds diag.List) {
	s, ds := e.site(e.loader.Task(ctx), u, e.o.Request.Command, "init")
	if ds.HasErrors() {
		return "", ds
	}
	nothing, more := s.Bootstrap(ctx)
	return nothing, append(ds, more...)
}

// place returns the location of a unit's state, for commands that change it.
func (e *Estate) place(ctx context.Context, u *discovery.Unit) (states.Location, diag.List) {
	s, ds := e.site(e.loader.Task(ctx), u, e.o.Request.Command, run.Output)
	if ds.HasErrors() {
		return states.Location{}, ds
	}
	return s.Place(ctx, true)
}

// LockOf returns the lock on the state of a unit that another run holds or left, or nil if the
// state is not locked.
func (e *Estate) LockOf(ctx context.Context, u *discovery.Unit) (*states.LeftLock, diag.List) {
	p, ds := e.place(ctx, u)
	if ds.HasErrors() {
		return nil, ds
	}
	l, more := e.states.LockOf(ctx, p)
	return l, append(ds, more...)
}

// DeleteState deletes the state of a unit while it holds the lock. Unless force is set, it is an
// error if the store cannot restore a deleted state. was is false if there is no state.
func (e *Estate) DeleteState(ctx context.Context, u *discovery.Unit, force bool, l arguments.Lock) (was bool, ds diag.List) {
	p, ds := e.place(ctx, u)
	if ds.HasErrors() {
		return false, ds
	}
	was, more := e.states.Delete(ctx, p, force, l)
	return was, append(ds, more...)
}

// MoveState moves the state of the unit from to the location of the unit to. moved is false if
// there is no state.
func (e *Estate) MoveState(ctx context.Context, from, to *discovery.Unit, force bool, l arguments.Lock) (moved bool, ds diag.List) {
	source, ds := e.place(ctx, from)
	if ds.HasErrors() {
		return false, ds
	}
	target, more := e.place(ctx, to)
	if ds = append(ds, more...); more.HasErrors() {
		return false, ds
	}
	moved, more = e.states.Move(ctx, source, target, force, l)
	return moved, append(ds, more...)
}
