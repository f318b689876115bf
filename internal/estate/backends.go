package estate

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/estate/states"
)

// Bootstrap makes the store that the remote_state of a unit describes. Where there is nothing
// to be made, nothing says why.
func (e *Estate) Bootstrap(ctx context.Context, u *discovery.Unit) (nothing string, ds diag.List) {
	s, ds := e.site(e.loader.Task(ctx), u, e.o.Request.Command, "init")
	if ds.HasErrors() {
		return "", ds
	}
	nothing, more := s.Bootstrap(ctx)
	return nothing, append(ds, more...)
}

// place is where the state of a unit is, for commands that change it.
func (e *Estate) place(ctx context.Context, u *discovery.Unit) (states.Place, diag.List) {
	s, ds := e.site(e.loader.Task(ctx), u, e.o.Request.Command, run.Output)
	if ds.HasErrors() {
		return states.Place{}, ds
	}
	return s.Place(ctx, true)
}

// DeleteState removes the state of a unit under its lock, with force also where it could
// not be brought back. was is false if there is none.
func (e *Estate) DeleteState(ctx context.Context, u *discovery.Unit, force bool, l arguments.Lock) (was bool, ds diag.List) {
	p, ds := e.place(ctx, u)
	if ds.HasErrors() {
		return false, ds
	}
	was, more := e.states.Delete(ctx, p, force, l)
	return was, append(ds, more...)
}

// MoveState moves the state of a unit to where another has its own. moved is false if
// there is none.
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
