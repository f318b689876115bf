package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/estate"
)

// aboutOne are commands about one state or one person at a terminal.
var aboutOne = []string{"import", "taint", "untaint", "console", "force-unlock"}

// overUnits runs a command over units: name, and for those of two words what
// follows it.
func overUnits(ctx context.Context, c *command.Call, name string, f *unitflags.Flags, args []string) int {
	if f.Module != "" {
		f.Idle = append(f.Idle, "--module: --all takes all modules; --filter chooses among them")
	}
	cmd, rest, found := c.Table.Find(append(strings.Fields(name), args...))
	switch {
	case found && cmd.Units.Has(command.OverEstate):
		return runAll(ctx, c, name, f, args)
	case found && (cmd.Units.Has(command.OneUnit) || !cmd.Units.Has(command.InUnit) && !cmd.Units.Has(command.EachFolder)), slices.Contains(aboutOne, name):
		return c.Fail(diag.Errorf(nil, "Command is about one unit", "%q cannot be run with --all: it is about one unit. Run it in the unit's own folder.", name))
	case !found:
		return c.Unknown(append([]string{name}, args...))
	}
	o, ds := units.Options(c, f, strings.Fields(cmd.Name)[0], rest, nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	o.Discovery.Generate, o.Discovery.Whole = !f.NoStackGenerate, true
	e, more := units.Open(ctx, c, o)
	defer e.Close(ctx)
	r := &estateRun{Call: c, f: f, name: name, args: args, estate: e}
	told := new(report.Heard)
	c.Report.Heard = told
	wrong, ok := r.checked(ctx, cmd, slices.Concat(ds, more, e.Found.Ungenerated))
	if !ok {
		return r.failEstate(e, wrong)
	}
	units.Beside(c, e, ds)
	if dir := e.Found.WorktreeDir(); dir != "" {
		return c.Fail(diag.Errorf(nil, "Commit not checked out", "%q runs in the folders of units, and the filters are about a commit that is not checked out. Check it out first, or compare with HEAD.", name))
	}
	units.Beside(c, e, units.Deprecated(c, e, f, cmd.Units.Has(command.OnlyReads)))
	rules := estate.Queue{FailFast: f.FailFast, IgnoreErrors: f.IgnoreErrors, IgnoreOrder: f.IgnoreOrder}
	results := e.Each(ctx, rules, func(res *estate.Result) {
		if runOne(ctx, c, cmd, res, f, rest); res.Code != 0 {
			res.Status, res.Reason = estate.Failed, "run error"
			res.Cause = fmt.Sprintf("the command ended with the status %d", res.Code)
		}
	}, func(res *estate.Result) {
		if res.Blocker.Name != "" {
			fmt.Fprintf(c.Stderr, "[%s] not run, since a unit that it needs failed\n", res.Unit.Name)
		}
	})
	afterwards(c, e, wrong, told)
	return r.written(results)
}

// runOne runs a command on one unit of several. Which one it is goes to Stderr, so
// that what the command prints stays what it prints alone.
func runOne(ctx context.Context, c *command.Call, cmd *command.Command, res *estate.Result, f *unitflags.Flags, args []string) {
	u := res.Unit
	if _, err := os.Stat(u.Dir); err != nil {
		res.Diags = diag.Errorf(nil, "Unit not found", "%s.", err)
		res.Code = c.Fail(res.Diags)
		return
	}
	fmt.Fprintf(c.Stderr, "[%s]\n", u.Name)
	n := c.Below(u.Dir)
	n.Command, n.Stdout = cmd, unitLines{n.Stdout, u.Name}
	n.Report.Out = n.Stdout
	n.Report.Open()
	if cmd.Units.Has(command.EachFolder) {
		res.Code = n.Do(ctx, cmd, slices.Clone(args))
		return
	}
	one := *f
	one.Report, one.ReportSchema, one.OutDir, one.JSONOutDir = "", "", "", ""
	one.NoDeprecation, one.Idle, one.Experiments = true, nil, nil // told already
	module := ""
	if u.Module != "" {
		module = filepath.ToSlash(strings.TrimPrefix(u.ID, u.Dir+string(filepath.Separator)))
	}
	one.Selection = unitflags.Selection{Config: u.Path, Module: module, Features: f.Features, Strict: f.Strict}
	var of *estate.Result
	if res.Code, of = runUnit(ctx, n, cmd, &one, slices.Clone(args)); of != nil {
		res.Diags, res.Set = of.Diags.Errors(), n.Report.Set
	}
}
