// Package estate works on many units in one process: it finds the units below a directory, sorts
// them by their dependencies, evaluates their inputs, checks and plans them, and explains their
// values. It passes the outputs of a unit to dependent units in memory, including outputs that are
// still unknown.
//
// Main types: Options, Estate, Unit and Result. The one rule: nothing in this package changes an
// object or a state.
package estate

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/explanation"
	estates "github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/modules"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/setup"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// Options configures Open. Dir is required.
type Options struct {
	Dir string // directory whose units, at any depth, belong to the estate

	// Environ is the complete environment, in the form of os.Environ. get_env and run_cmd use it,
	// Terrace passes it to the programs that it starts, and reads its own settings from it.
	Environ []string
	// NoExec runs no program: no hook, no run_cmd and no provider plugin. A value or unit that
	// needs one gets an error.
	NoExec bool

	Filters     []string // queries in the syntax of --filter; nil selects all units
	Parallelism int      // maximum number of concurrent units; 0 means 16

	// Providers contains the providers that the embedding program implements, by source address.
	// They need no package and have no entry in the lock file.
	Providers map[addr.Provider]provider.Factory

	Observe event.Sink // receives the events of provider calls; Event.Unit names the unit; nil discards them
	Log     io.Writer  // receives the output of plugins; nil means standard error
}

// An Estate contains the units below a directory. Its methods must not be called concurrently. The
// caller must call Close.
type Estate struct {
	options Options
	dir     *workdir.Directory
	inner   estates.Options
	opened  *estates.Estate // nil if the directory cannot be used
}

// A Unit is one unit of an estate.
type Unit struct {
	Name  string   // slash-separated path, relative to the directory of the estate
	Dir   string   // absolute directory of the unit file; "" if the unit cannot be read
	Needs []string // names of the units that this unit depends on
	// Excluded is the reason why commands skip the unit; "" means that they do not.
	Excluded string
}

// A Result is the result of planning one unit.
type Result struct {
	Unit   string // name of the unit
	Status string // "succeeded", "failed", "excluded" or "early exit", as in run reports
	Diags  diag.List
	// Plan is the plan of the unit, or nil if none could be made.
	Plan   *plan.Plan
	Counts plan.Counts
	// Deferred contains one sentence for each object that can only be planned after other units
	// are applied.
	Deferred []string

	files *source.Set // files of the module, for Text; may be nil
}

// Open finds and reads the units below a directory. The Estate is never nil. If there are errors, it
// contains the units that could be read, and Check returns the remaining errors.
func Open(ctx context.Context, o Options) (*Estate, diag.List) {
	e := &Estate{options: o}
	d, who, err := workdir.Embedded(workdir.Embedding{Dir: o.Dir, Environ: o.Environ, NoExec: o.NoExec, Providers: o.Providers, Observe: o.Observe, Log: o.Log})
	if err != nil {
		e.dir = &workdir.Directory{Set: &source.Set{}}
		return e, diag.Errorf(diag.CodeCLIFolder, nil, "Directory cannot be used", "The directory cannot be worked in: %s.", err)
	}
	e.dir = d
	plugins, ds := d.Plugins()
	if ds.HasErrors() {
		return e, ds
	}
	e.inner = estates.Options{
		Discovery: discovery.Settings{Root: d.Dir, Filters: o.Filters, Whole: true, Generate: true, Overlay: &stacks.Overlay{}},
		Request:   unit.Request{Command: "plan", Args: []string{"plan"}},
		Machine:   unit.Machine{Environ: d.Env, Run: d.Run, Now: d.Now, Home: d.HomeOrError},
		Who:       who,
		Sources:   workcopy.Sources{Fetch: modules.Fetch(d, plugins.Config, false)},
		Host: estates.Host{
			Plugins: plugins, Backends: d.Backends(), Texts: d.Set, Program: program{d.Host, who},
		},
	}
	var more diag.List
	e.opened, more = estates.Open(ctx, e.inner)
	return e, append(ds, more...)
}

// program implements estates.Program for the embedding program.
type program struct {
	host workdir.Host
	who  string // user@host
}

func (p program) UnitHost(string) workdir.Host { return p.host }

// Init installs the modules and providers of a unit, as "terrace init" does.
func (p program) Init(ctx context.Context, in estates.Installing) diag.List {
	o := setup.Options{Who: p.who}
	if ds := o.Add(in.Words); ds.HasErrors() {
		return ds
	}
	in.Directory.Set.Include(in.Sources)
	_, ds := setup.Run(ctx, in.Directory, o, setup.Silent{})
	return ds
}

// Units returns the units. Each follows the units that it depends on; other units are sorted by name.
func (e *Estate) Units() []Unit {
	var out []Unit
	done := map[*discovery.Unit]bool{}
	var add func(u *discovery.Unit)
	add = func(u *discovery.Unit) {
		if done[u] {
			return
		}
		done[u] = true
		found := Unit{Name: u.Name, Excluded: u.Excluded}
		if u.Unit != nil {
			found.Dir = u.Dir
		}
		for _, n := range u.Needs {
			add(n)
			found.Needs = append(found.Needs, n.Name)
		}
		out = append(out, found)
	}
	for _, u := range e.units() {
		add(u)
	}
	return out
}

func (e *Estate) units() []*discovery.Unit {
	if e.opened == nil {
		return nil
	}
	return e.opened.Found.Units
}

// find returns the unit with a name, or the errors that prevent its evaluation.
func (e *Estate) find(name string) (*discovery.Unit, diag.List) {
	i := slices.IndexFunc(e.units(), func(u *discovery.Unit) bool { return u.Name == name })
	switch {
	case i < 0:
		return nil, diag.Errorf(diag.CodeCLINoUnit, nil, "No unit", "The estate has no unit with the name %q.", name)
	case e.units()[i].Broken != nil:
		return nil, e.units()[i].Broken
	}
	return e.units()[i], nil
}

// alone opens a single unit. Outputs of other units that do not exist have unknown values. u is nil
// if there are errors.
func (e *Estate) alone(ctx context.Context, name string) (alone *estates.Estate, u *discovery.Unit, ds diag.List) {
	found, ds := e.find(name)
	if found == nil {
		return nil, nil, ds
	}
	o := e.inner
	o.Tolerant, o.Discovery.Filters = true, nil
	if alone, u, ds = estates.OpenUnit(ctx, o, found.Path, found.Module); ds.HasErrors() {
		return alone, nil, ds
	}
	return alone, u, ds
}

// Inputs returns the inputs of a unit in alphabetical order, each with its source range and the
// settings that it overrides. name is the name of the unit. If the names of the inputs depend on
// unknown values, Inputs returns one setting without a name, whose value is unknown.
func (e *Estate) Inputs(ctx context.Context, name string) ([]*unit.Setting, diag.List) {
	alone, u, ds := e.alone(ctx, name)
	if u == nil {
		return nil, ds
	}
	settings, more := u.Inputs(alone.Task(ctx), nil)
	return settings, append(ds, more...)
}

// Check returns the errors and warnings in all units and their dependencies that can be found without
// states and providers, like "terrace estate check".
func (e *Estate) Check(ctx context.Context) diag.List {
	if e.opened == nil {
		return nil
	}
	return append(slices.Clone(e.opened.Found.Ungenerated), e.opened.Check(ctx, false)...).Once()
}

// Plan plans all units and returns a result for each, sorted by the name of the unit. It writes only
// the working directories of units. When ctx is done, no more units are started.
func (e *Estate) Plan(ctx context.Context, o plan.Options) []Result {
	if e.opened == nil {
		return nil
	}
	found := e.opened.Run(ctx, run.Options{
		Op: run.Plan, Plan: o, Limits: run.Limits{Units: e.options.Parallelism}, Observe: observer{sink: e.options.Observe}, Stop: ctx.Done(),
	})
	out := make([]Result, len(found))
	for i, r := range found {
		out[i] = Result{Unit: r.Unit.Name, Status: string(r.Status), Diags: r.Diags, Plan: r.Plan, Counts: r.Counts, files: r.Set}
		for _, d := range r.Deferred {
			what := d.Address
			if what == "" {
				what = "the unit"
			}
			out[i].Deferred = append(out[i].Deferred, what+" is deferred because "+d.Reason)
		}
	}
	return out
}

// observer passes the events of a run to the sink of the embedding program.
type observer struct {
	run.Silent
	sink event.Sink // nil discards events
}

func (o observer) Event(e event.Event) {
	if o.sink != nil {
		o.sink(e)
	}
}

// Explain explains how the value at an address was computed. name is the name of the unit. address is
// the address of a value in the unit, such as inputs.tags or local.region, or in its module, such as
// aws_instance.web.tags.
func (e *Estate) Explain(ctx context.Context, name, address string) (*explanation.Explanation, diag.List) {
	alone, u, ds := e.alone(ctx, name)
	if u == nil {
		return nil, ds
	}
	v := alone.Evaluate(u, estates.StoredOutputs)
	inUnit := func(file string) (string, string) { return e.relative(file), "" }
	return v.Explain(ctx, e.dir.Set, address, inUnit, func(s *run.Site) (*explanation.Explanation, diag.List) {
		return v.ExplainInModule(ctx, s, e.dir.Set, address, e.relative, true)
	})
}

// relative returns the slash-separated path relative to the directory of the estate.
func (e *Estate) relative(path string) string {
	if rel, err := filepath.Rel(e.dir.Dir, path); err == nil && filepath.IsAbs(path) {
		return filepath.ToSlash(rel)
	}
	return path
}

// Text formats messages as plain text for users, with the lines of the files that they refer to. r is
// the result that contains the messages, or nil for messages of other methods.
func (e *Estate) Text(ds diag.List, r *Result) string {
	sets := []*source.Set{e.dir.Set}
	if e.opened != nil {
		sets = append(sets, e.opened.Sources())
	}
	if r != nil && r.files != nil {
		sets = append(sets, r.files)
	}
	var b strings.Builder
	for _, m := range ds {
		printer := diag.Printer{Set: sets[0]}
		for _, s := range sets {
			if m.At != nil && s.File(m.At.Filename) != nil {
				printer.Set = s
			}
		}
		fmt.Fprintln(&b, printer.Text(m))
	}
	return b.String()
}

// Close deletes the commits that were checked out for filters that compare commits.
func (e *Estate) Close(ctx context.Context) {
	if e.opened != nil {
		e.opened.Close(ctx)
	}
}
