package run

import (
	"cmp"
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/hooks"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
)

// # Hooks that change what is run
//
// A hook may write into the working directory: files of the module, values of variables.
// So hooks that come before a command run before the module counts as read. The
// directory that they leave is compared with what it was made of (workdir.Dir.Reread);
// where they changed something, the module is read from the directory itself. Hooks around
// the init that Terragrunt does by itself (init) and around its copy of the module
// (init-from-module) run when the module is new to the directory.

// unitHooks are the hooks of a unit.
type unitHooks struct {
	x       *execution
	at      *Site
	res     *report.Result                      // has the status of a hook that failed
	install func(ctx context.Context) diag.List // runs init, which hooks run around too

	ran bool // some ran in this turn, or those of init before it
}

// any reports whether programs run around the command.
func (h *unitHooks) any() bool { return !h.x.NoHooks && h.at.dir.HasHooks() }

// runner runs them.
func (h *unitHooks) runner() *hooks.Runner {
	u, dir, observe := h.at.unit, h.at.dir, &h.x.o.Observe
	out := hooks.Output{}
	if tell := observe.Hook; tell != nil {
		out.Hook = func(name string) { tell(u, name) }
	}
	if log := observe.Log; log != nil {
		out.Log = func(line string) { log(u, line) }
	}
	if log := observe.LogErr; log != nil {
		out.LogErr = func(line string) { log(u, line) }
	}
	return &hooks.Runner{
		Unit: u.Called(), Blocks: dir.Terraform, Dir: dir.Path, Exec: h.x.Machine.Run, Env: h.at.ofPrograms, Output: out,
		Context: hooks.Context{
			Program: cmp.Or(h.x.Host.Program, "terrace"), UnitDir: u.Dir,
			Source: cmp.Or(h.x.Dirs.Source(u.Unit, dir.Terraform), "."),
		},
		Prepare: func() diag.List {
			if ds := dir.Make(); ds.HasErrors() {
				return ds
			}
			dir.BeforeHook()
			return nil
		},
		Span: func(s *telemetry.Span) { about(s, u) },
	}
}

// took takes what came of hooks.
func (h *unitHooks) took(r hooks.Result) diag.List {
	h.ran = h.ran || r.Ran
	if r.Code > 0 {
		h.res.Code = r.Code
	}
	return r.Diags
}

// first runs the hooks that come before those of the command.
func (h *unitHooks) first(ctx context.Context) diag.List {
	if !h.any() {
		return nil
	}
	tf, run := h.at.dir.Terraform, h.runner()
	module := tf.Source != nil && (hooks.Wanted(tf.Before, hooks.Module) || hooks.Wanted(tf.After, hooks.Module))
	before, after := hooks.Wanted(tf.Before, hooks.Init), hooks.Wanted(tf.After, hooks.Init)
	byUser := h.x.Command == hooks.Init // whose hooks run around it
	if h.x.Host.Init == nil {
		before, after = false, false // there is no init that they could run around
	}
	ds := h.took(run.After(ctx, hooks.Config, nil))
	if !module && (byUser || !before && !after) {
		return ds
	}
	if ds = append(ds, h.at.dir.Make()...); h.at.dir.InitHooksRan() && !byUser || ds.HasErrors() {
		h.ran = true // in an earlier turn: what they made is there
		return ds
	}
	if module {
		if ds = append(ds, h.took(run.Before(ctx, hooks.Module))...); !ds.HasErrors() {
			ds = append(ds, h.took(run.After(ctx, hooks.Module, nil))...)
		}
	}
	if !byUser && !ds.HasErrors() {
		ds = append(ds, h.took(run.Before(ctx, hooks.Init))...)
		if after && !ds.HasErrors() {
			ds = append(ds, h.install(ctx)...)
		}
		ds = append(ds, h.took(run.After(ctx, hooks.Init, ds))...)
	}
	if !ds.HasErrors() {
		ds = append(ds, h.at.dir.NoteHooks()...)
	}
	return ds
}

// before runs the hooks before the command.
func (h *unitHooks) before(ctx context.Context) diag.List {
	if !h.any() {
		return nil
	}
	return h.took(h.runner().Before(ctx, h.x.Command))
}

// after runs the hooks after the command and those for its errors. failed are the messages of
// the command.
func (h *unitHooks) after(ctx context.Context, failed diag.List) diag.List {
	if !h.any() {
		return nil
	}
	run := h.runner()
	ds := h.took(run.After(ctx, h.x.Command, failed))
	if failed.HasErrors() {
		ds = append(ds, h.took(run.Failed(ctx, h.x.Command, h.at.failureText(failed)))...)
	}
	if h.x.Command == hooks.Init && !ds.HasErrors() && !failed.HasErrors() {
		ds = append(ds, h.at.dir.NoteHooks()...)
	}
	return ds
}

// reread takes over what hooks changed in the directory, if any ran.
func (h *unitHooks) reread() (changed bool, ds diag.List) {
	if !h.ran {
		return false, nil
	}
	changed, err := h.at.dir.Reread()
	if err != nil {
		return false, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the working folder", "%s.", err)
	}
	return changed, nil
}
