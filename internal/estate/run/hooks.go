package run

import (
	"cmp"
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/hooks"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
)

// # Hooks that change the module
//
// A hook may write files of the module or values of variables into the working directory. Hooks
// that run before a command therefore run before the module is read. Afterwards the directory is
// compared with the files it was created from (workcopy.UnitDirectory.Reread). If hooks changed it, the
// module is read again from the directory. Two kinds of hooks run when the module is new in the
// directory: those around the automatic init (init) and those around the copy of the module
// (init-from-module).

// unitHooks runs the hooks of a unit.
type unitHooks struct {
	x       *execution
	at      *Site
	res     *report.Result                      // receives the exit status of a hook that failed
	install func(ctx context.Context) diag.List // runs init, between the hooks of init

	ran bool // hooks ran in this turn, or the hooks of init ran in an earlier one
}

// any reports whether the unit has hooks and the run executes them.
func (h *unitHooks) any() bool { return !h.x.NoHooks && h.at.dir.HasHooks() }

// runner returns the runner of the unit's hooks.
func (h *unitHooks) runner() *hooks.Runner {
	u, dir := h.at.unit, h.at.dir
	var out hooks.Output = hookOutput{u, h.x.o.Observe}
	if errs, ok := h.x.o.Observe.(ErrorObserver); ok {
		out = splitOutput{hookOutput{u, errs}, errs}
	}
	return &hooks.Runner{
		Unit: u.Called(), Blocks: dir.Terraform, Dir: dir.Path, Exec: h.x.Machine.Run, Site: hookSite{h.at}, Output: out,
		Context: hooks.Context{
			Program: cmp.Or(h.x.Host.Executable, "terrace"), UnitDir: u.Dir,
			Source: cmp.Or(h.x.Dirs.Source(u.Unit, dir.Terraform), "."),
		},
	}
}

// hookSite is a unit whose hooks run.
type hookSite struct{ at *Site }

func (h hookSite) Environ(ctx context.Context) sys.Env { return h.at.ofPrograms(ctx) }

func (h hookSite) Describe(s *telemetry.Span) { about(s, h.at.unit) }

// Prepare creates the working directory and records its files, which the hook may change.
func (h hookSite) Prepare() diag.List {
	if ds := h.at.dir.Make(); ds.HasErrors() {
		return ds
	}
	h.at.dir.BeforeHook()
	return nil
}

// took records the result of hooks and returns their messages.
func (h *unitHooks) took(r hooks.Result) diag.List {
	h.ran = h.ran || r.Ran
	if r.Code > 0 {
		h.res.Code = r.Code
	}
	return r.Diags
}

// first runs the hooks that come before those of the command: after the file was read, around the
// copy of the module, and around the automatic init.
func (h *unitHooks) first(ctx context.Context) diag.List {
	if !h.any() {
		return nil
	}
	tf, run := h.at.dir.Terraform, h.runner()
	module := tf.Source != nil && (hooks.Wanted(tf.Before, hooks.Module) || hooks.Wanted(tf.After, hooks.Module))
	before, after := hooks.Wanted(tf.Before, hooks.Init), hooks.Wanted(tf.After, hooks.Init)
	byUser := h.x.Command == hooks.Init // the hooks of init then run as those of the command
	if !h.x.Host.initializes() {
		before, after = false, false // without init there is nothing to run them around
	}
	ds := h.took(run.After(ctx, hooks.Config, nil))
	if !module && (byUser || !before && !after) {
		return ds
	}
	if ds = append(ds, h.at.dir.Make()...); h.at.dir.InitHooksRan() && !byUser || ds.HasErrors() {
		h.ran = true // they ran in an earlier turn, and their files are still there
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

// before runs the before_hook blocks of the command.
func (h *unitHooks) before(ctx context.Context) diag.List {
	if !h.any() {
		return nil
	}
	return h.took(h.runner().Before(ctx, h.x.Command))
}

// after runs the after_hook blocks of the command, and the error_hook blocks if it failed. failed
// contains the messages of the command.
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

// reread reads the working directory again if any hooks ran. It reports whether they changed
// files of the module.
func (h *unitHooks) reread() (changed bool, ds diag.List) {
	if !h.ran {
		return false, nil
	}
	changed, err := h.at.dir.Reread()
	if err != nil {
		return false, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the working directory", "%s.", err)
	}
	return changed, nil
}
