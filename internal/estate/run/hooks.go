package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/hooks"
	"github.com/terrace-iac/terrace/internal/telemetry"
)

// # Hooks that change what is run
//
// A hook may write into the working directory: files of the module, values of variables.
// So hooks that come before a command run before the module counts as read. The
// directory that they leave is compared with what it was made of (workdir.Dir.Reread);
// where they changed something, the module is read from the directory itself. Hooks around
// the init that Terragrunt does by itself (init) and around its copy of the module
// (init-from-module) run when the module is new to the directory.

// hasHooks reports whether programs run around the command.
func (t *Turn) hasHooks() bool { return !t.NoHooks && t.at.dir.HasHooks() }

// hooks is the runner of the unit's hooks.
func (t *Turn) hooks() *hooks.Runner {
	out := hooks.Output{}
	if tell := t.o.Observe.Hook; tell != nil {
		out.Hook = func(name string) { tell(t.Unit, name) }
	}
	if log := t.o.Observe.Log; log != nil {
		out.Log = func(line string) { log(t.Unit, line) }
	}
	if log := t.o.Observe.LogErr; log != nil {
		out.LogErr = func(line string) { log(t.Unit, line) }
	}
	return &hooks.Runner{
		Unit: t.Unit.Name, Blocks: t.at.dir.Terraform, Dir: t.at.dir.Path, Exec: t.Machine.Run, Env: t.at.Programs, Output: out,
		Context: hooks.Context{
			Program: cmp.Or(t.Host.Program, "terrace"), UnitDir: t.Unit.Dir,
			Source: cmp.Or(t.Dirs.Source(t.Unit.Unit, t.at.dir.Terraform), "."),
		},
		Prepare: func() diag.List {
			if ds := t.at.dir.Make(); ds.HasErrors() {
				return ds
			}
			t.at.dir.BeforeHook()
			return nil
		},
		Span: func(s *telemetry.Span) { about(s, t.Unit) },
	}
}

// ran takes what came of hooks.
func (t *Turn) ran(r hooks.Result) diag.List {
	t.hooksRan = t.hooksRan || r.Ran
	if r.Code > 0 {
		t.res.Code = r.Code
	}
	return r.Diags
}

// preHooks runs the hooks that come before those of the command.
func (t *Turn) preHooks(ctx context.Context) diag.List {
	if !t.hasHooks() {
		return nil
	}
	tf, run := t.at.dir.Terraform, t.hooks()
	module := tf.Source != nil && (hooks.Wanted(tf.Before, hooks.Module) || hooks.Wanted(tf.After, hooks.Module))
	before, after := hooks.Wanted(tf.Before, hooks.Init), hooks.Wanted(tf.After, hooks.Init)
	byUser := t.Command == hooks.Init // whose hooks run around it
	if t.Host.Init == nil {
		before, after = false, false // there is no init that they could run around
	}
	ds := t.ran(run.After(ctx, hooks.Config, nil))
	if !module && (byUser || !before && !after) {
		return ds
	}
	if ds = append(ds, t.at.dir.Make()...); t.at.dir.InitHooksRan() && !byUser || ds.HasErrors() {
		t.hooksRan = true // before: what they made is there
		return ds
	}
	if module {
		if ds = append(ds, t.ran(run.Before(ctx, hooks.Module))...); !ds.HasErrors() {
			ds = append(ds, t.ran(run.After(ctx, hooks.Module, nil))...)
		}
	}
	if !byUser && !ds.HasErrors() {
		ds = append(ds, t.ran(run.Before(ctx, hooks.Init))...)
		if after && !ds.HasErrors() {
			ds = append(ds, t.install(ctx)...)
		}
		ds = append(ds, t.ran(run.After(ctx, hooks.Init, ds))...)
	}
	if !ds.HasErrors() {
		ds = append(ds, t.at.dir.NoteHooks()...)
	}
	return ds
}

// beforeHooks runs the hooks before the command.
func (t *Turn) beforeHooks(ctx context.Context) diag.List {
	if !t.hasHooks() {
		return nil
	}
	return t.ran(t.hooks().Before(ctx, t.Command))
}

// afterHooks runs the hooks after the command and those for its errors. failed are the
// messages of the command.
func (t *Turn) afterHooks(ctx context.Context, failed diag.List) diag.List {
	if !t.hasHooks() {
		return nil
	}
	run := t.hooks()
	ds := t.ran(run.After(ctx, t.Command, failed))
	if failed.HasErrors() {
		ds = append(ds, t.ran(run.Failed(ctx, t.Command, t.failureText(failed)))...)
	}
	if t.Command == hooks.Init && !ds.HasErrors() && !failed.HasErrors() {
		ds = append(ds, t.at.dir.NoteHooks()...)
	}
	return ds
}

// settle reads the module and the inputs again after hooks ran: from the directory,
// where they changed what is in it. What was wrong before may have been cured by
// them.
func (t *Turn) settle(ctx context.Context) (idle bool, ds diag.List) {
	if !t.hooksRan {
		return false, t.curable
	}
	changed, err := t.at.dir.Reread()
	switch {
	case err != nil:
		return false, diag.Errorf(nil, "Failed to read the working folder", "%s.", err)
	case changed:
		t.res.Set = t.at.dir.Parsed.Set
	case !t.curable.HasErrors():
		idle, ds = t.evaluate(ctx)
		for _, m := range t.curable {
			if !slices.ContainsFunc(ds, func(o *diag.Message) bool { return o.Summary == m.Summary && o.Detail == m.Detail }) {
				ds = append(ds, m)
			}
		}
		return idle, ds
	}
	if t.engine != nil {
		t.engine.Close()
		t.engine = nil
	}
	return t.open(ctx)
}

// failureText is what patterns of errors are held against: each message in one
// line, and as it is printed, with the text that it is about, and how a program that
// fails with them ends.
func (t *Turn) failureText(ds diag.List) string {
	var b strings.Builder
	for _, m := range ds.Errors() {
		fmt.Fprintf(&b, "%s: %s\n", m.Summary, m.Detail)
		p := diag.Printer{Set: t.Loader.Sources()}
		if d := t.at.dir; d != nil && d.Parsed != nil && m.At != nil && d.Parsed.Set.File(m.At.Filename) != nil {
			p.Set = d.Parsed.Set
		}
		_ = p.Print(&b, diag.List{m}) // a builder takes everything
	}
	if text := b.String(); strings.Contains(text, "exit status") {
		return text
	}
	return b.String() + "exit status 1\n"
}
