package estate

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/unit"
)

// # Hooks that change what is run
//
// A hook may write into the working folder: files of the module, values of variables.
// So hooks that come before a command run before the module counts as read. The
// folder that they leave is compared with what it was made of (edits.go); where they
// changed something, the module is read from the folder itself. Hooks around the init that
// Terragrunt does by itself (init) and around its copy of the module
// (init-from-module) run when the module is new to the folder.

// The commands of hooks around what is no command of the user.
const (
	hookInit   = "init"
	hookModule = "init-from-module"
	hookConfig = "terragrunt-read-config"
)

// wants reports whether a hook is about a command.
func wants(list []unit.Hook, command string) bool {
	return slices.ContainsFunc(list, func(h unit.Hook) bool { return h.If && slices.Contains(h.Commands, command) })
}

// early runs the hooks that come before those of the command.
func (w *work) early(ctx context.Context) diag.List {
	if !w.hasHooks() {
		return nil
	}
	p, tf := w.u.place, w.u.place.terraform
	module := tf.Source != nil && (wants(tf.Before, hookModule) || wants(tf.After, hookModule))
	before, after := wants(tf.Before, hookInit), wants(tf.After, hookInit)
	byUser := w.r.e.o.Request.Command == hookInit // whose hooks run around it
	if w.r.e.o.Host.Init == nil {
		before, after = false, false // there is no init that they could run around
	}
	ds := w.hooksOf(ctx, tf.After, hookConfig, nil)
	if !module && (byUser || !before && !after) {
		return ds
	}
	if ds = append(ds, p.onDisk()...); p.past && !byUser || ds.HasErrors() {
		w.ran = true // before: what they made is there
		return ds
	}
	if module {
		if ds = append(ds, w.hooksOf(ctx, tf.Before, hookModule, nil)...); !ds.HasErrors() {
			ds = append(ds, w.hooksOf(ctx, tf.After, hookModule, nil)...)
		}
	}
	if !byUser && !ds.HasErrors() {
		ds = append(ds, w.hooksOf(ctx, tf.Before, hookInit, nil)...)
		if after && !ds.HasErrors() {
			ds = append(ds, w.install(ctx)...)
		}
		ds = append(ds, w.hooksOf(ctx, tf.After, hookInit, ds)...)
	}
	if !ds.HasErrors() {
		ds = append(ds, p.remember()...)
	}
	return ds
}

// EarlyHooks runs the hooks of a command on the unit alone that come before what the
// command needs is looked at. The unit must be Ready.
func (e *Estate) EarlyHooks(ctx context.Context, u *Unit, o Observer) (code int, ds diag.List) {
	w := &work{r: &Run{e: e, o: RunOptions{Observe: o}}, u: u, res: &Result{Unit: u}, t: e.task(ctx)}
	ds = w.early(ctx)
	return w.res.Code, ds
}

// settle reads the module and the inputs again after hooks ran: from the folder,
// where they changed what is in it. What was wrong before may have been cured by
// them.
func (w *work) settle(ctx context.Context) (idle bool, ds diag.List) {
	if !w.ran {
		return false, w.first
	}
	changed, err := w.u.place.changed()
	switch {
	case err != nil:
		return false, diag.Errorf(nil, "Failed to read the working folder", "%s.", err)
	case changed:
		w.res.Set = &w.u.place.shared.set
	case !w.first.HasErrors():
		idle, ds = w.inputs(ctx)
		for _, m := range w.first {
			if !slices.ContainsFunc(ds, func(o *diag.Message) bool { return o.Summary == m.Summary && o.Detail == m.Detail }) {
				ds = append(ds, m)
			}
		}
		return idle, ds
	}
	if w.engine != nil {
		w.engine.Close()
		w.engine = nil
	}
	return w.ready(ctx)
}
