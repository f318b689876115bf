// Package estate works on many units in one process. It finds the units below a directory, sorts
// them, and plans, applies, checks and reads them. Outputs, known or unknown, pass between units
// in memory.
//
// It is a facade for its subpackages: discovery finds the units, check checks them without state,
// run executes commands on them in the order of schedule, and report and saved contain the
// results. Packages workcopy, hooks, inputs, credentials and states prepare single units.
//
// Main types: Options and Estate. The one rule: this package splits the options, and passes to
// each subpackage the part that it uses.
package estate

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/check"
	"github.com/terrace-iac/terrace/internal/estate/credentials"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/filter"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/moves"
	"github.com/terrace-iac/terrace/internal/estate/outputs"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// Options configures an Estate. Discovery.Root and Machine.Now are required.
type Options struct {
	// Discovery selects the units. Its Command and DownloadDir are replaced by those of Request,
	// and its Files by that of Host.
	Discovery discovery.Settings
	// Request contains the command that runs on the units, and the other data that unit files can
	// read of it.
	Request unit.Request
	Machine unit.Machine
	// At is the result of timestamp() in unit files, for the whole run: a plan and its apply must
	// use the same. Zero means the time of the call.
	At time.Time
	// Parses shares parsed unit files with the estate of another revision. It may be nil.
	Parses *syntax.Parses
	// Changed returns the text that a file has in the other revision of a comparison; see
	// unit.Env.Changed. nil means that this is not known.
	Changed func(path string) (text []byte, ok bool)
	// Redactor receives the values that messages about the units must not show. If it is nil,
	// only messages of unit files are redacted.
	Redactor    *diag.Redactor
	Who         string        // user@host, for locks
	Run         store.RunMark // the run, for locks
	Sources     workcopy.Sources
	Inputs      run.Inputs
	Skip        Skip
	Credentials credentials.Settings
	Host        run.Host
	// Checking means that the units are only checked and not run: values that need missing
	// credentials are unknown.
	Checking bool
	// UnsetUnknown makes get_env of variables that are not set unknown; see unit.Env.
	UnsetUnknown bool
	// Throwaway is a directory for temporary data of the process. If it is set, the states of all
	// units are kept in memory. "" means that real states are used.
	Throwaway string
	// Tolerant means that missing outputs are no error, as rendering requires.
	Tolerant bool
	// UnknownValues makes values.* unknown where there is no values file; see unit.Env.
	UnknownValues bool
	// Rendering additionally means that any output of a dependency without outputs is an error,
	// so that try() catches it.
	Rendering bool
	// ValuesElsewhere means that flags may set variables, so that missing inputs are no error
	// before a run.
	ValuesElsewhere bool
	// ShareProviders lists providers whose processes units always share, and OwnProviders lists
	// those whose processes they never share. For other providers, it depends on their arguments.
	ShareProviders, OwnProviders []addr.Provider
	// Worktrees records the worktrees that are created for git filters. nil means that the estate
	// uses its own.
	Worktrees *git.Worktrees
	// Answers records git's answers about commits, or replays those of another machine. It may be
	// nil.
	Answers *git.Answers
}

// Skip selects parts of a run that are skipped.
type Skip struct {
	Hooks   bool
	Retries bool
	Outputs bool // outputs of dependencies are not read, and are unknown
}

// An Estate is a set of units and their dependencies.
type Estate struct {
	Found *discovery.Found

	o        Options
	loader   *unit.Loader
	static   *unit.Loader // evaluates with all outputs unknown, for checks before a run
	reader   *outputs.Reader
	dirs     *workcopy.Maker
	states   *states.Keeper
	runner   run.Runner // without the fields that change with each run
	changing states.Changing
	first    run.GivenWarnings
	examined check.Examined
	examiner *engine.Examiner
	invalid  map[*discovery.Unit]diag.List // errors found by Check
}

// newEstate returns an Estate without units.
func newEstate(o Options) *Estate {
	if o.Worktrees == nil {
		o.Worktrees = &git.Worktrees{}
	}
	s := o.Discovery
	s.Command, s.DownloadDir, s.Files = o.Request.Command, o.Request.DownloadDir, o.Host.Files()
	e := &Estate{Found: discovery.New(s), o: o}
	checkedOut := func(path string) string { return e.Found.Checkouts.CheckedOut(path) }
	sources := o.Sources
	sources.Alone = func(id string) bool { return e.Found.ByID(id) != nil }
	e.dirs = workcopy.NewMaker(workcopy.Settings{
		Command: o.Request.Command, DownloadDir: o.Request.DownloadDir, Sources: sources,
		RoleGiven: o.Credentials.Role.ARN != "", CheckedOut: checkedOut, Backends: o.Host.Backends, Data: selection.DataDir(o.Machine.Environ), OnDisk: o.Discovery.Overlay.Locate, Read: o.Host.Files(),
	})
	e.states = states.NewKeeper(states.Settings{Who: o.Who, Run: o.Run, Now: o.Machine.Now, Environ: o.Machine.Environ, CheckedOut: checkedOut, OwnDir: e.dirs.StateDir, Backends: o.Host.Backends, Hosts: o.Host.Program, User: o.Host.User(o.Machine.Environ), Worker: o.Host.Worker, CopiedTo: o.Host.CopiedTo, KeepSegments: o.Host.KeepSegments, Bootstrap: o.Host.Bootstrap, Throwaway: o.Throwaway})
	e.reader = &outputs.Reader{
		Found: e.Found, Loader: func() *unit.Loader { return e.loader }, Off: o.Skip.Outputs, Tolerant: o.Tolerant,
		State: e.readState,
	}
	e.runner = run.Runner{
		Command: o.Request.Command, Machine: o.Machine, Dirs: e.dirs, Credentials: credentials.New(o.Credentials, o.Machine), States: e.states,
		Changing: &e.changing, Host: o.Host, Inputs: o.Inputs, NoHooks: o.Skip.Hooks, NoRetries: o.Skip.Retries,
		ShareProviders: o.ShareProviders, OwnProviders: o.OwnProviders, Name: e.Found.Name, First: &e.first, Redactor: o.Redactor,
	}
	e.examiner = engine.NewExaminer(o.Machine.Now)
	return e
}

// open creates the loaders of unit files below a directory.
func (e *Estate) open(root string) (loader, static *unit.Loader) {
	env := e.o.UnitEnv(root)
	env.Outputs, env.Tolerant = e.reader.Get, e.o.Tolerant || e.o.Skip.Outputs
	env.Rendering = e.o.Rendering && !e.o.Skip.Outputs
	env.UnitEnviron = e.runner.Credentials.Environ()
	e.loader = unit.NewLoader(env)
	e.static = e.loader.WithOutputs(func(*demand.Task, string, source.Range) (cty.Value, bool, diag.List) {
		return cty.DynamicVal, true, nil
	})
	e.runner.Root, e.runner.Loader, e.runner.Static = root, e.loader, e.static
	return e.loader, e.static
}

// UnitEnv returns the environment in which unit files below root are evaluated, without the
// outputs of dependencies.
func (o *Options) UnitEnv(root string) unit.Env {
	machine := o.Machine
	if !o.At.IsZero() {
		machine.Now = func() time.Time { return o.At }
	}
	files := o.Host.Files()
	env := unit.Env{WorkingDir: root, Machine: machine, Request: o.Request, Checking: o.Checking, UnsetUnknown: o.UnsetUnknown, ConfigName: o.Discovery.ConfigName, UnknownValues: o.UnknownValues, ReadFile: files.Whole, Redactor: o.Redactor, Parses: o.Parses, Changed: o.Changed}
	u := o.Discovery.Overlay
	if files.Fixed() || u != nil {
		env.Stat, env.ReadDir, env.EvalSymlinks = files.Stat, files.ReadDir, files.EvalSymlinks
	}
	if u != nil {
		env.ReadFile = func(path string) ([]byte, error) { return u.ReadFile(files, path) }
		env.Stat = func(path string) (fs.FileInfo, error) { return u.Stat(files, path) }
		env.ReadDir = func(path string) ([]fs.DirEntry, error) { return u.ReadDir(files, path) }
	}
	return env
}

// stacks returns the settings for generating stacks below the root.
func (o *Options) stacks() stacks.Settings {
	env := o.UnitEnv(o.Discovery.Root)
	env.UnsetUnknown = false // values of a stack must be known, and the error names the variable
	return stacks.Settings{Env: env, SourceMap: o.Sources.Map, Fetch: o.Sources.Fetch, Whole: o.Discovery.Whole, Generated: o.Discovery.Generated, Empty: o.Discovery.Empty, Overlay: o.Discovery.Overlay, Files: o.Host.Files()}
}

func (o *Options) git() git.Repo {
	return git.Repo{Dir: o.Discovery.Root, Environ: o.Machine.Environ, Exec: o.Machine.Run, Answers: o.Answers}
}

// Commits returns git's recorded answers about the commits of filters, or nil if there are none.
func (e *Estate) Commits() *git.Record { return e.o.Answers.Record() }

// Open finds, reads and sorts the units below a directory. If it returns errors, the estate
// contains the units that could be read, and must not be run. If Discovery.Whole is set, Check
// can still find further errors.
func Open(ctx context.Context, o Options) (*Estate, diag.List) {
	e := newEstate(o)
	ds := e.Found.Find(ctx, discovery.Tools{Loaders: e.open, Modules: e.dirs, Stacks: o.stacks(), Git: o.git(), Worktrees: e.o.Worktrees})
	return e, ds
}

// OpenUnit reads the unit of one directory or file. module is the name of a unit in an
// environment file, and "" for ordinary units.
func OpenUnit(ctx context.Context, o Options, path, module string) (*Estate, *discovery.Unit, diag.List) {
	e := newEstate(o)
	loader, _ := e.open(o.Discovery.Root)
	in, ds := loader.Unit(loader.Task(ctx), path, module)
	if ds.HasErrors() || in == nil {
		return e, nil, ds
	}
	return e, e.Found.Add(in), ds
}

// OpenFile reads the units of one file: one, or those of the modules of an environment file.
func OpenFile(ctx context.Context, o Options, path string) (*Estate, []*discovery.Unit, diag.List) {
	e := newEstate(o)
	loader, _ := e.open(o.Discovery.Root)
	units, ds := loader.Load(loader.Task(ctx), path)
	if ds.HasErrors() {
		return e, nil, ds
	}
	var out []*discovery.Unit
	for _, in := range units {
		out = append(out, e.Found.Add(in))
	}
	return e, out, ds
}

// ModuleNames returns the names of the units in environment files, in the form that --module
// takes.
func ModuleNames(ctx context.Context, o Options, files []string) ([]string, diag.List) {
	loader := unit.NewLoader(o.UnitEnv(o.Discovery.Root))
	var names []string
	var ds diag.List
	for _, path := range files {
		units, more := loader.Load(loader.Task(ctx), path)
		ds = append(ds, more...)
		for _, u := range units {
			if rel, err := filepath.Rel(filepath.Dir(path), u.ID); err == nil {
				names = append(names, filepath.ToSlash(rel))
			}
		}
	}
	return names, ds
}

// GenerateStacks generates the units of all stack files below the root of the options. It adds
// the source text of messages to set.
func GenerateStacks(ctx context.Context, o Options, set *source.Set) diag.List {
	s := o.Discovery
	s.DownloadDir, s.Files = o.Request.DownloadDir, o.Host.Files()
	_, ds := discovery.Generate(ctx, s, o.stacks(), set)
	return ds
}

// Affected returns the filter of --filter-affected: the changes between the default branch and
// HEAD.
func Affected(ctx context.Context, o Options) (string, diag.List) {
	text, err := o.git().Affected(ctx)
	if err != nil {
		return "", filter.Invalid("--filter-affected", diag.Reason(err))
	}
	return "[" + text + "]", nil
}

// Sources returns the source text of the unit files, for messages about them.
func (e *Estate) Sources() *source.Set { return e.loader.Sources() }

// Deprecated returns the warnings about deprecated parts of the unit language.
func (e *Estate) Deprecated() diag.List { return e.loader.Deprecated() }

// Task starts an evaluation of parts of units. After a run, it uses the outputs of that run.
func (e *Estate) Task(ctx context.Context) *demand.Task { return e.loader.Task(ctx) }

// Close removes the worktrees of the estate. e may be nil.
func (e *Estate) Close(ctx context.Context) {
	if e != nil {
		e.Found.Checkouts.Remove(ctx)
	}
}

// Match returns the names of the units that match filters relative to the directory dir.
func (e *Estate) Match(ctx context.Context, dir string, filters []string) (map[string]bool, diag.List) {
	return e.Found.Match(ctx, e.loader, e.static, dir, filters)
}

// Check checks the units and their connections, without state. With strict, inputs that a module
// does not declare are errors.
func (e *Estate) Check(ctx context.Context, strict bool) diag.List {
	return e.check(ctx, strict, false)
}

// CheckLast is like Check, for a caller that does not use the units afterwards. It needs less memory.
func (e *Estate) CheckLast(ctx context.Context, strict bool) diag.List {
	return e.check(ctx, strict, true)
}

func (e *Estate) check(ctx context.Context, strict, last bool) diag.List {
	c := &check.Checker{
		Last:  last,
		Found: e.Found, Loader: e.loader, Static: e.static, Dirs: e.dirs, States: e.states, Outside: e.reader.Outside, Command: e.o.Request.Command,
		Environ: e.o.Machine.Environ, Now: e.o.Machine.Now, ValuesElsewhere: e.o.ValuesElsewhere, Strict: strict,
		Examiner: e.examiner, Examined: &e.examined, ReadFile: e.o.Host.Files().Whole,
	}
	c.Services = func(dir string) engine.Services {
		return e.o.Host.Engine(e.o.Host.In(dir, e.o.Machine.Environ, nil), nil, nil).Services
	}
	res := c.Run(ctx)
	e.invalid = res.Invalid
	return res.Diags
}

// Run runs all units in dependency order and returns a result for each, sorted by name. Outputs
// of dependencies that were read before are read again.
func (e *Estate) Run(ctx context.Context, o run.Options) []*report.Result {
	r := e.renew(o.Computed)
	return r.Run(ctx, e.Found.Units, o)
}

// Each calls do for one unit after the other, in their order, and returns a result for each,
// sorted by name. without is called for units that the rules prevent from running.
func (e *Estate) Each(ctx context.Context, rules schedule.Rules, do, without func(*report.Result)) []*report.Result {
	return run.Each(ctx, e.Found.Units, rules, e.o.Machine.Now, do, without)
}

// renew prepares a new run, in which the outputs of dependencies are read again. made contains
// the outputs of the run, or is nil.
func (e *Estate) renew(made *outputs.Computed) *run.Runner {
	r := e.runner
	if r.Computed = made; made == nil {
		r.Computed = &outputs.Computed{}
	}
	e.reader.Computed = r.Computed
	e.loader = e.loader.WithOutputs(e.reader.Get)
	for _, u := range e.Found.Units {
		if u.Broken == nil {
			u.Unit = u.Unit.In(e.loader)
		}
	}
	r.Loader, e.runner.Loader = e.loader, e.loader
	r.Moves = e.moves()
	return &r
}

// moves returns the moves between the units, which are read once, when they are needed.
func (e *Estate) moves() *moves.Between {
	return &moves.Between{PlaceOf: e.placeOf, States: e.states, All: sync.OnceValues(func() ([]*moves.Move, diag.List) {
		return moves.Load(sys.Nearest(e.o.Discovery.Root, moves.FileName), e.loader.Sources())
	})}
}

// placeOf returns the location of the state of a unit, which may be outside of the estate.
func (e *Estate) placeOf(ctx context.Context, id string) (states.Location, diag.List) {
	u := e.Found.ByID(id)
	if u == nil {
		var ds diag.List
		if u, ds = e.reader.Outside(e.loader.Task(ctx), id, source.Range{}); u == nil {
			return states.Location{}, ds
		}
	}
	s, ds := e.site(e.loader.Task(ctx), u, e.o.Request.Command)
	if ds.HasErrors() {
		return states.Location{}, ds
	}
	return s.Place(ctx, true)
}

// NotRun returns the results of a run that did not begin, sorted by name. Units in which Open or
// Check found errors failed. ds contains all errors; the first is the reason of other units if no
// unit has errors.
func (e *Estate) NotRun(ds diag.List) []*report.Result {
	invalid := map[*discovery.Unit]diag.List{}
	for _, u := range e.Found.Units {
		invalid[u] = slices.Concat(u.Invalid, e.invalid[u]).Errors()
	}
	return run.Refuse(e.Found.Units, e.o.Discovery.Destroy, invalid, e.whyNotRun(ds, invalid), e.o.Machine.Now())
}

// Invalid returns the results of a run whose command is invalid: each unit without dependencies
// failed with ds.
func (e *Estate) Invalid(ds diag.List) []*report.Result {
	invalid := map[*discovery.Unit]diag.List{}
	tasks := discovery.Tasks(e.Found.Units, e.o.Discovery.Destroy)
	for i, u := range e.Found.Units {
		waits := slices.ContainsFunc(tasks[i].Needs, func(n int) bool { return !tasks[n].Skip })
		if !waits && !tasks[i].Skip {
			invalid[u] = ds
		}
	}
	return run.Refuse(e.Found.Units, e.o.Discovery.Destroy, invalid, e.whyNotRun(ds, invalid), e.o.Machine.Now())
}

// whyNotRun returns the reason why units without errors did not run.
func (e *Estate) whyNotRun(ds diag.List, invalid map[*discovery.Unit]diag.List) string {
	var names []string
	bad := 0
	for _, u := range e.Found.Units {
		if invalid[u].HasErrors() {
			if bad++; bad <= discovery.NamedUnits {
				names = append(names, u.Called())
			}
		}
	}
	switch text := strings.Join(names, ", "); {
	case bad > discovery.NamedUnits:
		return fmt.Sprintf("nothing was run, since %d units are not valid, %s among them", bad, text)
	case bad > 0:
		return "nothing was run, since there are errors in " + text
	case ds.HasErrors():
		return "nothing was run: " + ds.Errors()[0].Summary
	}
	return "nothing was run"
}

// Restrict excludes the units that a saved plan does not contain. It returns the units of the
// plan that the estate does not contain.
func (e *Estate) Restrict(p *saved.Plan) (missing []string) {
	held := map[string]bool{}
	have := map[string]bool{}
	for _, u := range p.Units {
		held[u.Name] = u.Result == report.Succeeded
	}
	for _, u := range e.Found.Units {
		have[u.Name] = true
		if u.Excluded == "" && !held[u.Name] {
			u.Excluded = "the saved plan does not hold it"
		}
	}
	for _, u := range p.Units {
		if held[u.Name] && !have[u.Name] {
			missing = append(missing, u.Name)
		}
	}
	slices.Sort(missing)
	return missing
}

// EndProviders ends the provider processes of a run that has not ended, for a program that has to
// end. Their operations are lost, so the caller calls Abandon first.
func (e *Estate) EndProviders() { e.changing.EndProviders() }

// Abandon stops all writing to states and journals, for a program that has to end during an
// apply.
func (e *Estate) Abandon() { e.changing.Abandon() }

// State reads the state of a unit as it is stored.
func (e *Estate) State(ctx context.Context, u *discovery.Unit) (*state.State, diag.List) {
	return e.readState(e.loader.Task(ctx), u)
}

func (e *Estate) readState(t *demand.Task, u *discovery.Unit) (*state.State, diag.List) {
	s, ds := e.readStateOf(t, u, false)
	if slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == statefile.EncryptedCode }) {
		return e.readStateOf(t, u, true) // the module configures the encryption, and was not read
	}
	return s, ds
}

// readStateOf reads the state of a unit. With whole, a module that cannot be read is an error.
func (e *Estate) readStateOf(t *demand.Task, u *discovery.Unit, whole bool) (*state.State, diag.List) {
	s, ds := e.site(t, u, e.o.Request.Command, run.Output)
	if ds.HasErrors() {
		return nil, ds
	}
	where, ds := s.Place(t.Context(), whole)
	if ds.HasErrors() {
		return nil, ds
	}
	st, more := e.states.Read(t.Context(), where)
	return st, append(ds.Errors(), s.Outside(more)...)
}

// site prepares a unit for a reader of its state. The command does not run on units outside of
// the estate.
func (e *Estate) site(t *demand.Task, u *discovery.Unit, commands ...string) (*run.Site, diag.List) {
	return e.runner.Site(t, u, e.Found.ByID(u.ID) == nil, commands...)
}

// statesAtOnce is the number of states that are read concurrently. Reading mostly waits for the
// network.
const statesAtOnce = 16

// Outputs reads the stored outputs of the units that are not excluded, by unit name. wanted
// selects units; nil selects all. If a state cannot be read, only the result of its unit contains
// the error.
func (e *Estate) Outputs(ctx context.Context, wanted func(*discovery.Unit) bool) (map[string]map[string]*state.Output, []*report.Result) {
	units := slices.DeleteFunc(slices.Clone(e.Found.Units), func(u *discovery.Unit) bool { return wanted != nil && !wanted(u) })
	states := make([]*state.State, len(units))
	results := parallel.Map(len(units), statesAtOnce, func(i int) *report.Result {
		u := units[i]
		res := &report.Result{Unit: u, Status: report.Succeeded, Started: e.o.Machine.Now()}
		if u.Excluded != "" {
			res.LeaveOut()
			res.Ended = res.Started
			return res
		}
		ds := u.Broken
		if ds == nil {
			states[i], ds = e.State(ctx, u)
		}
		if res.Diags, res.Ended = ds, e.o.Machine.Now(); ds.HasErrors() {
			res.Fail(ds)
		}
		return res
	})
	out := map[string]map[string]*state.Output{}
	for i, s := range states {
		if s != nil {
			out[units[i].Name] = s.Outputs
		}
	}
	return out, results
}

// Declared returns the variables of a unit's module, or nil if the module is not on this machine
// or cannot be read.
func (e *Estate) Declared(ctx context.Context, u *discovery.Unit) map[string]*config.Variable {
	root := e.dirs.LocalRoot(e.static.Task(ctx), u.In(e.static))
	if root == nil {
		return nil
	}
	return root.Variables
}

// Validate checks every unit and stack file without outputs. In an estate that was opened
// leniently, it also returns the errors of units that could not be read.
func (e *Estate) Validate(ctx context.Context) diag.List {
	units, dirs := e.Found.Units, e.Found.StackDirs()
	n := len(units)
	all := parallel.Map(n+len(dirs), 0, func(i int) diag.List {
		t := e.loader.Task(ctx)
		if i < n {
			return e.validate(t, units[i])
		}
		st, ds := e.loader.Stack(t, filepath.Join(dirs[i-n], unit.StackName))
		if st != nil {
			_, more := st.Items(t)
			ds = append(ds, more...)
		}
		return ds
	})
	return slices.Concat(all...)
}

func (e *Estate) validate(t *demand.Task, u *discovery.Unit) diag.List {
	switch {
	case u.Broken == nil:
		return u.Check(t)
	case u.Removed:
		return nil // its file is deleted
	}
	units, ds := e.loader.Load(t, u.Path) // the file may have errors beyond those that prevented reading it
	for _, in := range units {
		ds = append(ds, in.Check(t)...)
	}
	return ds
}

// StackParts returns the parts of all stacks below the root that are not part of another stack,
// sorted by name.
func (e *Estate) StackParts(ctx context.Context) ([]stacks.Part, diag.List) {
	return stacks.All(e.loader.Task(ctx), e.loader, e.Found.StackDirs())
}

// WorkingDir returns the path of the directory in which a unit runs, which may not exist. ok is false
// if the path is not known.
func (e *Estate) WorkingDir(ctx context.Context, u *discovery.Unit) (path string, ok bool) {
	if u.Broken != nil {
		return "", false
	}
	d, ok := e.dirs.Bare(e.static.Task(ctx), u.In(e.static))
	if !ok {
		return "", false
	}
	return d.Path, true
}
