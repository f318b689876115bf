package estate

import (
	"context"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/sys"
)

// environ is the environment that the backend of a unit gets its credentials from.
func (e *Estate) environ(t *demand.Task, u *discovery.Unit) (sys.Env, diag.List) {
	own, ds := e.runner.Credentials.For(t, u.Unit)
	if ds.HasErrors() || len(own) == 0 {
		return e.o.Machine.Environ, ds
	}
	return e.o.Machine.Environ.With(own...), ds
}

// Bootstrap makes the store that the remote_state of a unit describes. Where there is nothing
// to be made, nothing says why.
func (e *Estate) Bootstrap(ctx context.Context, u *discovery.Unit) (nothing string, ds diag.List) {
	t := e.loader.Task(ctx)
	d, ds := e.dirs.Dir(t, u.Unit, true)
	if ds.HasErrors() {
		return "", ds
	}
	if d.Waits != "" {
		return "", append(ds, diag.Errorf(nil, "Place of the state is not known", "The store of the unit %s cannot be made, since its %s depends on outputs that are not known yet.", u.Called(), d.Waits)...)
	}
	env, more := e.environ(t, u)
	if ds = append(ds, more...); more.HasErrors() {
		return "", ds
	}
	nothing, more = e.states.Bootstrap(ctx, u.Name, d, env)
	return nothing, append(ds, more...)
}

// place is where the state of a unit is, for commands that change it.
func (e *Estate) place(ctx context.Context, u *discovery.Unit) (states.Place, diag.List) {
	return e.where(e.loader.Task(ctx), u, true)
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
