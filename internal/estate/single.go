package estate

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/unit"
)

// Ready finds out where the module of a unit is and makes its working folder, for
// commands that then run there as in any folder.
func (e *Estate) Ready(ctx context.Context, u *Unit) (dir string, ds diag.List) {
	if ds = e.locate(ctx, u); ds.HasErrors() {
		return "", ds
	}
	return u.place.dir, append(ds, u.place.onDisk()...)
}

// Readable is Ready for commands that only look: nothing is written, and files is the
// working folder as it would be. What it would hold is read from where it comes from,
// and the names are relative to it.
func (e *Estate) Readable(ctx context.Context, u *Unit) (dir string, files config.FS, ds diag.List) {
	if ds = e.locate(ctx, u); ds.HasErrors() {
		return "", nil, ds
	}
	return u.place.dir, u.place.files, ds
}

// locate finds out where the module of a unit is and what its working folder holds.
func (e *Estate) locate(ctx context.Context, u *Unit) diag.List {
	t := e.task(ctx)
	var ds diag.List
	if ds = e.told.first(u.CheckRunner(t)); ds.HasErrors() {
		return ds
	}
	p, more := e.placeOf(t, u, true)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if p.waits != "" {
		return append(ds, diag.Errorf(nil, "Outputs are not known", "The unit's %s hangs on outputs that are not known yet. Apply the units that it depends on first.", p.waits)...)
	}
	u.place = p
	return append(ds, e.signIn(t, u)...)
}

// Secret are the generated files in the folder of a unit that was made ready whose text
// must not be shown.
func (e *Estate) Secret(u *Unit) []string { return u.place.files.secret }

// Values are the inputs of a unit for the variables that its module declares.
func (e *Estate) Values(ctx context.Context, u *Unit, root *config.Module) (map[string]engine.InputValue, diag.List) {
	t := e.task(ctx)
	values, _, ds := e.values(t, u, root)
	ds = append(ds, e.debugInputs(t, u, root)...)
	return values, append(ds, u.CheckInputs(t, declared(root), e.o.Inputs.Strict)...)
}

// KeepLock copies the dependency lock file of the working folder to the unit's.
func (e *Estate) KeepLock(u *Unit) diag.List {
	if err := u.place.keepLock(); err != nil {
		return diag.Errorf(nil, "Failed to keep the dependency lock file", "%s.", err)
	}
	return nil
}

// BackendConfig are the arguments of init that a remote_state without generate
// stands for.
func (e *Estate) BackendConfig(u *Unit) []string {
	rs := u.place.remote
	if rs == nil || rs.Generate != nil {
		return nil
	}
	v, _ := rs.Config.UnmarkDeep()
	if v.IsNull() || !v.CanIterateElements() {
		return nil
	}
	var out []string
	for k, v := range v.AsValueMap() {
		if text, ok := textOf(v); ok {
			out = append(out, "-backend-config="+k+"="+text)
		}
	}
	slices.Sort(out)
	return out
}

// Extra are the words and the environment that extra_arguments add to a command.
func (e *Estate) Extra(u *Unit, command string) (args, env []string) {
	x := u.extra(command)
	args = x.words
	for _, f := range x.vars {
		if f.File {
			args = append(args, "-var-file="+f.Value)
		}
	}
	return args, x.env
}

// Hooks runs what a unit wants run around a command. failed are the messages of
// the command, for hooks that run after it.
func (e *Estate) Hooks(ctx context.Context, u *Unit, after bool, failed diag.List, o Observer) (code int, ds diag.List) {
	w := &work{r: &Run{e: e, o: RunOptions{Observe: o}}, u: u, res: &Result{Unit: u}, t: e.task(ctx)}
	if !w.hasHooks() {
		return 0, nil
	}
	ds = w.hooks(ctx, after, failed)
	return w.res.Code, ds
}

// Meant lets a unit that was named by itself take part whatever its exclude block
// says, as in a command on the unit alone.
func (e *Estate) Meant(u *Unit) { u.Excluded = "" }

// Skipped says why a command on the unit alone does nothing, "" if it runs.
func (e *Estate) Skipped(ctx context.Context, u *Unit) (string, diag.List) {
	t := e.task(ctx)
	x, ds := u.Exclude(t)
	if x != nil && x.Late {
		x, ds = u.ExcludeNow(t)
	}
	if x != nil && x.If && x.NoRun && excludes(x, e.o.Request.Command) {
		return byItself, ds
	}
	return "", ds
}

// excludes reports whether an exclude block is about a command.
func excludes(x *unit.Exclude, command string) bool {
	return slices.ContainsFunc(x.Actions, func(a string) bool {
		return a == command || a == "all" || a == "all_except_output" && command != "output"
	})
}

// Protected reports whether a unit may not be destroyed.
func (e *Estate) Protected(ctx context.Context, u *Unit) (bool, diag.List) {
	sc, ds := u.In(e.blind).Scalars(e.task(ctx))
	if ds.HasErrors() || sc == nil || sc.PreventDestroy == nil {
		return false, ds
	}
	v, _ := sc.PreventDestroy.Value.Unmark()
	return v.IsKnown() && !v.IsNull() && v.Type().FriendlyName() == "bool" && v.True(), ds
}

// RelativeName is the name that a unit of an ID has in the estate.
func (e *Estate) RelativeName(id string) string { return e.name(id) }

// Tolerate makes outputs that do not exist no error, as rendering wants it.
func (o Options) Tolerate() Options {
	o.Inputs.tolerant = true
	return o
}

// Render is the effective configuration of a unit.
func (e *Estate) Render(ctx context.Context, u *Unit, asJSON, metadata bool) ([]byte, diag.List) {
	t := e.task(ctx)
	switch {
	case metadata:
		return u.RenderMetadata(t)
	case asJSON:
		return u.RenderJSON(t)
	}
	return u.RenderHCL(t)
}
