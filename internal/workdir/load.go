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
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// ValueOf is the value of a root variable before the configuration is loaded as a whole: one
// that was given, else that of the unit.
func (c *Directory) ValueOf(given map[string]engine.InputValue) engine.ValueFunc {
	return func(ctx context.Context, v *config.Variable) (engine.InputValue, bool) {
		in, ok := given[v.Name]
		if !ok && c.Unit != nil {
			return c.Unit.One(ctx, v)
		}
		return in, ok
	}
}

// LoadOptions say how a configuration is loaded.
type LoadOptions struct {
	Vars        []VarFlag
	Input       bool // whether missing variables may be asked for
	Parallelism int
	Workspace   string          // "" for the selected one
	Saved       *Saved          // the configuration of a saved plan, in place of the one on disk
	Files       *engine.Sources // the files of the configuration; nil means those of the directory
	Partial     bool            // go on with variables missing: they are not needed
	Const       bool            // with Partial: variables with const = true need values, because sources of modules may use them
	Unapplied   bool            // so may be those that a unit makes of outputs that do not exist yet
	Briefly     bool            // the program ends when the configuration was looked at once
	StateOnly   bool            // report no warnings of the configuration: the command reads only the state
	RootOnly    bool            // go on though other modules cannot be loaded
	ConfigDir   string          // the directory of the configuration; "" means the working directory
	Observe     event.Sink      // receives the events; nil means the Host
}

// A Loaded is a loaded configuration with the values of its variables.
type Loaded struct {
	Engine    *engine.Engine
	Vars      Variables
	Workspace string
	Plugins   *Plugins
	Early     diag.List // with RootOnly: errors about modules whose source depends on variables without a value

	c        *Directory
	encrypts parallel.Cache[struct{}, encrypts]
}

// Load loads the configuration of the directory. With errors it returns nil.
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
	e, loadDs := engine.Open(ctx, eo)
	if e == nil {
		return nil, append(ds, loadDs...)
	}
	p.use(e)
	values, more := given.For(e.Root().Variables)
	if c.Tolerant { // extra_arguments may give what this module does not declare
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
	case o.Partial && o.RootOnly: // which keeps nobody from looking at state and files
		more = more.AsWarnings()
	case o.Unapplied:
		more = slices.DeleteFunc(slices.Clone(more), func(m *diag.Message) bool { return m.Code == diag.CodeUnitNoOutputs })
	}
	ds = append(ds, more...)
	if !o.RootOnly && !o.Partial && o.Saved == nil {
		ds = append(ds, p.workspaceVariables(ctx, values)...)
	}
	asked := false
	if !slices.ContainsFunc(loadDs.Errors(), func(m *diag.Message) bool { return m.Code != module.CodeNotEarly }) { // an answer would not help
		asked, more = p.askMissing(ctx, values, o)
		ds = append(ds, more...)
	}
	if asked && loadDs.HasErrors() { // an answer may be what a module's source needs
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

// hasPlugins reports whether a configuration needs other providers than the one that is built in.
func hasPlugins(e *engine.Engine) bool {
	for of := range e.Requirements() {
		if !of.IsBuiltIn() {
			return true
		}
	}
	return false
}

// Of is a project of a configuration that somebody else has opened, and closes.
func Of(c *Directory, e *engine.Engine, values Variables) *Loaded {
	return &Loaded{c: c, Engine: e, Vars: values}
}

// heapPerByte is up to how many bytes of memory for a byte of configuration the
// collector waits: about what comes of it that stays.
const heapPerByte = 26

// smallHeap is a heap of which nobody minds that it is not collected.
const smallHeap = 24 << 20

// What is allocated for a byte of configuration when all of it is checked once. Up to a
// limit, a program that ends then does not collect it.
const (
	checkedPerByte = 80
	checkedAtMost  = 256 << 20
)

// expect prepares the garbage collector for the size of the configuration in the directory, or of
// the saved one.
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

// What a plan file takes for each of its bytes once it is read with its configuration: it
// is packed to an eighth. No more than the limit is expected of it, whatever it holds.
const (
	plannedPerByte = 8 * heapPerByte
	plannedAtMost  = 64 << 20
)

// ExpectPlan readies the collector for a plan file.
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

// Close ends the project's providers. It may be called more than once.
func (p *Loaded) Close() {
	p.c.host().Running(nil)
	p.Engine.Close()
}

// askMissing asks for the required variables that have no value, or says that
// they have none.
func (p *Loaded) askMissing(ctx context.Context, values Variables, o LoadOptions) (asked bool, ds diag.List) {
	missing := engine.Missing(values, p.Engine.Root().Variables)
	if o.Partial {
		missing = slices.DeleteFunc(missing, func(v *config.Variable) bool { return !o.Const || v.Const == nil || !*v.Const })
	}
	return p.ask(ctx, values, missing, o.Input)
}

// ask asks for variables that have no value, or says that they have none.
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

// SelectProviders finds the installed packages of the providers that configuration and states
// need. It warns about development overrides, also if no provider is needed.
func (p *Loaded) SelectProviders(ctx context.Context, states ...*state.State) diag.List {
	req := p.Plugins.Packaged(p.Required(states...))
	if len(req) == 0 {
		return install.OverrideWarning(p.Plugins.InstallOptions(), false)
	}
	return p.Plugins.Choose(ctx, req)
}

// Required are the providers that configuration and states need. A state may be nil.
func (p *Loaded) Required(states ...*state.State) install.Requirements {
	return Required(p.Engine, p.c.Env, states...)
}

// Operation is what is done with the project, once its state was taken.
func (p *Loaded) Operation() *Operation {
	return &Operation{Engine: p.Engine, Env: p.c.Env, Values: p.Vars, Host: p.c.host(), Choose: p.choose}
}

func (p *Loaded) choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List {
	return p.Plugins.Choose(ctx, needed)
}

// Translate gives providers in a state the addresses that configuration means.
func (p *Loaded) Translate(s *state.State) *state.State {
	return Translate(p.Engine, p.c.Env, s)
}

// BackendFile reads a file that -backend-config names.
func (c *Directory) BackendFile(name string) (*source.File, error) {
	src, err := readfile.Given(c.Path(name))
	f := &source.File{Path: name, Bytes: src, Layer: &source.Layer{Kind: source.BackendFile}}
	if err == nil {
		c.Set.Add(f)
	}
	return f, err
}
