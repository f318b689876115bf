package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate"
)

// inParallel are the commands that run over an estate as a whole; others run on
// one unit after the other.
var inParallel = []string{"plan", "apply", "destroy", "validate", "init", "output"}

// oneUnit are the commands that are about one state or one person at a terminal,
// so that they make no sense over many units.
var oneUnit = []string{"import", "taint", "untaint", "console", "force-unlock"}

// overUnits runs a command over units: name, and for those of two words what
// follows it.
func (s *session) overUnits(ctx context.Context, name string, f *unitFlags, args []string) int {
	if f.module != "" {
		f.idle = append(f.idle, "--module: --all takes all modules; --filter chooses among them")
	}
	if slices.Contains(inParallel, name) {
		return s.runAll(ctx, name, f, args)
	}
	cmd, rest, found := lookup(append(strings.Fields(name), args...))
	switch {
	case slices.Contains(oneUnit, name) || found && !slices.Contains(onUnit, cmd.name):
		return s.fail(diag.Errorf(nil, "Command is about one unit", "%q cannot be run with --all: it is about one unit. Run it in the unit's own folder.", name))
	case !found:
		return s.noCommand(append([]string{name}, args...))
	}
	o, ds := s.estateOptions(f, strings.Fields(cmd.name)[0], rest, nil)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	o.Look.Generate, o.Look.Whole = !f.noStackGenerate, true
	e, more := s.open(ctx, o)
	defer e.Close(ctx)
	r := &estateRun{session: s, f: f, name: name, args: args, estate: e}
	told := new(heard)
	s.views.heard = told
	wrong, ok := r.checked(ctx, cmd.name, slices.Concat(ds, more, e.Ungenerated))
	if !ok {
		return r.failEstate(e, wrong)
	}
	s.beside(e, ds)
	if dir := e.Elsewhere(); dir != "" {
		return s.fail(diag.Errorf(nil, "Commit not checked out", "%q runs in the folders of units, and the filters are about a commit that is not checked out. Check it out first, or compare with HEAD.", name))
	}
	if !f.noDeprecation {
		s.beside(e, e.Deprecated())
	}
	var results []*estate.Result
	failed := map[*estate.Unit]bool{}
	for _, u := range e.Order(false) {
		res := &estate.Result{Unit: u, Status: estate.Succeeded, Started: s.Now()}
		results = append(results, res)
		need := slices.IndexFunc(u.Needs, func(n *estate.Unit) bool { return failed[n] })
		switch {
		case u.Excluded != "":
			res.LeaveOut()
		case ctx.Err() != nil:
			res.Status, res.Reason, res.Cause, res.Code = estate.EarlyExit, "run error", "the run was interrupted", 1
		case f.failFast && len(failed) > 0:
			res.Status, res.Reason, res.Code = estate.EarlyExit, "ancestor error", 1
		case !f.ignoreErrors && !f.ignoreOrder && need >= 0:
			failed[u] = true
			res.Status, res.Reason, res.Cause, res.Code = estate.EarlyExit, "ancestor error", u.Needs[need].Name, 1
			fmt.Fprintf(s.Stderr, "[%s] not run, since a unit that it needs failed\n", u.Name)
		default:
			if s.runOne(ctx, cmd, res, f, rest); res.Code != 0 {
				failed[u] = true
				res.Status, res.Reason = estate.Failed, "run error"
				res.Cause = fmt.Sprintf("the command ended with the status %d", res.Code)
			}
		}
		res.Ended = s.Now()
	}
	s.afterwards(e, wrong, told)
	slices.SortFunc(results, func(a, b *estate.Result) int { return strings.Compare(a.Unit.Name, b.Unit.Name) })
	return r.written(results)
}

// runOne runs a command on one unit of several. Which one it is goes to Stderr, so
// that what the command prints stays what it prints alone.
func (s *session) runOne(ctx context.Context, cmd command, res *estate.Result, f *unitFlags, args []string) {
	u := res.Unit
	if _, err := os.Stat(u.Dir); err != nil {
		res.Diags = diag.Errorf(nil, "Unit not found", "%s.", err)
		res.Code = s.fail(res.Diags)
		return
	}
	fmt.Fprintf(s.Stderr, "[%s]\n", u.Name)
	n := s.below(u.Dir)
	n.command, n.Stdout = cmd.name, unitLines{n.Stdout, u.Name}
	n.openViews()
	one := *f
	one.report, one.reportSchema, one.outDir, one.jsonOutDir = "", "", "", ""
	one.noDeprecation, one.idle, one.experiments = true, nil, nil // told already
	module := ""
	if u.Module != "" {
		module = filepath.ToSlash(strings.TrimPrefix(u.ID, u.Dir+string(filepath.Separator)))
	}
	one.selection = selection{config: u.Path, module: module, features: f.features, strict: f.strict}
	res.Code = n.runUnit(ctx, cmd, &one, slices.Clone(args))
	if n.unit != nil {
		res.Diags, res.Set = n.unit.failed, n.set
	}
}
