package states

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/zclconf/go-cty/cty"
)

// Bootstrapping configures whether and how the stores of states are created before they are used.
type Bootstrapping struct {
	On      bool // Prepare creates stores
	Require bool // a store that does not exist is an error
	Keep    bool // an existing store is not changed
}

// Prepare creates the store of a unit's state, if the settings require that before the store is
// used.
func (k *Keeper) Prepare(ctx context.Context, name string, d *workcopy.UnitDirectory, env sys.Env) diag.List {
	if !k.s.Bootstrap.On || k.s.Throwaway != "" {
		return nil
	}
	_, ds := k.Bootstrap(ctx, name, d, env)
	return ds
}

// Bootstrap creates the store that the remote_state block of a unit describes. If there is
// nothing to create, nothing is the reason, as part of a sentence.
func (k *Keeper) Bootstrap(ctx context.Context, name string, d *workcopy.UnitDirectory, env sys.Env) (nothing string, ds diag.List) {
	rs := d.Remote
	switch {
	case rs == nil:
		return "the unit has no remote_state", nil
	case rs.DisableInit:
		return "disable_init leaves it out", nil
	}
	cfg, ds := k.fromRemoteState(ctx, d, nil, nil, env)
	if ds.HasErrors() {
		return "", ds
	}
	cfg.Dir, cfg.Env, cfg.Value = d.Path, env, k.checkedOut(cfg.Value)
	args := cty.NilVal
	if rs.Config != cty.NilVal && !rs.Config.IsNull() {
		args, _ = rs.Config.UnmarkDeep()
	}
	b := backend.Bootstrapping{Require: k.s.Bootstrap.Require, Keep: k.s.Bootstrap.Keep, Did: k.host(name).Note}
	done, more := k.s.Backends.Bootstrap(ctx, cfg, args, b)
	if !done {
		nothing = fmt.Sprintf("stores of the kind %q are made elsewhere", rs.Backend)
	}
	return nothing, append(ds, located(more, rs.At)...)
}

// named returns the name of the unit of a place, for use in a sentence.
func (p Location) named() string {
	if p.Unit == "." {
		return "this unit"
	}
	return p.Unit
}

// kept returns an error if the store cannot restore a deleted state, because it keeps no
// versions. With force it checks nothing.
func (k *Keeper) kept(ctx context.Context, p Location, force bool) diag.List {
	if force {
		return nil
	}
	b, ds := k.s.Backends.Open(ctx, p.Config)
	if ds.HasErrors() {
		return p.located(ds)
	}
	v, ok := b.(backend.Bootstrapper)
	if !ok {
		return diag.Errorf(diag.CodeBackendBootstrap, p.At, "Store without versions", "The state of %s is kept by the backend %q, which does not say whether a deleted state can be brought back. Keep a copy of it (\"state pull\") and use --force. Nothing was changed.", p.named(), p.Config.Type)
	}
	on, err := v.Versioned(ctx)
	switch {
	case err != nil:
		return p.located(backend.Message(diag.CodeBackendFailed, "Failed to look at the store", "", err))
	case !on:
		return diag.Errorf(diag.CodeBackendBootstrap, p.At, "Store without versions", "The store of the state of %s has no versioning, so a deleted state could not be restored. Enable it with \"backend bootstrap\", or keep a copy of the state (\"state pull\") and use --force. Nothing was changed.", p.named())
	}
	return nil
}

// Delete deletes the state of a unit while it holds the lock. was is false if there is no state.
// Unless force is set, it is an error if the store cannot restore a deleted state.
func (k *Keeper) Delete(ctx context.Context, p Location, force bool, l arguments.Lock) (was bool, ds diag.List) {
	if ds = k.kept(ctx, p, force); ds.HasErrors() {
		return false, ds
	}
	h, ds := k.Take(ctx, p, l, "backend-delete")
	if ds.HasErrors() {
		return false, ds
	}
	defer func() { ds = append(ds, h.Release()...) }()
	if more := h.Settle(ctx); more.HasErrors() { // the lock excludes other processes
		return false, append(ds, more...)
	}
	if h.Current() == nil {
		return false, ds
	}
	return true, append(ds, k.delete(ctx, p)...)
}

func (k *Keeper) delete(ctx context.Context, p Location) diag.List {
	b, ds := k.s.Backends.Open(ctx, p.Config)
	if ds.HasErrors() {
		return p.located(ds)
	}
	if err := b.Delete(ctx, p.Workspace); err != nil {
		return p.located(backend.Message(diag.CodeBackendWriteFailed, "Failed to delete the state", "", err))
	}
	return nil
}

// Move moves the state of a unit to the place of another unit's state, while it holds both locks.
// It copies the state with its lineage and serial, reads the copy back, and deletes the original.
// After an interruption, the same move can be repeated. moved is false if there is nothing to
// move.
func (k *Keeper) Move(ctx context.Context, from, to Location, force bool, l arguments.Lock) (moved bool, ds diag.List) {
	if ds = k.kept(ctx, from, force); ds.HasErrors() {
		return false, ds
	}
	source, old, ds := k.take(ctx, from, l, "migration source state")
	if ds.HasErrors() {
		return false, ds
	}
	defer func() { ds = append(ds, source.Release()...) }()
	place, more := k.Open(ctx, to)
	if ds = append(ds, more...); more.HasErrors() {
		return false, ds
	}
	if a, ok := old.(backend.Placer); ok {
		if b, ok := place.(backend.Placer); ok && a.Place() == b.Place() && from.Workspace == to.Workspace {
			return false, append(ds, diag.Errorf(diag.CodeEstateSharedState, to.At, "Two units with one state", "The units %s and %s keep their state in one place, %s. There is nothing to move.", from.Unit, to.Unit, a.Place())...)
		}
	}
	target, next, more := k.take(ctx, to, l, "migration destination state")
	if ds = append(ds, more...); more.HasErrors() {
		return false, ds
	}
	defer func() { ds = append(ds, target.Release()...) }()
	if more = append(source.Settle(ctx), target.Settle(ctx)...); more.HasErrors() {
		return false, append(ds, more...)
	}
	st, there := source.Current(), target.Current()
	copied := st != nil && there != nil && there.Lineage == st.Lineage && there.Equal(st) // by an interrupted move
	switch {
	case st == nil:
		return false, ds
	case !there.Empty() && !copied:
		return false, append(ds, diag.Errorf(diag.CodeBackendBootstrap, to.At, "Unit has a state", "The state of %s is not empty, and moving that of %s there would write over it. Nothing was changed.", to.named(), from.named())...)
	case !copied:
		if more = next.Write(ctx, st); more.HasErrors() {
			return false, append(ds, more...)
		}
		back, more := next.Read(ctx)
		if ds = append(ds, more...); more.HasErrors() {
			return false, ds
		}
		if back == nil || !back.Equal(st) {
			return false, append(ds, diag.Errorf(diag.CodeBackendBootstrap, to.At, "Copy of the state differs", "What was written for %s is not what is read back. The state of %s is where it was.", to.named(), from.named())...)
		}
	}
	return true, append(ds, k.delete(ctx, from)...)
}
