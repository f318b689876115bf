// Package estate works on many units in one process: it finds the units below a
// folder, puts them in order, and plans, applies, checks and reads them, with
// outputs flowing from one to the next in memory, known or not.
//
// It is the facade of the rooms below it, and has no rule of its own: discovery finds the
// units, check holds them to what shows without state, run works on them in the order
// that schedule gives, each in its workdir, with its hooks, inputs, credentials and
// states; report and saved keep what came of it.
//
// Main types: Options and Estate. The one rule: options are taken apart here, and each
// room is given what it reads.
package estate

import (
	"context"
	"fmt"
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
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// Options say which units to work on, and with what. Discovery.Root and Machine.Now are
// required.
type Options struct {
	// Discovery says which units there are. Its Command and DownloadDir are those of the
	// request, and its Files those of the host, whatever stands there.
	Discovery discovery.Settings
	// Request is the command that runs on the units, and what unit files can tell of it.
	Request unit.Request
	Machine unit.Machine
	// At is the time that timestamp() gives in unit files, for the whole run: a plan and
	// what is applied of it must have the same one. Zero means when it is asked for.
	At time.Time
	// Redactor gets the values that messages about the units must not show. Nil: the
	// messages of unit files alone are redacted.
	Redactor    *diag.Redactor
	Who         string // user@host, for locks
	Sources     workcopy.Sources
	Inputs      run.Inputs
	Skip        Skip
	Credentials credentials.Settings
	Host        run.Host
	// Checking says that the units are looked at and nothing will run: what takes
	// credentials that are not there is unknown.
	Checking bool
	// Throwaway is a folder for what lasts as long as the process: then the states of all
	// units live in memory. "" for real states.
	Throwaway string
	// Tolerant makes outputs that do not exist no error, as rendering wants it.
	Tolerant bool
	// Rendering says besides that a dependency without outputs has none of any name.
	Rendering bool
	// ValuesElsewhere says that variables may get values by flags, so that missing inputs
	// are no error before a run.
	ValuesElsewhere bool
	// ShareProviders are providers whose processes units share though their working
	// folders differ, beside those that are known not to look at theirs.
	ShareProviders []addr.Provider
	// Worktrees notes the worktrees that are made for filters by git. nil: the estate
	// keeps that to itself.
	Worktrees *git.Worktrees
	// Answers are what git says of commits, or said where the run was begun. May be nil.
	Answers *git.Answers
}

// Skip says what is left out.
type Skip struct {
	Hooks   bool
	Retries bool
	Outputs bool // of dependencies, which are unknown then
	Mocks   bool // the mock outputs too that stand for them
}

// An Estate is units in order.
type Estate struct {
	Found *discovery.Found

	o        Options
	loader   *unit.Loader
	static   *unit.Loader // to which all outputs are unknown: for what is looked at before a run
	reader   *outputs.Reader
	dirs     *workcopy.Maker
	states   *states.Keeper
	runner   run.Runner // but for what changes with each run
	changing states.Changing
	first    run.GivenWarnings
	examined check.Examined
	examiner *engine.Examiner
	invalid  map[*discovery.Unit]diag.List // what checks found
}

// newEstate makes an estate of no units yet.
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
	e.states = states.NewKeeper(states.Settings{Who: o.Who, Now: o.Machine.Now, Environ: o.Machine.Environ, CheckedOut: checkedOut, OwnDir: e.dirs.StateDir, Backends: o.Host.Backends, Host: o.Host.Of, User: o.Host.User(o.Machine.Environ), Lease: o.Host.Lease, CopiedTo: o.Host.CopiedTo, KeepSegments: o.Host.KeepSegments, Journals: o.Host.Journals, Bootstrap: o.Host.Bootstrap, Throwaway: o.Throwaway})
	e.reader = &outputs.Reader{
		Found: e.Found, Loader: func() *unit.Loader { return e.loader }, Off: o.Skip.Outputs, Tolerant: o.Tolerant,
		State: e.readState,
	}
	e.runner = run.Runner{
		Command: o.Request.Command, Machine: o.Machine, Dirs: e.dirs, Credentials: credentials.New(o.Credentials, o.Machine), States: e.states,
		Changing: &e.changing, Host: o.Host, Inputs: o.Inputs, NoHooks: o.Skip.Hooks, NoRetries: o.Skip.Retries,
		ShareProviders: o.ShareProviders, Name: e.Found.Name, First: &e.first, Redactor: o.Redactor,
	}
	e.examiner = engine.NewExaminer(o.Machine.Now)
	return e
}

// open makes the loaders of unit files below a folder.
func (e *Estate) open(root string) (loader, static *unit.Loader) {
	env := e.o.UnitEnv(root)
	env.Outputs, env.Tolerant = e.reader.Get, e.o.Tolerant || e.o.Skip.Outputs
	env.NoMocks = e.o.Skip.Mocks
	env.Rendering = e.o.Rendering && !e.o.Skip.Outputs
	env.UnitEnviron = e.runner.Credentials.Environ()
	e.loader = unit.NewLoader(env)
	e.static = e.loader.WithOutputs(func(*demand.Task, string, source.Range) (cty.Value, bool, diag.List) {
		return cty.DynamicVal, true, nil
	})
	e.runner.Root, e.runner.Loader, e.runner.Static = root, e.loader, e.static
	return e.loader, e.static
}

// UnitEnv is what unit files are evaluated in below a root, without the outputs of dependencies.
func (o *Options) UnitEnv(root string) unit.Env {
	machine := o.Machine
	if !o.At.IsZero() {
		machine.Now = func() time.Time { return o.At }
	}
	files := o.Host.Files()
	env := unit.Env{WorkingDir: root, Machine: machine, Request: o.Request, Checking: o.Checking, ConfigName: o.Discovery.ConfigName, ReadFile: files.Whole, Redactor: o.Redactor}
	if u := o.Discovery.Overlay; u != nil {
		env.ReadFile, env.Stat = func(path string) ([]byte, error) { return u.ReadFile(files, path) }, u.Stat
	}
	return env
}

// stacks are what stacks are generated with, below a root.
func (o *Options) stacks() stacks.Settings {
	return stacks.Settings{Env: o.UnitEnv(o.Discovery.Root), SourceMap: o.Sources.Map, Fetch: o.Sources.Fetch, Whole: o.Discovery.Whole, Generated: o.Discovery.Generated, Overlay: o.Discovery.Overlay}
}

func (o *Options) git() git.Repo {
	return git.Repo{Dir: o.Discovery.Root, Environ: o.Machine.Environ, Exec: o.Machine.Run, Answers: o.Answers}
}

// Commits is what git said of the commits that filters are about; nil if there are none.
func (e *Estate) Commits() *git.Record { return e.o.Answers.Record() }

// Open finds and reads the units below a folder, and puts them in order. With
// errors the estate holds what could be read, and must not be run. Where Discovery.Whole
// is set, Check still finds the rest of what is wrong, if anything was read at all.
func Open(ctx context.Context, o Options) (*Estate, diag.List) {
	e := newEstate(o)
	ds := e.Found.Find(ctx, discovery.Tools{Loaders: e.open, Modules: e.dirs, Stacks: o.stacks(), Git: o.git(), Worktrees: e.o.Worktrees})
	return e, ds
}

// OpenUnit reads the unit of one folder or file alone; module names one of an
// environment file, and is "" for ordinary units.
func OpenUnit(ctx context.Context, o Options, path, module string) (*Estate, *discovery.Unit, diag.List) {
	e := newEstate(o)
	loader, _ := e.open(o.Discovery.Root)
	in, ds := loader.Unit(loader.Task(ctx), path, module)
	if ds.HasErrors() || in == nil {
		return e, nil, ds
	}
	return e, e.Found.Add(in), ds
}

// ModuleNames are the names of the units in environment files, as --module takes
// them.
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

// GenerateStacks makes the units of all stack files below the root of the options.
// The text that messages are about is added to set.
func GenerateStacks(ctx context.Context, o Options, set *source.Set) diag.List {
	s := o.Discovery
	s.DownloadDir, s.Files = o.Request.DownloadDir, o.Host.Files()
	_, ds := discovery.Generate(ctx, s, o.stacks(), set)
	return ds
}

// Affected is the filter of --filter-affected: what differs between the default
// branch and HEAD.
func Affected(ctx context.Context, o Options) (string, diag.List) {
	text, err := o.git().Affected(ctx)
	if err != nil {
		return "", filter.Invalid("--filter-affected", diag.Reason(err))
	}
	return "[" + text + "]", nil
}

// Sources is the text of the unit files, for showing messages about them.
func (e *Estate) Sources() *source.Set { return e.loader.Sources() }

// Deprecated is the warning about deprecated parts of the unit language.
func (e *Estate) Deprecated() diag.List { return e.loader.Deprecated() }

// Task starts an evaluation of parts of units. After a run it sees the outputs of that.
func (e *Estate) Task(ctx context.Context) *demand.Task { return e.loader.Task(ctx) }

// Close removes what was checked out for the estate, which may be nil.
func (e *Estate) Close(ctx context.Context) {
	if e != nil {
		e.Found.Checkouts.Remove(ctx)
	}
}

// Match tells which units filters find, as seen from a folder.
func (e *Estate) Match(ctx context.Context, dir string, filters []string) (map[string]bool, diag.List) {
	return e.Found.Match(ctx, e.loader, e.static, dir, filters)
}

// Check holds the units and their connections to every rule that can be checked
// without state. strict makes inputs that a module does not declare errors.
func (e *Estate) Check(ctx context.Context, strict bool) diag.List {
	c := &check.Checker{
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

// Run works on all units in their order and returns a result for each, by name. What the
// outputs of dependencies were before it, they are not in it.
func (e *Estate) Run(ctx context.Context, o run.Options) []*report.Result {
	r := e.renew(o.Computed)
	return r.Run(ctx, e.Found.Units, o)
}

// Each has a function work on all units one at a time, in their order, and returns a result
// for each, by name. without is called for units that have no turn.
func (e *Estate) Each(ctx context.Context, rules schedule.Rules, do, without func(*report.Result)) []*report.Result {
	return run.Each(ctx, e.Found.Units, rules, e.o.Machine.Now, do, without)
}

// renew has the outputs of dependencies asked for anew. made are those of the run, nil for
// none.
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
	r.Moves = &moves.Between{PlaceOf: e.placeOf, States: e.states, All: sync.OnceValues(func() ([]*moves.Move, diag.List) {
		return moves.Load(sys.Nearest(e.o.Discovery.Root, moves.FileName), e.loader.Sources())
	})}
	return &r
}

// placeOf is where the state of a unit is, which may be no part of the estate.
func (e *Estate) placeOf(ctx context.Context, id string) (states.Place, diag.List) {
	u := e.Found.ByID(id)
	if u == nil {
		var ds diag.List
		if u, ds = e.reader.Outside(e.loader.Task(ctx), id, source.Range{}); u == nil {
			return states.Place{}, ds
		}
	}
	s, ds := e.site(e.loader.Task(ctx), u, e.o.Request.Command)
	if ds.HasErrors() {
		return states.Place{}, ds
	}
	return s.Place(ctx, true)
}

// NotRun are the results of a run that did not begin, by name. Of units, those have
// failed in which something wrong was found by Open and Check; ds are all errors, of
// which the first is the cause where there are none about a unit.
func (e *Estate) NotRun(ds diag.List) []*report.Result {
	invalid := map[*discovery.Unit]diag.List{}
	for _, u := range e.Found.Units {
		invalid[u] = slices.Concat(u.Invalid, e.invalid[u]).Errors()
	}
	return run.Refuse(e.Found.Units, e.o.Discovery.Destroy, invalid, e.whyNotRun(ds, invalid), e.o.Machine.Now())
}

// Invalid are the results of a run whose command is wrong: each unit failed by ds that
// does not come after another.
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

// whyNotRun says why units did not run with which nothing is wrong.
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

// Restrict leaves out of the estate what a saved plan does not hold. It returns the
// units of the plan that the estate does not have.
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

// EndProviders ends the providers of a run that is still going on, for a program
// that is about to end. What they were doing comes to nothing: Abandon comes first.
func (e *Estate) EndProviders() { e.changing.EndProviders() }

// Abandon leaves states and journals as they are, for a program that is about to
// end although units are being applied.
func (e *Estate) Abandon() { e.changing.Abandon() }

// State reads the state of a unit as it is stored.
func (e *Estate) State(ctx context.Context, u *discovery.Unit) (*state.State, diag.List) {
	return e.readState(e.loader.Task(ctx), u)
}

func (e *Estate) readState(t *demand.Task, u *discovery.Unit) (*state.State, diag.List) {
	s, ds := e.readStateOf(t, u, false)
	if slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == statefile.EncryptedCode }) {
		return e.readStateOf(t, u, true) // the module says how, which was not looked at
	}
	return s, ds
}

// readStateOf reads the state of a unit. A module that cannot be read is an error with whole.
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
	return st, append(ds.Errors(), more...)
}

// site prepares a unit for a reader of its state. A unit that is not part of the estate is one
// that the command does not run on.
func (e *Estate) site(t *demand.Task, u *discovery.Unit, commands ...string) (*run.Site, diag.List) {
	return e.runner.Site(t, u, e.Found.ByID(u.ID) == nil, commands...)
}

// statesAtOnce is how many states are read at once, which takes waiting and no work.
const statesAtOnce = 16

// Outputs reads the stored outputs of the units of the estate that take part, by name:
// those that are wanted, or all with nil. A state that cannot be read is reported of its
// unit alone.
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

// Declared are the variables of a unit's module, nil where that is not on this machine
// or cannot be read.
func (e *Estate) Declared(ctx context.Context, u *discovery.Unit) map[string]*config.Variable {
	root := e.dirs.LocalRoot(e.static.Task(ctx), u.In(e.static))
	if root == nil {
		return nil
	}
	return root.Variables
}

// Validate holds every unit and stack file to all rules that need no outputs. In an
// estate that was opened leniently, units that could not be read are reported too.
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
		return nil // its file is gone
	}
	units, ds := e.loader.Load(t, u.Path) // more may be wrong with it than what kept it from being read
	for _, in := range units {
		ds = append(ds, in.Check(t)...)
	}
	return ds
}

// StackParts are the parts of all stacks below the root that belong to no other
// stack, by name.
func (e *Estate) StackParts(ctx context.Context) ([]stacks.Part, diag.List) {
	return stacks.All(e.loader.Task(ctx), e.loader, e.Found.StackDirs())
}
