// Package estate works on many units in one process: it finds the units below a
// folder, puts them in order, and plans, applies, checks and reads them, with
// outputs flowing from one to the next in memory, known or not.
//
// Main types: Options, Estate, Unit and Run. The one rule: nothing of a unit is
// kept between two of its turns but its state and its outputs, so that what
// thousands of units cost does not add up.
//
// A unit's module is read where it lies, with the unit's own and generated files
// laid over it in memory (files.go). The folder below .terragrunt-cache, in which
// Terragrunt would run it, is made only where something other than the loader
// looks at it (disk.go).
package estate

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/unit"
)

// Options say which units to work on, and with what. Root is required.
type Options struct {
	Root string // absolute; units are looked for below it
	Look Look   // how the units are looked for
	// Request is the command that runs on the units, and what unit files can tell of it.
	Request unit.Request
	Destroy bool         // the command destroys what the units manage
	Machine unit.Machine // of which Now is required
	// At is the time that timestamp() gives in unit files, for the whole run: a plan and
	// what is applied of it must have the same one. Zero means when it is asked for.
	At      time.Time
	Who     string // user@host, for locks
	Sources Sources
	Inputs  Inputs
	Without Without
	SignIn  SignIn
	Host    Host
	// ShareProviders are providers whose processes units share though their working
	// folders differ, beside those that are known not to look at theirs.
	ShareProviders []addr.Provider

	// Worktrees notes the worktrees that are made for filters by git. nil: the estate
	// keeps that to itself.
	Worktrees *Worktrees

	repo string // where git runs, if that is not Root
}

// Sources say what comes in the place of the sources of units.
type Sources struct {
	Map  map[string]string // of --source-map: what replaces an address, before the //
	Base bool              // the source of the request is where the modules of all units lie, and not the one of the unit that was opened
}

// Inputs say what is made of the inputs of units. The zero value takes them as they
// are and lets modules leave some undeclared.
type Inputs struct {
	Strict    bool // inputs that a module does not declare are errors
	Debug     bool // those of each unit are written to a file beside it
	Elsewhere bool // variables may get values by flags, so that missing inputs are no error yet
	Mocks     bool // mock outputs come before planned ones

	tolerant bool // outputs that do not exist are no error
}

// Without says what is left out.
type Without struct {
	Hooks   bool
	Retries bool
	Outputs bool // of dependencies, which are unknown then
	// Removals leaves out units that filters by git found removed.
	Removals bool
}

// A Host is what the program around an estate does for it. Every field may be nil.
type Host struct {
	// Values are the values that users give to the variables of a module besides
	// inputs: from the environment, flags, and variable files in the folder, whose
	// path is "" where there are none. more are flags that count before the user's.
	Values func(f Folder, more []VarFlag, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List)
	// Init installs modules and providers into the working folder of a unit, and the
	// hooks of init run around it. nil: neither is done, unless it is the command.
	Init func(ctx context.Context, e *Estate, u *Unit, dir string) diag.List
	// Provisioners runs provisioner blocks in a folder.
	Provisioners func(Folder) engine.Provisioners
	// ReadState serves terraform_remote_state in a folder.
	ReadState func(dir string) engine.ReadState
	// AssumeRole gets the credentials of a role, as an environment. env is that of those
	// who assume it.
	AssumeRole func(ctx context.Context, env sys.Env, r Role) ([]string, error)
	// Fetch brings the package of a module source that is not local onto this
	// machine and tells its folder.
	Fetch func(ctx context.Context, src string) (dir string, ds diag.List)
	// Providers are those of the unit in a folder; nil: the built-in provider alone.
	Providers func(Folder) Providers
	// Program is the path of the program, for hooks that call it; "" for its name.
	Program string
}

// A Folder is where a unit runs, and with what environment.
type Folder struct {
	Dir   string
	Env   sys.Env
	Files config.FS // what the folder holds where it is not on disk yet; nil: what lies there
	// Programs is the environment of programs that the module starts; nil: Env.
	Programs func() sys.Env
}

// A VarFlag is a -var or a -var-file.
type VarFlag struct {
	File  bool
	Value string
}

// Providers are the providers of one unit.
type Providers interface {
	engine.ProviderSource
	// Choose finds the packages of the providers that are needed.
	Choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List
}

// An Estate is units in order.
type Estate struct {
	Units []*Unit // by name
	// Stacks are the folders of stack files, as names.
	Stacks []string
	// Ungenerated are errors about stacks whose units were not generated: without
	// them a run over everything would leave something out.
	Ungenerated diag.List
	// Warnings came up when the units were read.
	Warnings diag.List
	// Chosen says that Units are those that the filters ask for, whatever is wrong
	// with them. Without it some may be missing or too many.
	Chosen bool

	o       Options
	told    told
	loader  *unit.Loader
	blind   *unit.Loader // to which all outputs are unknown: for what is looked at before a run
	byID    map[string]*Unit
	shared  sharing
	history history
	run     *Run // whose results the units' dependencies are read from; nil before any
	holding holding
}

// told is what was told already, so that it is not told again.
type told struct {
	reading map[identity]bool // while the units were read
	once    sync.Map          // what first let pass
	unmade  map[string]bool   // the folders of stack files of which not everything was made
}

// first leaves out warnings that were given before for the same place, as where
// many units share a file.
func (t *told) first(ds diag.List) diag.List {
	var out diag.List
	for _, m := range ds {
		if m.Severity == diag.Warning && m.At != nil {
			type said struct {
				summary string
				at      source.Range
			}
			if _, again := t.once.LoadOrStore(said{m.Summary, *m.At}, true); again {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// A Unit is one unit of an estate.
type Unit struct {
	*unit.Unit
	Name     string // the path from the estate's root, with slashes
	Needs    []*Unit
	NeededBy []*Unit
	External []string // dependencies that lie outside of the estate
	// Excluded says why the unit takes no part in the command; "" if it does.
	Excluded string
	// Outside is true for units that do not lie below the estate's root, which
	// filters bring in.
	Outside bool
	// Broken is what is wrong with a unit file that cannot be read. Such units are there
	// only where Look.Lenient or Look.Whole is set, and nothing but their names is known,
	// and with Lenient those of their dependencies that can be read. Empty, but not nil,
	// for units that are Removed.
	Broken diag.List
	// Removed is true for units that are no longer there, which filters by git bring
	// in: all that they manage is to be destroyed.
	Removed bool
	// Found is where a filter by git found the unit; zero if none did.
	Found Found

	faulty bool      // its file was read in part: only Check and what lists units work with it
	wrong  diag.List // what was found before anything ran
	edges  []unit.Edge
	signed []string // what signing in added to its environment
	place  *place
}

// Found is where a filter by git found a unit.
type Found struct {
	Ref  string // the commit, as it was written
	name string // the unit's path from the repository
}

// Sources is the text of the unit files, for showing messages about them.
func (e *Estate) Sources() *source.Set { return e.loader.Sources() }

// Deprecated is the warning about deprecated parts of the unit language.
func (e *Estate) Deprecated() diag.List { return e.loader.Deprecated() }

// OpenUnit reads the unit of one folder or file alone; module names one of an
// environment file, and is "" for ordinary units.
func OpenUnit(ctx context.Context, o Options, path, module string) (*Estate, *Unit, diag.List) {
	e := newEstate(o)
	t := e.loader.Task(ctx)
	in, ds := e.loader.Unit(t, path, module)
	if ds.HasErrors() || in == nil {
		return e, nil, ds
	}
	u := e.add(in)
	return e, u, ds
}

func newEstate(o Options) *Estate {
	e := &Estate{o: o, byID: map[string]*Unit{}, told: told{reading: map[identity]bool{}}}
	e.renew()
	return e
}

// renew starts a new evaluation of the unit files, which must happen between two
// runs: outputs are fetched once in each.
func (e *Estate) renew() {
	env := e.o.UnitEnv()
	env.Outputs, env.Tolerant = e.outputs, e.o.Inputs.tolerant || e.o.Without.Outputs
	env.UnitEnviron = e.functionEnv()
	e.loader = unit.NewLoader(env)
	e.blind = e.loader.Anew(unknowable)
}

// UnitEnv is what unit files are evaluated in, without the outputs of dependencies.
func (o Options) UnitEnv() unit.Env {
	machine := o.Machine
	if !o.At.IsZero() {
		machine.Now = func() time.Time { return o.At }
	}
	return unit.Env{WorkingDir: o.Root, Machine: machine, Request: o.Request, Checking: o.Look.Checking, ConfigName: o.Look.ConfigName}
}

func (e *Estate) add(in *unit.Unit) *Unit {
	u := &Unit{Unit: in, Name: e.name(in.ID)}
	e.Units = append(e.Units, u)
	e.byID[in.ID] = u
	return u
}

// name is how a unit is called: its ID as seen from the root.
func (e *Estate) name(id string) string {
	rel, err := filepath.Rel(e.o.Root, id)
	if err != nil {
		return id
	}
	return filepath.ToSlash(rel)
}

// task starts a strand of evaluation of unit files.
func (e *Estate) task(ctx context.Context) *demand.Task { return e.loader.Task(ctx) }

// A Result is what came of one unit in a run.
type Result struct {
	Unit    *Unit
	Status  Status
	Reason  string // for reports: run error, ancestor error, exclude block
	Cause   string // the unit before it that failed or did not run, the label of the block that decided, or the error's summary
	Message string // what the ignore block says that took a failure for success
	Blocker Blocker
	Started time.Time
	Ended   time.Time
	Diags   diag.List
	Set     *source.Set // where the places in Diags lie, if not in the estate's own
	Plan    *engine.Plan
	Counts  Counts
	Changes bool // the plan would do something
	// Deferred is what cannot be planned before other units are applied.
	Deferred []Deferral
	Code     int
}

// A Blocker is the unit that is behind an ancestor error: that failed first, or that was
// kept from running. The zero value is none.
type Blocker struct {
	Name string
	Kept bool // it did not fail: it was not run
}

// Status is what became of a unit in a run.
type Status string

// The statuses, in the words of run reports.
const (
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Excluded  Status = "excluded"
	EarlyExit Status = "early exit"
)

// Counts says how many objects a plan changes, or an apply changed.
type Counts struct{ Add, Change, Destroy, Import, Forget int }

// Observer is told what happens in a run. Its functions are called concurrently,
// and may be nil.
type Observer struct {
	Started func(*Unit)
	Event   event.Sink
	// Planned is called while the engine that made the plan is open.
	Planned func(u *Unit, e *engine.Engine, p *engine.Plan)
	// Applied is called when an apply has ended without errors, before Ended, with the
	// state that there is now, nil if there is none.
	Applied func(*Result, *state.State)
	Ended   func(*Result)
	// Hook is called when a hook of the unit begins, and with "" when it has ended.
	Hook func(u *Unit, name string)
	// Again is called when a unit failed and its errors block has it tried again.
	Again func(u *Unit, v Verdict, failed diag.List)
	// Log gets the lines of hooks while they run, and LogErr those on their standard
	// error; if LogErr is nil, Log gets all of them in the order they were written in.
	Log, LogErr func(u *Unit, line string)
}
