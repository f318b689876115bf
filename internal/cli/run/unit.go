package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/unit"
)

// # A command on one unit
//
// The working folder of the unit is made on disk, and the command runs in it as in
// any folder: so its state, lock, plan files and workspaces are where Terragrunt has
// them. The unit's inputs join the other values of variables as the weakest of
// them.

// AsUnits runs a command on a unit or on all units, if it is meant so.
func AsUnits(ctx context.Context, c *command.Call, cmd *command.Command, args []string) (code int, ok bool) {
	if unitflags.PlainFolder(c) || !cmd.Units.Has(command.InUnit) {
		return 0, false
	}
	f, rest, err := unitflags.Take(args, c.Env)
	many := err == nil && f.Many()
	if f == nil {
		f = &unitflags.Flags{}
	}
	units.WorkIn(c, f)
	if !many && !units.IsUnit(c, &f.Selection) {
		return 0, false
	}
	if err != nil {
		return c.Report.UsageError(cmd.Name, "Failed to parse command-line flags", err.Error()), true
	}
	if cmd.Name == "explain" && !many {
		return explainUnit(ctx, c, cmd, f, rest), true
	}
	if many {
		return overUnits(ctx, c, cmd.Name, f, rest), true
	}
	if len(rest) > 0 && isUnitPlan(c, rest[len(rest)-1]) {
		switch cmd.Name {
		case "apply":
			return runAll(ctx, c, cmd.Name, f, rest), true
		case "show":
			return c.Do(ctx, cmd, rest), true
		}
	}
	code, _ = runUnit(ctx, c, cmd, f, rest)
	return code, true
}

// runUnit runs a command on the unit in the working folder, and reports it.
func runUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, args []string) (code int, us *units.Session) {
	if f.Report == "" && f.ReportSchema == "" {
		return unitTurn(ctx, c, cmd, f, args)
	}
	res := &estate.Result{Unit: &estate.Unit{Unit: &unit.Unit{Dir: c.Dir}, Name: "."}, Status: estate.Succeeded, Started: c.Now()}
	told := *f
	told.Report, told.ReportSchema = reportPath(c, f.Report), reportPath(c, f.ReportSchema)
	res.Code, us = unitTurn(ctx, c, cmd, f, args)
	res.Ended = c.Now()
	r := &estateRun{Call: c, f: &told, name: strings.Fields(cmd.Name)[0], args: args}
	if us != nil {
		r.estate, res.Diags, res.Set = us.Estate, us.Failed, c.Report.Set
		res.Reason, res.Cause = us.Reason, us.Cause
	}
	if res.Code != 0 && res.Code != 2 {
		res.Status, res.Reason = estate.Failed, "run error"
		res.Cause = fmt.Sprintf("the command ended with the status %d", res.Code)
	}
	return r.written([]*estate.Result{res}), us
}

// reportPath is the path of a report as it is before the command changes the folder.
func reportPath(c *command.Call, name string) string {
	if name == "" {
		return ""
	}
	return c.Path(name)
}

// unitTurn runs a command on the unit in the working folder.
func unitTurn(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, args []string) (int, *units.Session) {
	if f.HTML != "" {
		return c.Report.UsageError(cmd.Name, "Failed to parse command-line flags", NoPage().Error()), nil
	}
	for name, dir := range map[string]string{"--out-dir": f.OutDir, "--json-out-dir": f.JSONOutDir} {
		if dir != "" {
			f.Idle = append(f.Idle, name+": it is about runs over several units; -out saves the plan of one")
		}
	}
	slices.Sort(f.Idle)
	o, ds := units.Options(c, f, strings.Fields(cmd.Name)[0], args, nil)
	if ds.HasErrors() {
		return c.Fail(ds), nil
	}
	if more := units.Unchosen(ctx, c, o, &f.Selection); more.HasErrors() {
		return c.Fail(more), nil
	}
	e, u, more := estate.OpenUnit(ctx, o, units.UnitPath(c, f), f.Module)
	if ds = append(ds, more...); ds.HasErrors() {
		return units.FailWith(c, e, ds), nil
	}
	if why, more := e.Skipped(ctx, u); why != "" || more.HasErrors() {
		c.Report.TellWith(e.Sources(), more)
		if more.HasErrors() {
			return 1, nil
		}
		c.Report.Say("Nothing is run: " + why + ".\n")
		return 0, nil
	}
	if destroys(cmd.Name, args) {
		if yes, more := e.Protected(ctx, u); yes || more.HasErrors() {
			return units.FailWith(c, e, append(more, diag.Errorf(nil, "Unit protected from destruction", "The unit has prevent_destroy = true, so it cannot be destroyed.")...)), nil
		}
		yes, more := mayDestroy(ctx, c, f)
		if c.Report.Tell(more); !yes {
			return min(len(more.Errors()), 1), nil
		}
	}
	if more := bareIncludes(ctx, e, &f.FlagUse, u); more.HasErrors() {
		return units.FailWith(c, e, more), nil
	}
	us := &units.Session{Estate: e}
	if cmd.Units.Has(command.Uninitialized | command.OnlyReads) {
		us.Single, more = e.Look(ctx, u)
	} else {
		us.Single, more = e.Single(ctx, u, estate.Observer{
			Log:    func(_ *estate.Unit, line string) { hookLine(c, cmd.Name, args, line) },
			LogErr: func(_ *estate.Unit, line string) { fmt.Fprintln(c.Stderr, line) },
		})
	}
	if ds = append(ds, more...); ds.HasErrors() {
		return units.FailWith(c, e, ds), nil
	}
	if !f.NoDeprecation {
		ds = append(ds, e.Deprecated()...)
	}
	if len(ds) > 0 && c.Report.Human != nil {
		_ = c.Report.Printer(e.Sources()).Print(c.Stderr, c.Report.Filter(ds))
	}
	us.Dir = us.Single.Dir()
	return inUnit(ctx, c, cmd, f, args, us), us
}

// tried runs a command, again as the unit's errors block says.
func tried(ctx context.Context, c *command.Call, us *units.Session, run func() int) (code int) {
	label := ""
	for try := 1; ; try++ {
		us.Failed = nil
		if code = run(); code == 0 || code == 2 {
			if try > 1 {
				us.Reason, us.Cause = "retry succeeded", label
			}
			return code
		}
		v, ds := us.Single.Decide(ctx, us.Failed, try)
		switch {
		case ds.HasErrors():
			c.Report.TellWith(us.Estate.Sources(), ds)
			return code
		case v.Ignore != nil:
			c.Report.Tell(diag.Warnf(nil, "Failure ignored", "The command failed, which the ignore block %q of the unit takes for success. %s", v.Ignore.Name, v.Ignore.Message))
			us.Reason, us.Cause = "error ignored", v.Ignore.Name
			return 0
		case !v.Again || ctx.Err() != nil:
			return code
		}
		label = v.Retry
		c.Report.Say(fmt.Sprintf("\nThe command is tried again in %s, since the unit says so of this error.\n", v.Sleep))
		if !retry.Pause(ctx, nil, v.Sleep) {
			return code
		}
	}
}

func destroys(name string, args []string) bool {
	return name == "destroy" || name == "apply" && slices.ContainsFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "destroy" })
}

// inUnit runs the command in the unit's working folder, with what runs around it.
func inUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, args []string, us *units.Session) int {
	e := us.Estate
	extra, env := us.Single.Extra()
	c.Work(c.System.In(us.Dir))
	c.Launch, c.Unit, c.Report.Note = us.Dir, us.Surroundings(c), us.Note
	for _, name := range us.Single.Secret() {
		c.Report.Set.Conceal(name)
	}
	c.Env = c.Env.With(env...)
	if cmd.Name == "init" {
		for _, a := range us.Single.BackendConfig() {
			extra = append(extra, "-backend-config="+a)
		}
	}
	if cmd.Name == "init" || !cmd.Units.Has(command.Uninitialized) {
		if code, ds := us.Single.PreHooks(ctx); ds.HasErrors() {
			c.Report.TellWith(e.Sources(), ds)
			return max(code, 1)
		}
		if ds := us.Single.CheckBackend(); ds.HasErrors() {
			return units.FailWith(c, e, ds)
		}
	}
	if !f.NoAutoInit && !cmd.Units.Has(command.Uninitialized) {
		if ds := autoInit(ctx, c, us); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	if cmd.Units.Has(command.NeedsInputs) {
		if ds := us.CheckInputs(ctx, c); ds.HasErrors() {
			return units.FailWith(c, e, ds)
		}
	}
	c.Command = cmd
	if us.Single.Files() != nil { // nothing runs around a command that only looks
		return c.Do(ctx, cmd, append(slices.Clone(extra), args...))
	}
	return tried(ctx, c, us, func() int {
		return hooked(ctx, c, us, func() int {
			return units.Phase(ctx, c, cmd.Name, us.Dir, func(ctx context.Context) int { return c.Do(ctx, cmd, append(slices.Clone(extra), args...)) })
		})
	})
}

// hookLine tells a line of a hook: as an event where the command will write events or
// writes them already, so that nothing else stands among them.
func hookLine(c *command.Call, command string, args []string, line string) {
	telemetry.Log(c.Report.Context, "stdout", line, "")
	streams := []string{"plan", "apply", "destroy", "refresh"}
	asks := func(a string) bool { return a == "-json" || a == "--json" }
	if c.Report.Stream == nil && slices.Contains(streams, command) && slices.ContainsFunc(args, asks) {
		(&view.Stream{Out: c.Stdout, Now: c.Now}).Log(line)
		return
	}
	c.Report.Say(line + "\n")
}

// hooked runs a command with the hooks before and after it. Its errors are noted.
func hooked(ctx context.Context, c *command.Call, us *units.Session, run func() int) int {
	e := us.Estate
	code, ds := us.Single.Hooks(ctx, false, nil)
	if c.Report.TellWith(e.Sources(), ds); ds.HasErrors() {
		us.Note(ds)
		code = max(code, 1)
	} else if code = run(); code != 0 && code != 2 && len(us.Failed) == 0 {
		us.Note(diag.Errorf(nil, "Command failed", "The command %s ended with the status %d.", c.Command.Name, code))
	}
	after, ds := us.Single.Hooks(ctx, true, us.Failed)
	ds = append(ds, us.Single.KeepLock()...)
	if c.Report.TellWith(e.Sources(), ds); ds.HasErrors() {
		us.Note(ds)
		return max(after, code, 1)
	}
	return code
}

// autoInit initializes the working folder where something that the command needs
// is missing.
func autoInit(ctx context.Context, c *command.Call, us *units.Session) diag.List {
	quiet := c.Below(us.Dir)
	quiet.Unit = us.Surroundings(quiet)
	p, ds := project.Load(ctx, quiet, project.Options{Partial: true})
	if p != nil {
		_, more := p.Backend(ctx)
		if !more.HasErrors() {
			more = p.SelectProviders(ctx)
		}
		p.Close()
		if !more.HasErrors() {
			return nil
		}
	} else if !slices.ContainsFunc(ds, module.NeedsInstall) {
		return nil // the command tells it
	}
	return us.Single.Install(ctx)
}
