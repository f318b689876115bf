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
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
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

// onUnit are the commands that run on a unit where there is one.
var onUnit = []string{
	"init", "plan", "apply", "destroy", "output", "validate", "show", "refresh", "workspace list", "workspace new",
	"workspace select", "workspace show", "workspace delete", "state list", "state show", "state mv", "state rm", "state pull",
	"state push", "import", "taint", "untaint", "force-unlock", "console", "providers", "graph", "test", "get",
	"explain", "config files", "config show",
}

// noInit are the commands that do not need an initialized folder.
var noInit = []string{"init", "get", "workspace show", "explain", "config files", "config show"}

// needInputs are the commands that compute with the inputs of a unit.
var needInputs = []string{"plan", "apply", "destroy", "refresh", "import", "console"}

// asUnits runs a command on a unit or on all units, if it is meant so.
func (s *session) asUnits(ctx context.Context, cmd command, args []string) (code int, ok bool) {
	if s.plainFolder() || !slices.Contains(onUnit, cmd.name) {
		return 0, false
	}
	f, rest, err := takeUnitFlags(args, s.Env)
	many := err == nil && f.many()
	if f == nil {
		f = &unitFlags{}
	}
	if f.working != "" {
		s.System = s.System.In(f.working)
	}
	if !many && !s.isUnit(&f.selection) {
		return 0, false
	}
	if err != nil {
		return s.usageError(cmd.name, "Failed to parse command-line flags", err.Error()), true
	}
	if cmd.name == "explain" && !many {
		return s.explainUnit(ctx, f, rest), true
	}
	if many {
		return s.overUnits(ctx, cmd.name, f, rest), true
	}
	if len(rest) > 0 && s.isUnitPlan(rest[len(rest)-1]) {
		switch cmd.name {
		case "apply":
			return s.runAll(ctx, cmd.name, f, rest), true
		case "show":
			return cmd.run(ctx, s, rest), true
		}
	}
	return s.runUnit(ctx, cmd, f, rest), true
}

// runUnit runs a command on the unit in the working folder, and reports it.
func (s *session) runUnit(ctx context.Context, cmd command, f *unitFlags, args []string) int {
	if f.report == "" && f.reportSchema == "" {
		return s.unitTurn(ctx, cmd, f, args)
	}
	res := &estate.Result{Unit: &estate.Unit{Unit: &unit.Unit{Dir: s.Dir}, Name: "."}, Status: estate.Succeeded, Started: s.Now()}
	told := *f
	told.report, told.reportSchema = s.reportPath(f.report), s.reportPath(f.reportSchema)
	res.Code = s.unitTurn(ctx, cmd, f, args)
	res.Ended = s.Now()
	r := &estateRun{session: s, f: &told, name: strings.Fields(cmd.name)[0], args: args}
	if s.unit != nil {
		r.estate, res.Diags, res.Set = s.unit.estate, s.unit.failed, s.set
		res.Reason, res.Cause = s.unit.reason, s.unit.cause
	}
	if res.Code != 0 && res.Code != 2 {
		res.Status, res.Reason = estate.Failed, "run error"
		res.Cause = fmt.Sprintf("the command ended with the status %d", res.Code)
	}
	return r.written([]*estate.Result{res})
}

// reportPath is the path of a report as it is before the command changes the folder.
func (s *session) reportPath(name string) string {
	if name == "" {
		return ""
	}
	return s.Path(name)
}

// unitTurn runs a command on the unit in the working folder.
func (s *session) unitTurn(ctx context.Context, cmd command, f *unitFlags, args []string) int {
	if f.html != "" {
		return s.usageError(cmd.name, "Failed to parse command-line flags", noPage().Error())
	}
	for name, dir := range map[string]string{"--out-dir": f.outDir, "--json-out-dir": f.jsonOutDir} {
		if dir != "" {
			f.idle = append(f.idle, name+": it is about runs over several units; -out saves the plan of one")
		}
	}
	slices.Sort(f.idle)
	o, ds := s.estateOptions(f, strings.Fields(cmd.name)[0], args, nil)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	if more := s.unchosen(ctx, o, &f.selection); more.HasErrors() {
		return s.fail(more)
	}
	e, u, more := estate.OpenUnit(ctx, o, s.unitPath(f), f.module)
	if ds = append(ds, more...); ds.HasErrors() {
		return s.failWith(e, ds)
	}
	if why, more := e.Skipped(ctx, u); why != "" || more.HasErrors() {
		s.tellWith(e.Sources(), more)
		if more.HasErrors() {
			return 1
		}
		s.say("Nothing is run: " + why + ".\n")
		return 0
	}
	if destroys(cmd.name, args) {
		if yes, more := e.Protected(ctx, u); yes || more.HasErrors() {
			return s.failWith(e, append(more, diag.Errorf(nil, "Unit protected from destruction", "The unit has prevent_destroy = true, so it cannot be destroyed.")...))
		}
		yes, more := s.mayDestroy(ctx, f)
		if s.tell(more); !yes {
			return min(len(more.Errors()), 1)
		}
	}
	if more := bareIncludes(ctx, e, &f.flagUse, u); more.HasErrors() {
		return s.failWith(e, more)
	}
	dir, more := e.Ready(ctx, u)
	if ds = append(ds, more...); ds.HasErrors() {
		return s.failWith(e, ds)
	}
	if !f.noDeprecation {
		ds = append(ds, e.Deprecated()...)
	}
	if len(ds) > 0 && s.human != nil {
		_ = s.printer(e.Sources()).Print(s.Stderr, s.filter(ds))
	}
	return s.inUnit(ctx, cmd, f, args, &unitSession{estate: e, unit: u, dir: dir})
}

// unitSession is the unit that a session works on.
type unitSession struct {
	estate *estate.Estate
	unit   *estate.Unit
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
func (s *session) tried(ctx context.Context, us *unitSession, run func() int) (code int) {
	retry := ""
	for try := 1; ; try++ {
		us.failed = nil
		if code = run(); code == 0 || code == 2 {
			if try > 1 {
				us.reason, us.cause = "retry succeeded", retry
			}
			return code
		}
		v, ds := us.estate.Judge(ctx, us.unit, us.failed, try)
		switch {
		case ds.HasErrors():
			s.tellWith(us.estate.Sources(), ds)
			return code
		case v.Ignored != "":
			s.tell(diag.Warnf(nil, "Failure ignored", "The command failed, which the ignore block %q of the unit takes for success. %s", v.Ignored, v.Message))
			us.reason, us.cause = "error ignored", v.Ignored
			return 0
		case !v.Again || ctx.Err() != nil:
			return code
		}
		retry = v.Retry
		s.say(fmt.Sprintf("\nThe command is tried again in %s, since the unit says so of this error.\n", v.Sleep))
		if !us.estate.Pause(ctx, nil, v.Sleep) {
			return code
		}
	}
}

func destroys(name string, args []string) bool {
	return name == "destroy" || name == "apply" && slices.ContainsFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "destroy" })
}

// inUnit runs the command in the unit's working folder, with what runs around it.
func (s *session) inUnit(ctx context.Context, cmd command, f *unitFlags, args []string, us *unitSession) int {
	e, u := us.estate, us.unit
	extra, env := e.Extra(u, strings.Fields(cmd.name)[0])
	s.System = s.System.In(us.dir)
	s.launch, s.unit = us.dir, us
	for _, name := range e.Secret(u) {
		s.set.Conceal(name)
	}
	s.programs = func() sys.Env { return e.Programs(ctx, u) }
	s.Env = s.Env.With(env...)
	if cmd.name == "init" {
		extra = append(extra, e.BackendConfig(u)...)
	}
	log := estate.Observer{
		Log:    func(_ *estate.Unit, line string) { s.hookLine(cmd.name, args, line) },
		LogErr: func(_ *estate.Unit, line string) { fmt.Fprintln(s.Stderr, line) },
	}
	if cmd.name == "init" || !slices.Contains(noInit, cmd.name) {
		if code, ds := e.EarlyHooks(ctx, u, log); ds.HasErrors() {
			s.tellWith(e.Sources(), ds)
			return max(code, 1)
		}
		if ds := e.CheckBackend(u); ds.HasErrors() {
			return s.failWith(e, ds)
		}
	}
	if !f.noAutoInit && !slices.Contains(noInit, cmd.name) {
		if ds := s.autoInit(ctx, us); ds.HasErrors() {
			return s.fail(ds)
		}
	}
	if slices.Contains(needInputs, cmd.name) {
		if ds := s.checkInputs(ctx); ds.HasErrors() {
			return s.failWith(e, ds)
		}
	}
	s.command = cmd.name
	return s.tried(ctx, us, func() int {
		return s.hooked(ctx, us, log, func() int {
			return s.phase(ctx, cmd.name, us.dir, func(ctx context.Context) int { return cmd.run(ctx, s, append(slices.Clone(extra), args...)) })
		})
	})
}

// hookLine tells a line of a hook: as an event where the command will write events or
// writes them already, so that nothing else stands among them.
func (s *session) hookLine(command string, args []string, line string) {
	telemetry.Log(s.ctx, "stdout", line, "")
	streams := []string{"plan", "apply", "destroy", "refresh"}
	asks := func(a string) bool { return a == "-json" || a == "--json" }
	if s.stream == nil && slices.Contains(streams, command) && slices.ContainsFunc(args, asks) {
		(&view.Stream{Out: s.Stdout, Now: s.Now}).Log(line)
		return
	}
	s.say(line + "\n")
}

// hooked runs a command with the hooks before and after it. Its errors are noted.
func (s *session) hooked(ctx context.Context, us *unitSession, log estate.Observer, run func() int) int {
	e, u := us.estate, us.unit
	code, ds := e.Hooks(ctx, u, false, nil, log)
	if s.tellWith(e.Sources(), ds); ds.HasErrors() {
		us.note(ds)
		code = max(code, 1)
	} else if code = run(); code != 0 && code != 2 && len(us.failed) == 0 {
		us.note(diag.Errorf(nil, "Command failed", "The command %s ended with the status %d.", s.command, code))
	}
	after, ds := e.Hooks(ctx, u, true, us.failed, log)
	ds = append(ds, e.KeepLock(u)...)
	if s.tellWith(e.Sources(), ds); ds.HasErrors() {
		us.note(ds)
		return max(after, code, 1)
	}
	return code
}

// autoInit initializes the working folder where something that the command needs
// is missing.
func (s *session) autoInit(ctx context.Context, us *unitSession) diag.List {
	quiet := s.below(us.dir)
	quiet.unit = us
	p, ds := quiet.load(ctx, loadOptions{partial: true})
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
	s.phase(ctx, "init", us.dir, func(ctx context.Context) int {
		ds = s.initUnit(ctx, us.estate, us.unit, us.dir)
		return min(len(ds.Errors()), 1)
	})
	if ds.HasErrors() {
		return ds
	}
	return us.estate.KeepLock(us.unit)
}

func (us *unitSession) backendConfig() listFlag {
	var out listFlag
	for _, a := range us.estate.BackendConfig(us.unit) {
		out = append(out, strings.TrimPrefix(a, "-backend-config="))
	}
	return out
}

// checkInputs computes the unit's inputs, so that what is wrong with them is told
// before anything runs.
func (s *session) checkInputs(ctx context.Context) diag.List {
	root, ds := s.root()
	if root == nil || ds.HasErrors() {
		return nil // the command tells it
	}
	_, ds = s.unit.estate.Values(ctx, s.unit.unit, root)
	return ds
}

// inputs adds the unit's inputs to values that were given by other ways.
func (s *session) inputs(ctx context.Context, values map[string]engine.InputValue, root *config.Module) diag.List {
	if s.unit == nil {
		return nil
	}
	given, ds := s.unit.estate.Values(ctx, s.unit.unit, root)
	for name := range maps.Keys(given) {
		if _, ok := values[name]; !ok {
			values[name] = given[name]
		}
	}
	set := s.unit.estate.Sources()
	known := func(at *source.Range) { // the places lie in files that the session has not read
		if at == nil {
			return
		}
		if f := set.File(at.Filename); f != nil {
			s.set.Add(f)
		}
	}
	for _, m := range ds {
		known(m.At)
	}
	for _, in := range given {
		known(in.At)
	}
	return ds
}
