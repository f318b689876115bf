package workdir

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// ValueOf returns the function that looks up the value of a root variable before the whole
// configuration is loaded. A value in given has precedence over the value of the unit.
func (c *Directory) ValueOf(given map[string]engine.InputValue) engine.ValueFunc {
	return func(ctx context.Context, v *config.Variable) (engine.InputValue, bool) {
		in, ok := given[v.Name]
		if !ok && c.Unit != nil {
			return c.Unit.One(ctx, v)
		}
		return in, ok
	}
}

// LoadOptions configures Load.
type LoadOptions struct {
	Vars        []VarFlag
	Input       bool // ask the user for values of missing variables
	Parallelism int
	Workspace   string          // "" means the selected workspace
	Saved       *Saved          // configuration of a saved plan, which replaces the one on disk; nil means none
	Files       *engine.Sources // files of the configuration; nil means those of the directory
	Partial     bool            // variables without a value are no error
	Const       bool            // with Partial: variables with const = true need a value, because module sources may use them
	Unapplied   bool            // inputs of a unit that need outputs which do not exist yet are no error
	Briefly     bool            // the program ends soon after the configuration is loaded
	StateOnly   bool            // report no warnings of the configuration: the command reads only the state
	RootOnly    bool            // errors in modules other than the root module are no error
	Query       bool            // the root module includes the query files of the directory
	ConfigDir   string          // directory of the configuration; "" means the working directory
	Observe     event.Sink      // receives the events; nil means the Host
}

// A Loaded is a loaded configuration with the values of its variables. Its caller must call Close.
type Loaded struct {
	Engine    *engine.Engine
	Vars      Variables
	Workspace string
	Plugins   *Plugins
	Early     diag.List // with RootOnly: errors about modules whose source depends on variables without a value

	c        *Directory
	encrypts parallel.Cache[struct{}, encrypts]
}

// Load loads the configuration of the directory. If the list contains errors, the Loaded is nil.
func Load(ctx context.Context, c *Directory, o LoadOptions) (*Loaded, diag.List) {
	workspace := o.Workspace
	if workspace == "" {
		var ds diag.List
		if workspace, ds = c.Workspace(); ds.HasErrors() {
			return nil, ds
		}
	}
	given, ds := GatherVariables(VarSources{Dir: c.Dir, FS: c.View, Env: c.Env, Flags: o.Vars, Set: c.Set, Read: c.Files})
	if ds.HasErrors() {
		return nil, ds
	}
	p := &Loaded{c: c, Workspace: workspace}
	if o.Saved != nil {
		p.encrypts.Pure(struct{}{}, func() encrypts { return encrypts{config: o.Saved.Encryption} })
	}
	var more diag.List
	if p.Plugins, more = c.Plugins(); more.HasErrors() {
		return nil, append(ds, more...)
	}
	ds = append(ds, more...)
	eo := p.engineOptions(o)
	expect(c, o)
	eo.Value = c.ValueOf(given.All())
	var queryDs func() diag.List
	if o.Query {
		queryDs = addQueries(c, &eo)
	}
	e, loadDs := engine.Open(ctx, eo)
	if e == nil {
		return nil, append(ds, loadDs...)
	}
	if queryDs != nil {
		loadDs = append(loadDs, queryDs()...)
	}
	p.use(e)
	values, more := given.For(e.Root().Variables)
	if c.Tolerant { // extra_arguments may set variables that this module does not declare
		more = more.AsWarnings()
	}
	ds = append(ds, more...)
	more = nil
	if c.Unit != nil {
		more = c.Unit.All(ctx, values, e.Root())
	}
	switch {
	case c.Tolerant:
		more = more.Errors().AsWarnings()
	case o.Partial && o.RootOnly: // the caller only reads state and files, for which the values are not needed
		more = more.AsWarnings()
	case o.Unapplied:
		more = slices.DeleteFunc(slices.Clone(more), func(m *diag.Message) bool { return m.Code == diag.CodeUnitNoOutputs })
	}
	ds = append(ds, more...)
	if !o.RootOnly && !o.Partial && o.Saved == nil {
		ds = append(ds, p.workspaceVariables(ctx, values)...)
	}
	asked := false
	if !slices.ContainsFunc(loadDs.Errors(), func(m *diag.Message) bool { return m.Code != module.CodeNotEarly }) { // if other errors exist, an answer does not help
		asked, more = p.askMissing(ctx, values, o)
		ds = append(ds, more...)
	}
	if asked && loadDs.HasErrors() { // a module source may need one of the answers
		e.Close()
		eo.Value = engine.Given(values)
		if e, loadDs = engine.Open(ctx, eo); e == nil {
			return nil, append(ds, loadDs...)
		}
		p.use(e)
	}
	p.Vars = values
	if o.RootOnly {
		for _, m := range loadDs {
			if m.Code == module.CodeNotEarly {
				p.Early = append(p.Early, m)
			}
		}
		loadDs = nil
	}
	if o.StateOnly {
		loadDs = loadDs.Errors()
	}
	if ds = append(loadDs, ds...); ds.HasErrors() {
		p.Close()
		return nil, ds
	}
	if hasPlugins(e) {
		c.host().Expect(0, true)
	}
	return p, ds
}

// addQueries adds the query files of the directory to the root module that the options load. The
// returned function returns the messages about the files; it must be called after the load.
func addQueries(c *Directory, o *engine.Options) func() diag.List {
	q, ds := config.LoadQueries(".", config.Options{FS: c.FilesOf(), Set: c.Set})
	if q.Empty() && !ds.HasErrors() {
		ds = append(ds, diag.Errorf(diag.CodeConfigNoQueries, nil, "No list blocks", "The directory has no query file with a list block. Create a file such as main.tfquery.hcl.")...)
	}
	o.Root.Change = func(path addr.Module, m *config.Module) *config.Module {
		if path != "" {
			return m
		}
		out, more := q.Into(m)
		ds = append(ds, more...)
		return out
	}
	return func() diag.List { return ds.Once() }
}

// hasPlugins reports whether a configuration needs providers other than the built-in one.
func hasPlugins(e *engine.Engine) bool {
	for of := range e.Requirements() {
		if !of.IsBuiltIn() {
			return true
		}
	}
	return false
}

// Of returns a Loaded for an engine that the caller has opened. The caller closes the engine; it must
// not call Close.
func Of(c *Directory, e *engine.Engine, values Variables) *Loaded {
	return &Loaded{c: c, Engine: e, Vars: values}
}

// heapPerByte is the expected growth of the heap, in bytes, for each byte of configuration: about the
// memory that a loaded configuration occupies. Until then, the garbage collector does not run.
const heapPerByte = 26

// smallHeap is the heap size, in bytes, below which garbage collection is not worthwhile.
const smallHeap = 24 << 20

// Allocations, in bytes, for each byte of configuration that is validated once. A program that ends
// after that does not collect them, up to checkedAtMost bytes.
const (
	checkedPerByte = 80
	checkedAtMost  = 256 << 20
)

// expect announces the expected growth of the heap to the Host. It depends on the size of the
// configuration in the directory, or in the saved plan.
func expect(c *Directory, o LoadOptions) {
	var text int64
	if o.Saved != nil {
		for _, b := range o.Saved.Files {
			text += int64(len(b))
		}
	} else {
		files, _ := config.Files(c.Dir, config.Options{})
		for _, f := range files {
			if f.Role != config.RoleBase && f.Role != config.RoleOverride {
				continue
			}
			if info, err := os.Stat(f.Path); err == nil {
				text += info.Size()
			}
		}
	}
	heap := max(text*heapPerByte, min(text*checkedPerByte, smallHeap))
	if o.Briefly {
		heap = max(heap, min(text*checkedPerByte, checkedAtMost))
	}
	c.host().Expect(heap, false)
}

// Expected growth of the heap, in bytes, for each byte of a plan file, which is compressed to about an
// eighth. plannedAtMost is the maximum for one file.
const (
	plannedPerByte = 8 * heapPerByte
	plannedAtMost  = 64 << 20
)

// ExpectPlan announces the expected growth of the heap for reading a plan file to the Host. size is the
// size of the file in bytes.
func (c *Directory) ExpectPlan(size int64) {
	c.host().Expect(min(size*plannedPerByte, plannedAtMost), false)
}

// EngineOptions returns the options for engines in the directory and the plugins that find their
// providers, for programs that open more than one engine.
func EngineOptions(c *Directory, o LoadOptions) (engine.Options, *Plugins, diag.List) {
	p := &Loaded{c: c, Workspace: o.Workspace}
	var ds diag.List
	if p.Workspace == "" {
		if p.Workspace, ds = c.Workspace(); ds.HasErrors() {
			return engine.Options{}, nil, ds
		}
	}
	var more diag.List
	p.Plugins, more = c.Plugins()
	ds = append(ds, more...)
	if o.Files == nil && !c.ownSources {
		o.Files = c.NewSources()
	}
	return p.engineOptions(o), p.Plugins, ds
}

func (p *Loaded) engineOptions(o LoadOptions) engine.Options {
	c := p.c
	out := c.Engine(p.Plugins, p.Encryption)
	out.Workspace, out.Set, out.Observe, out.Parallelism, out.Sources = p.Workspace, c.Set, c.host().Event, o.Parallelism, o.Files
	if o.ConfigDir != "" {
		out.Dir, out.DataDir = c.Path(o.ConfigDir), c.DataPath()
	}
	if o.Observe != nil {
		out.Observe = o.Observe
	}
	if c.Sources != nil && o.Files == nil && o.ConfigDir == "" {
		out.Sources = c.Sources
	} else if files := c.View; files != nil && o.Files == nil && o.ConfigDir == "" {
		out.Sources = &engine.Sources{FS: files}
	}
	if c.View != nil && o.Files == nil && o.ConfigDir == "" && o.Saved == nil {
		out.Files, out.FilesOnDisk = c.View, true // files on disk are those of an earlier run
	}
	if o.Saved != nil {
		out.Sources = &engine.Sources{FS: newSavedFiles(o.Saved.Files)}
		out.Overlay = map[string][]byte{}
		if m, ok := o.Saved.Files[ManifestName]; ok {
			out.Overlay[filepath.Join(c.DataDir(), "modules", "modules.json")] = m
		}
	}
	return out
}

func (p *Loaded) use(e *engine.Engine) {
	p.Engine = e
	p.c.host().Running(e.Close)
}

// Close stops the providers. It may be called more than once.
func (p *Loaded) Close() {
	p.c.host().Running(nil)
	p.Engine.Close()
}

// askMissing asks the user for the required variables that have no value, or returns an error for
// each of them. It adds the answers to values.
func (p *Loaded) askMissing(ctx context.Context, values Variables, o LoadOptions) (asked bool, ds diag.List) {
	missing := engine.Missing(values, p.Engine.Root().Variables)
	if o.Partial {
		missing = slices.DeleteFunc(missing, func(v *config.Variable) bool { return !o.Const || v.Const == nil || !*v.Const })
	}
	return p.ask(ctx, values, missing, o.Input)
}

// ask asks the user for the values of variables, or returns an error for each variable if the user
// cannot be asked. It adds the answers to values.
func (p *Loaded) ask(ctx context.Context, values Variables, missing []*config.Variable, input bool) (asked bool, ds diag.List) {
	if len(missing) > 0 && !(input && p.c.host().Asks()) {
		return false, MissingErrors(missing)
	}
	for i, v := range missing {
		text, err := p.c.host().Ask(ctx, Question{Variable: v, Text: v.Description})
		if err != nil {
			return asked, MissingErrors(missing[i:])
		}
		values[v.Name] = engine.InputValue{Text: &text, From: source.Layer{Kind: source.Prompt}}
		asked = true
	}
	return asked, nil
}

// SelectProviders selects installed packages for the providers that the configuration and the states
// need. It warns about development overrides, even if no provider is needed.
func (p *Loaded) SelectProviders(ctx context.Context, states ...*state.State) diag.List {
	p.Engine.ExpectStates(states...)
	req := p.Plugins.Packaged(p.Required(states...))
	if len(req) == 0 {
		return install.OverrideWarning(p.Plugins.InstallOptions(), false)
	}
	return p.Plugins.Choose(ctx, req)
}

// KeptSchemas returns a function that returns the schema of a provider if it is known without a
// process, or nil; see Plugins.KeptSchemas.
func (p *Loaded) KeptSchemas(ctx context.Context) func(addr.Provider) *schema.Provider {
	return p.Plugins.KeptSchemas(ctx, p.Required())
}

// Required returns the providers that the configuration and the states need. A state may be nil.
func (p *Loaded) Required(states ...*state.State) install.Requirements {
	return Required(p.Engine, p.c.Env, states...)
}

// Operation returns an operation on the loaded configuration. Run sets its state.
func (p *Loaded) Operation() *Operation {
	return &Operation{Engine: p.Engine, Env: p.c.Env, Values: p.Vars, Unit: p.c.Unit, Host: p.c.host(), Choose: p.choose}
}

func (p *Loaded) choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List {
	return p.Plugins.Choose(ctx, needed)
}

// Translate returns the state with the provider addresses that the configuration uses; see the
// function Translate.
func (p *Loaded) Translate(s *state.State) *state.State {
	return Translate(p.Engine, p.c.Env, s)
}

// BackendFile reads a file that -backend-config names, and adds its text to the Set.
func (c *Directory) BackendFile(name string) (*source.File, error) {
	src, err := readfile.Given(c.Path(name))
	f := &source.File{Path: name, Bytes: src, Layer: &source.Layer{Kind: source.BackendFile}}
	if err == nil {
		c.Set.Add(f)
	}
	return f, err
}
