package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/explain"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # A command on one unit
//
// It is a run over one unit (package estate/run). The command runs in the unit's working
// directory and prints the same as in any other directory. So its state, lock, plan files and
// workspaces are at the same paths as with Terragrunt. The unit's inputs become values of
// variables, with the lowest precedence.

// AsUnits runs a command on the unit in the working directory, or on several units. ok is
// false if the command is not about units and must run in the directory itself.
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
		c.Report.WarnBeside(unitsBelow(c, cmd))
		return 0, false
	}
	if cmd.Name == "test" && !many && testsEstate(c) {
		return 0, false
	}
	if err != nil {
		return c.Report.UsageError(cmd.Name, "Failed to parse command-line flags", err.Error()), true
	}
	if cmd.Name == "explain" && !many {
		return explain.InUnit(ctx, c, cmd, f, rest), true
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

// testsEstate reports whether the directory contains tests of an estate. They may be in the
// directory of a unit too.
func testsEstate(c *command.Call) bool {
	files, err := filepath.Glob(filepath.Join(c.Dir, "*"+testfile.EstateSuffix))
	return err == nil && len(files) > 0
}

// unitsBelow returns a warning if the directory contains no configuration but units are below
// it: the user probably means those.
func unitsBelow(c *command.Call, cmd *command.Command) diag.List {
	if !cmd.Units.Has(command.OverEstate) || config.IsConfigDir(c.Dir, config.Options{}) {
		return nil
	}
	below, _ := discovery.Files(c.Dir)
	if len(below) == 0 {
		return nil
	}
	return diag.Warnf(diag.CodeCLIUnitsBelow, nil, "Units below this directory", "This directory holds no configuration, but there are units below it (%d): \"%s run --all %s\" runs in all of them.", len(below), view.Program, cmd.Name)
}

// runUnit runs a command on the unit in the working directory, and writes the report file. The
// result is nil if the unit did not run and no report was requested.
func runUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, args []string) (code int, res *estate.Result) {
	began := c.Now()
	e, res, code := unitTurn(ctx, c, cmd, f, args)
	if f.Report == "" && f.ReportSchema == "" {
		return code, res
	}
	if res == nil {
		res = &estate.Result{Status: estate.Succeeded, Started: began, Ended: c.Now(), Code: code}
		if code != 0 {
			res.Status, res.Reason, res.Cause = estate.Failed, "run error", fmt.Sprintf("the command ended with the status %d", code)
		}
	}
	own := *res
	own.Unit = &estate.Unit{Unit: &unit.Unit{Dir: c.Dir}, Name: "."}
	r := &estateRun{Call: c, f: f, name: strings.Fields(cmd.Name)[0], words: request.Words{Args: args}, estate: e}
	return r.written([]*estate.Result{&own}), res
}

// unitTurn runs a command on the unit in the working directory. The result is nil if the unit
// did not run.
func unitTurn(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, args []string) (e *estate.Estate, res *estate.Result, code int) {
	if f.HTML != "" {
		return nil, nil, c.Report.UsageError(cmd.Name, "Failed to parse command-line flags", planpage.NoPage().Error())
	}
	for name, dir := range map[string]string{"--out-dir": f.OutDir, "--json-out-dir": f.JSONOutDir} {
		if dir != "" {
			f.Idle = append(f.Idle, name+": it is about runs over several units; -out saves the plan of one")
		}
	}
	slices.Sort(f.Idle)
	o, ds := optionsOf(c, cmd, f, args)
	if ds.HasErrors() {
		return nil, nil, c.Fail(ds)
	}
	path, more := units.Chosen(ctx, c, o, f)
	if more.HasErrors() {
		return nil, nil, c.Fail(more)
	}
	e, u, more := units.OpenUnit(ctx, c, o, path, f.Module)
	if ds = append(ds, more...); ds.HasErrors() {
		return e, nil, units.FailWith(c, e, ds)
	}
	if why, more := e.Skipped(ctx, u); why != "" || more.HasErrors() {
		c.Report.TellFrom(e.Sources(), more)
		if more.HasErrors() {
			return e, nil, 1
		}
		sayNotRun(c, cmd, why)
		return e, nil, 0
	}
	destroy := destroys(cmd, args)
	if destroy || cmd.Name == "plan" && declared(cmd).Asks(args, "destroy") {
		if yes, more := e.Protected(ctx, u); yes || more.HasErrors() {
			return e, nil, units.FailWith(c, e, append(more, diag.Errorf(diag.CodeCLIPreventDestroy, nil, "Unit protected from destruction", "The unit has prevent_destroy = true, so it cannot be destroyed.")...))
		}
	}
	if destroy {
		yes, more := mayDestroy(ctx, c, f)
		if c.Report.Tell(more); !yes {
			return e, nil, min(len(more.Errors()), 1)
		}
	}
	if more := bareIncludes(ctx, e, &f.FlagUse, u); more.HasErrors() {
		return e, nil, units.FailWith(c, e, more)
	}
	ds = append(ds, units.Deprecated(c, e, f, cmd.Units.Has(command.OnlyReads))...)
	w := &unitView{Call: c, estate: e}
	w.messages(ds)
	on := &onUnits{call: c, cmd: cmd, f: f, args: args, view: func(*estate.Unit) *unitView { return w }}
	ro := on.options()
	if destroy {
		ro.Plan.Mode = plan.Destroy
	}
	res = e.Run(ctx, ro)[0]
	if destroy && !w.ran && res.Status == estate.Succeeded {
		c.Report.Say("Nothing is run: the state of the unit holds no objects.\n")
	}
	return e, res, res.Code
}

// onUnits is a command that runs in the directories of units. Each unit has a view. It observes
// the run.
type onUnits struct {
	estate.Silent
	call *command.Call
	cmd  *command.Command
	f    *unitflags.Flags
	args []string
	view func(*estate.Unit) *unitView // nil for a unit that does not run
}

// options returns the options of the run.
func (o *onUnits) options() estate.RunOptions {
	return estate.RunOptions{
		Command: &estate.Command{
			Uninitialized: o.cmd.Units.Has(command.Uninitialized), Look: looks(o.call, o.cmd),
			Set:         func(u *estate.Unit) *source.Set { return o.view(u).Report.Set },
			NeedsInputs: o.cmd.Units.Has(command.NeedsInputs), ChecksInputs: o.cmd.Units.Has(command.Examines), Fits: o.fits,
			Do: func(ctx context.Context, u *estate.Unit, s *estate.Site) (code int, reported diag.List) {
				return o.view(u).do(ctx, s, o.cmd, o.args)
			},
		},
		Observe: o,
	}
}

// Log prints a line of a hook.
func (o *onUnits) Log(u *estate.Unit, line string) { hookLine(o.view(u).Call, o.cmd, o.args, line) }

func (o *onUnits) LogErr(u *estate.Unit, line string) { fmt.Fprintln(o.view(u).Stderr, line) }

func (o *onUnits) Messages(u *estate.Unit, ds diag.List) { o.view(u).messages(ds) }

func (o *onUnits) Again(u *estate.Unit, d retry.Decision, _ diag.List) {
	o.view(u).Report.Say(fmt.Sprintf("\nThe command is tried again in %s, as the %s says.\n", d.Sleep, d.Rule()))
}

func (o *onUnits) Ended(res *estate.Result) {
	if res.Reason == "error ignored" {
		o.view(res.Unit).Report.Tell(diag.Warnf(diag.CodeCLIFailureIgnored, nil, "Failure ignored", "The command failed, which the ignore block %q of the unit takes for success. %s", res.Cause, res.Message))
	}
}

// looks reports whether a command only reads the unit. Such a command does not create the
// working directory and runs no hooks. If programs are forbidden, all commands that change
// nothing are treated in this way.
func looks(c *command.Call, cmd *command.Command) bool {
	if c.NoPrograms && cmd.Units.Has(command.Examines) {
		return true
	}
	return cmd.Units.Has(command.OnlyReads) && (cmd.Units.Has(command.Uninitialized) || c.NoPrograms)
}

// fits reports whether the working directory was initialized with the backend in its
// configuration.
func (o *onUnits) fits(ctx context.Context, u *estate.Unit, s *estate.Site, e *engine.Engine, values map[string]engine.InputValue) bool {
	w := o.view(u)
	c := units.CallIn(w.Call, w.estate, s)
	_, ds := workdir.Of(c.Directory, e, values).Backend(ctx)
	return !ds.HasErrors()
}

// optionsOf returns the options for opening the units that a command runs in.
func optionsOf(c *command.Call, cmd *command.Command, f *unitflags.Flags, args []string) (estate.Options, diag.List) {
	name := strings.Fields(cmd.Name)[0]
	open := func() (estate.Options, diag.List) { return units.Options(c, f, name, args, nil) }
	if looks(c, cmd) && name != "get" {
		open = func() (estate.Options, diag.List) { return units.LookOptions(c, f, name, args) }
	}
	o, ds := open()
	units.CommandVars(c, &o, cmd.Name, args)
	if name == "drift" { // drift is a refresh-only plan
		o.Request.Command, o.Request.Args = "plan", append([]string{"plan", "-refresh-only"}, o.Request.Args[1:]...)
	}
	return o, ds
}

func destroys(cmd *command.Command, args []string) bool {
	return cmd.Name == "destroy" || cmd.Name == "apply" && declared(cmd).Asks(args, "destroy")
}

// unitView prints a run over one unit in the same form as the command in a plain directory.
type unitView struct {
	*command.Call // in the directory in which the program was started
	estate        *estate.Estate

	ran      bool // the command began
	mu       sync.Mutex
	reported diag.List // errors of the command
}

// do runs the command in the working directory of the unit.
func (w *unitView) do(ctx context.Context, s *estate.Site, cmd *command.Command, args []string) (code int, reported diag.List) {
	n := units.CallIn(w.Call, w.estate, s)
	n.Command, w.reported, w.ran = cmd, nil, true
	if looks(w.Call, cmd) {
		n.View = s.Files()
	}
	n.Report.Note = w.note
	defer func() { n.Report.Note = nil }()
	words := s.Words()
	if cmd.Name == "init" {
		for _, a := range s.Backend() {
			words = append(words, "-backend-config="+a)
		}
	}
	own := command.OfEnvironment(w.Call.Env, cmd.Name, args)
	code = units.Phase(ctx, n, cmd.Name, s.Dir(), func(ctx context.Context) int {
		return n.Do(ctx, cmd, slices.Concat(args[:own], words, args[own:]))
	})
	return code, w.reported
}

// note stores the errors that the command reports, for hooks and errors blocks.
func (w *unitView) note(ds diag.List) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reported = append(w.reported, ds.Errors()...)
}

// messages reports messages from outside the command. Errors are reported like those of the
// command. Warnings are printed to Stderr, so that they are not part of the output.
func (w *unitView) messages(ds diag.List) {
	var inUnit, inModule diag.List
	for _, m := range ds {
		if m.At != nil && w.estate.Sources().File(m.At.Filename) == nil && w.Report.Set.File(m.At.Filename) != nil {
			inModule = append(inModule, m)
		} else {
			inUnit = append(inUnit, m)
		}
	}
	if len(inModule) > 0 {
		w.Report.Tell(inModule)
	}
	switch {
	case inUnit.HasErrors():
		w.Report.TellFrom(w.estate.Sources(), inUnit)
	case len(inUnit) > 0 && w.Report.Human != nil:
		_ = w.Report.Printer(w.estate.Sources()).Print(w.Stderr, w.Report.Filter(inUnit))
	}
}

// hookLine prints a line of a hook. If the command writes events, the line is an event too, so
// that the output contains nothing else.
func hookLine(c *command.Call, cmd *command.Command, args []string, line string) {
	line = c.Report.Redactor.Text(line)
	telemetry.Log(c.Report.Context, "stdout", line, "")
	if c.Report.Stream == nil && writesEvents(cmd) && declared(cmd).Asks(args, "json") {
		(&view.Stream{Out: c.Stdout, Now: c.Now, Unit: c.Report.Unit}).Log(line)
		return
	}
	c.Report.Say(line + "\n")
}

// writesEvents reports whether a command writes events with -json. Other commands write one
// document.
func writesEvents(cmd *command.Command) bool {
	return slices.Contains([]string{"plan", "apply", "destroy", "refresh"}, cmd.Name)
}

// declared returns the flags of a command, for parsing its words.
func declared(cmd *command.Command) flag.Flags {
	fs, _ := cmd.Prepare()
	return fs
}

// sayNotRun prints that a command does not run in a unit, and why. It prints to Stderr if the
// output of the command is for other programs, such as that of `output -json`.
func sayNotRun(c *command.Call, cmd *command.Command, why string) {
	text := "Nothing is run: " + why + ".\n"
	if cmd.Units.Has(command.OnlyReads) {
		c.Report.Human.AboveStatus(c.Report.Redactor.Text(text))
		return
	}
	c.Report.Say(text)
}
