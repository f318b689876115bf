package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # A command on one unit
//
// The working folder of the unit is made on disk, and the command runs in it as in
// any folder: so its state, lock, plan files and workspaces are where Terragrunt has
// them. The unit's inputs join the other values of variables as the weakest of
// them.

// asUnits runs a command on a unit or on all units, if it is meant so.
func asUnits(ctx context.Context, c *command.Call, cmd *command.Command, args []string) (code int, ok bool) {
	if plainFolder(c) || !cmd.Units.Has(command.InUnit) {
		return 0, false
	}
	f, rest, err := takeUnitFlags(args, c.Env)
	many := err == nil && f.many()
	if f == nil {
		f = &unitFlags{}
	}
	workIn(c, f)
	if !many && !isUnit(c, &f.selection) {
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
func runUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitFlags, args []string) (code int, us *unitSession) {
	if f.report == "" && f.reportSchema == "" {
		return unitTurn(ctx, c, cmd, f, args)
	}
	res := &estate.Result{Unit: &estate.Unit{Unit: &unit.Unit{Dir: c.Dir}, Name: "."}, Status: estate.Succeeded, Started: c.Now()}
	told := *f
	told.report, told.reportSchema = reportPath(c, f.report), reportPath(c, f.reportSchema)
	res.Code, us = unitTurn(ctx, c, cmd, f, args)
	res.Ended = c.Now()
	r := &estateRun{Call: c, f: &told, name: strings.Fields(cmd.Name)[0], args: args}
	if us != nil {
		r.estate, res.Diags, res.Set = us.estate, us.failed, c.Report.Set
		res.Reason, res.Cause = us.reason, us.cause
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
func unitTurn(ctx context.Context, c *command.Call, cmd *command.Command, f *unitFlags, args []string) (int, *unitSession) {
	if f.html != "" {
		return c.Report.UsageError(cmd.Name, "Failed to parse command-line flags", noPage().Error()), nil
	}
	for name, dir := range map[string]string{"--out-dir": f.outDir, "--json-out-dir": f.jsonOutDir} {
		if dir != "" {
			f.idle = append(f.idle, name+": it is about runs over several units; -out saves the plan of one")
		}
	}
	slices.Sort(f.idle)
	o, ds := estateOptions(c, f, strings.Fields(cmd.Name)[0], args, nil)
	if ds.HasErrors() {
		return c.Fail(ds), nil
	}
	if more := unchosen(ctx, c, o, &f.selection); more.HasErrors() {
		return c.Fail(more), nil
	}
	e, u, more := estate.OpenUnit(ctx, o, unitPath(c, f), f.module)
	if ds = append(ds, more...); ds.HasErrors() {
		return failWith(c, e, ds), nil
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
			return failWith(c, e, append(more, diag.Errorf(nil, "Unit protected from destruction", "The unit has prevent_destroy = true, so it cannot be destroyed.")...)), nil
		}
		yes, more := mayDestroy(ctx, c, f)
		if c.Report.Tell(more); !yes {
			return min(len(more.Errors()), 1), nil
		}
	}
	if more := bareIncludes(ctx, e, &f.flagUse, u); more.HasErrors() {
		return failWith(c, e, more), nil
	}
	us := &unitSession{estate: e}
	if cmd.Units.Has(command.Uninitialized | command.OnlyReads) {
		us.single, more = e.Look(ctx, u)
	} else {
		us.single, more = e.Single(ctx, u, estate.Observer{
			Log:    func(_ *estate.Unit, line string) { hookLine(c, cmd.Name, args, line) },
			LogErr: func(_ *estate.Unit, line string) { fmt.Fprintln(c.Stderr, line) },
		})
	}
	if ds = append(ds, more...); ds.HasErrors() {
		return failWith(c, e, ds), nil
	}
	if !f.noDeprecation {
		ds = append(ds, e.Deprecated()...)
	}
	if len(ds) > 0 && c.Report.Human != nil {
		_ = c.Report.Printer(e.Sources()).Print(c.Stderr, c.Report.Filter(ds))
	}
	us.dir = us.single.Dir()
	return inUnit(ctx, c, cmd, f, args, us), us
}

// unitSession is the unit that a session works on.
type unitSession struct {
	estate *estate.Estate
	single *estate.Single
	dir    string

	mu     sync.Mutex
	failed diag.List // the errors that the command told

	reason, cause string // what the unit's errors block did, in the words of reports
}

// note keeps errors, for hooks and errors blocks that look at them.
func (us *unitSession) note(ds diag.List) {
	if us != nil && ds.HasErrors() {
		us.mu.Lock()
		defer us.mu.Unlock()
		us.failed = append(us.failed, ds.Errors()...)
	}
}

// tried runs a command, again as the unit's errors block says.
func tried(ctx context.Context, c *command.Call, us *unitSession, run func() int) (code int) {
	label := ""
	for try := 1; ; try++ {
		us.failed = nil
		if code = run(); code == 0 || code == 2 {
			if try > 1 {
				us.reason, us.cause = "retry succeeded", label
			}
			return code
		}
		v, ds := us.single.Decide(ctx, us.failed, try)
		switch {
		case ds.HasErrors():
			c.Report.TellWith(us.estate.Sources(), ds)
			return code
		case v.Ignore != nil:
			c.Report.Tell(diag.Warnf(nil, "Failure ignored", "The command failed, which the ignore block %q of the unit takes for success. %s", v.Ignore.Name, v.Ignore.Message))
			us.reason, us.cause = "error ignored", v.Ignore.Name
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
func inUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitFlags, args []string, us *unitSession) int {
	e := us.estate
	extra, env := us.single.Extra()
	c.Work(c.System.In(us.dir))
	c.Launch, c.Unit, c.Report.Note = us.dir, us.surroundings(c), us.note
	for _, name := range us.single.Secret() {
		c.Report.Set.Conceal(name)
	}
	c.Env = c.Env.With(env...)
	if cmd.Name == "init" {
		for _, a := range us.single.BackendConfig() {
			extra = append(extra, "-backend-config="+a)
		}
	}
	if cmd.Name == "init" || !cmd.Units.Has(command.Uninitialized) {
		if code, ds := us.single.PreHooks(ctx); ds.HasErrors() {
			c.Report.TellWith(e.Sources(), ds)
			return max(code, 1)
		}
		if ds := us.single.CheckBackend(); ds.HasErrors() {
			return failWith(c, e, ds)
		}
	}
	if !f.noAutoInit && !cmd.Units.Has(command.Uninitialized) {
		if ds := autoInit(ctx, c, us); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	if cmd.Units.Has(command.NeedsInputs) {
		if ds := us.checkInputs(ctx, c); ds.HasErrors() {
			return failWith(c, e, ds)
		}
	}
	c.Command = cmd
	if us.single.Files() != nil { // nothing runs around a command that only looks
		return c.Do(ctx, cmd, append(slices.Clone(extra), args...))
	}
	return tried(ctx, c, us, func() int {
		return hooked(ctx, c, us, func() int {
			return phase(ctx, c, cmd.Name, us.dir, func(ctx context.Context) int { return c.Do(ctx, cmd, append(slices.Clone(extra), args...)) })
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
func hooked(ctx context.Context, c *command.Call, us *unitSession, run func() int) int {
	e := us.estate
	code, ds := us.single.Hooks(ctx, false, nil)
	if c.Report.TellWith(e.Sources(), ds); ds.HasErrors() {
		us.note(ds)
		code = max(code, 1)
	} else if code = run(); code != 0 && code != 2 && len(us.failed) == 0 {
		us.note(diag.Errorf(nil, "Command failed", "The command %s ended with the status %d.", c.Command.Name, code))
	}
	after, ds := us.single.Hooks(ctx, true, us.failed)
	ds = append(ds, us.single.KeepLock()...)
	if c.Report.TellWith(e.Sources(), ds); ds.HasErrors() {
		us.note(ds)
		return max(after, code, 1)
	}
	return code
}

// autoInit initializes the working folder where something that the command needs
// is missing.
func autoInit(ctx context.Context, c *command.Call, us *unitSession) diag.List {
	quiet := c.Below(us.dir)
	quiet.Unit = us.surroundings(quiet)
	p, ds := load(ctx, quiet, loadOptions{partial: true})
	if p != nil {
		_, more := p.backend(ctx)
		if !more.HasErrors() {
			more = p.selectProviders(ctx)
		}
		p.close()
		if !more.HasErrors() {
			return nil
		}
	} else if !slices.ContainsFunc(ds, module.NeedsInstall) {
		return nil // the command tells it
	}
	return us.single.Install(ctx)
}

// surroundings are what the unit adds to the folder that a call works in.
func (us *unitSession) surroundings(c *command.Call) *command.Surroundings {
	out := surroundings(c, us.single.Values, us.estate.Sources(), func() sys.Env { return us.single.Programs(c.Report.Context) })
	out.Files = us.single.Files()
	return out
}

// surroundings are what a unit adds to the folder that a call works in: its inputs, which
// stand in sources, and the environment of its programs.
func surroundings(c *command.Call, inputs func(root *config.Module) (map[string]engine.InputValue, diag.List), sources *source.Set, programs func() sys.Env) *command.Surroundings {
	return &command.Surroundings{Programs: programs, Values: func(_ context.Context, values map[string]engine.InputValue, root *config.Module) diag.List {
		given, ds := inputs(root)
		addInputs(values, given, ds, sources, c.Report.Set)
		return ds
	}}
}

// checkInputs computes the unit's inputs, so that what is wrong with them is told
// before anything runs.
func (us *unitSession) checkInputs(ctx context.Context, c *command.Call) diag.List {
	root, ds := root(c)
	if root == nil || ds.HasErrors() {
		return nil // the command tells it
	}
	_, ds = us.single.Values(root)
	return ds
}

// addInputs adds a unit's inputs to values that were given by other ways. The files
// that they, and messages about them, stand in join a set.
func addInputs(values, given map[string]engine.InputValue, ds diag.List, from, into *source.Set) {
	for name := range maps.Keys(given) {
		if _, ok := values[name]; !ok {
			values[name] = given[name]
		}
	}
	known := func(at *source.Range) {
		if at == nil {
			return
		}
		if f := from.File(at.Filename); f != nil {
			into.Add(f)
		}
	}
	for _, m := range ds {
		known(m.At)
	}
	for _, in := range given {
		known(in.At)
	}
}
