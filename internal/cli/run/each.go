package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/unitlog"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/request"
)

// aboutOne are commands that concern a single state or an interactive user.
var aboutOne = []string{"import", "taint", "untaint", "console"}

// overUnits runs a command over several units. For commands of two words, args begins with the
// second word of the name.
func overUnits(ctx context.Context, c *command.Call, name string, f *unitflags.Flags, args []string) int {
	if f.Module != "" {
		f.Idle = append(f.Idle, "--module: --all takes all modules; --filter chooses among them")
	}
	cmd, rest, found := c.Table.Find(append(strings.Fields(name), args...))
	over := found && cmd.Units.Has(command.OverEstate) && !inTurn(c, cmd, rest)
	if f.On != "" && (!over || cmd.Name == "output") {
		f.Idle = append(f.Idle, "--on: "+name+" runs here, with the access that this machine has")
	}
	switch {
	case found && cmd.Name == "force-unlock":
		return unlockRun(ctx, c, f, rest)
	case found && cmd.Name == "query":
		return queryAll(ctx, c, cmd, f, rest)
	case over:
		return runAll(ctx, c, name, f, args)
	case found && (cmd.Units.Has(command.OneUnit) || !cmd.Units.Has(command.InUnit) && !cmd.Units.Has(command.EachFolder)), slices.Contains(aboutOne, name):
		return c.Fail(diag.Errorf(diag.CodeCLIOneUnit, nil, "Command is about one unit", "%q cannot be run with --all: it is about one unit. Run it in the unit's own directory.", name))
	case !found:
		return c.Unknown(append([]string{name}, args...))
	}
	o, ds := optionsOf(c, cmd, f, rest)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	o.Discovery.Generate, o.Discovery.Whole = !f.NoStackGenerate, true
	e, more := units.Open(ctx, c, o)
	defer e.Close(ctx)
	r := &estateRun{Call: c, f: f, name: name, words: request.Words{Args: args}, estate: e}
	reported := new(report.Reported)
	c.Report.Reported = reported
	wrong, ok := r.checked(ctx, cmd, slices.Concat(ds, more, e.Found.Ungenerated))
	if !ok {
		return r.failEstate(e, wrong)
	}
	units.Beside(c, e, ds)
	if dir := e.Found.WorktreeDir(); dir != "" {
		return c.Fail(diag.Errorf(diag.CodeCLICommitNotCheckedOut, nil, "Commit not checked out", "%q runs in the directories of units, and the filters are about a commit that is not checked out. Check it out first, or compare with HEAD.", name))
	}
	units.Beside(c, e, units.Deprecated(c, e, f, cmd.Units.Has(command.OnlyReads)))
	log, err := unitlog.New(f.Log(), c.Dir, c.Now)
	if err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	rules := estate.Queue{FailFast: f.FailFast, IgnoreErrors: f.IgnoreErrors, IgnoreOrder: f.IgnoreOrder}
	blocked := func(res *estate.Result) {
		if res.Blocker.Name != "" {
			_, _ = io.WriteString(c.Stderr, log.Lines("error", res.Unit.Name, "not run, since a unit that it needs failed"))
		}
	}
	var results []*estate.Result
	if cmd.Units.Has(command.EachFolder) {
		results = e.Each(ctx, rules, func(res *estate.Result) {
			n, ds := oneOf(c, cmd, log, res.Unit)
			if res.Diags = ds; ds.HasErrors() {
				res.Code = c.Fail(ds)
			} else {
				res.Code = n.Do(ctx, cmd, slices.Clone(rest))
			}
			failedWith(res)
		}, blocked)
	} else {
		results = eachUnit(ctx, c, cmd, f, rest, log, e, rules, blocked)
	}
	afterwards(c, e, wrong, reported)
	return r.written(results)
}

// inTurn reports whether a command that can process many units in one run must run once for
// each unit, because of its words or because it emulates Terragrunt; see flags.Over.
// Terragrunt prints the outputs of each unit separately.
func inTurn(c *command.Call, cmd *command.Command, words []string) bool {
	over := OverOf(cmd.Name)
	switch {
	case over == nil || over.Together == nil:
		return false
	case cmd.Name == "output" && c.CalledAs() == "terragrunt":
		return true
	}
	for flag, word := range declared(cmd).Read(words) {
		if flag != nil && !slices.Contains(over.Together, flag.Name) || flag == nil && (over.Alone || strings.HasPrefix(word, "-")) {
			return true
		}
	}
	return false
}

// failedWith marks a unit as failed if the command ended with an exit status other than 0.
func failedWith(res *estate.Result) {
	if res.Code != 0 && res.Status != estate.EarlyExit {
		res.Status, res.Reason = estate.Failed, "run error"
		res.Cause = fmt.Sprintf("the command ended with the status %d", res.Code)
	}
}

// eachUnit runs a command in one unit after the other, in the same way as in a single unit.
func eachUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, args []string, log *unitlog.Log, e *estate.Estate, rules estate.Queue, blocked func(*estate.Result)) []*estate.Result {
	views := map[*estate.Unit]*unitView{}
	on := &onUnits{call: c, cmd: cmd, f: f, args: args, view: func(u *estate.Unit) *unitView { return views[u] }}
	o := on.options()
	o.Queue, o.Limits.Units = rules, 1
	o.Command.Begin = func(ctx context.Context, u *estate.Unit) (goOn bool, ds diag.List) {
		n, ds := oneOf(c, cmd, log, u)
		if views[u] = (&unitView{Call: n, estate: e}); ds.HasErrors() {
			return false, ds
		}
		switch {
		case u.Broken != nil:
			return false, u.Broken
		case u.Partial:
			return false, u.Invalid
		}
		why, ds := e.Skipped(ctx, u)
		if why != "" {
			sayNotRun(n, cmd, why)
			return false, ds
		}
		return true, append(ds, bareIncludes(ctx, e, &f.FlagUse, u)...)
	}
	o.Observe = eachObserver{on, blocked}
	return e.Run(ctx, o)
}

// eachObserver observes a command that runs in one unit after the other.
type eachObserver struct {
	*onUnits
	blocked func(*estate.Result)
}

func (x eachObserver) Ended(res *estate.Result) {
	x.onUnits.Ended(res)
	x.blocked(res)
	failedWith(res)
}

// oneOf returns a call for one of several units. It logs the name of the unit to Stderr, so
// that the output of the command on Stdout is the same as in a single unit.
func oneOf(c *command.Call, cmd *command.Command, log *unitlog.Log, u *estate.Unit) (*command.Call, diag.List) {
	n := c.Below(u.Dir)
	n.Command, n.Report.Unit = cmd, u.Name
	n.Report.Open()
	if _, err := os.Stat(u.Dir); err != nil {
		return n, diag.Errorf(diag.CodeCLIUnitNotFound, nil, "Unit not found", "%s.", err)
	}
	_, _ = io.WriteString(c.Stderr, log.Lines("info", u.Name, cmd.Name))
	return n, nil
}
