// Package project opens the folder that a command works in: its configuration with the
// values of variables, its providers, the backend and the state.
//
// Main types: Project, a loaded configuration with what runs it; Place, where its state
// is; Options, how it is loaded. The one rule: a project that was
// loaded is closed by whoever loaded it, since its providers run until then.
package project

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/folder"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/vars"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// Options say how a configuration is loaded.
type Options struct {
	Vars        []vars.Flag
	Input       bool // whether missing variables may be asked for
	Parallelism int
	Workspace   string            // "" for the selected one
	Saved       map[string][]byte // the files of a saved plan, in place of those on disk
	Files       *engine.Sources   // the working folder's files, shared with other steps; nil: read anew
	Partial     bool              // go on with variables missing: they are not needed
	Unapplied   bool              // so may be those that a unit makes of outputs that do not exist yet
	Briefly     bool              // the program ends when the configuration was looked at once
	RootOnly    bool              // go on though other modules cannot be loaded
	ConfigDir   string            // the folder of the configuration; "" is the working folder
	Observe     event.Sink        // hears what happens; nil: the report
}

// A Project is a loaded configuration with the values of its variables.
type Project struct {
	*command.Call
	Engine    *engine.Engine
	Vars      vars.Values
	Workspace string
	Plugins   *folder.Plugins

	encrypts     sync.Once
	encryption   *encryption.Config
	encryptionDs diag.List
}

// Load loads the configuration of the working folder. With errors the project
// is nil.
func Load(ctx context.Context, c *command.Call, o Options) (*Project, diag.List) {
	workspace := o.Workspace
	if workspace == "" {
		var ds diag.List
		if workspace, ds = c.Folder().Workspace(); ds.HasErrors() {
			return nil, ds
		}
	}
	given, ds := vars.Gather(vars.Sources{Dir: c.Dir, FS: Virtual(c), Env: c.Env, Flags: o.Vars, Set: c.Report.Set})
	if ds.HasErrors() {
		return nil, ds
	}
	p := &Project{Call: c, Workspace: workspace}
	var more diag.List
	if p.Plugins, more = c.Folder().Plugins(); more.HasErrors() {
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
	ds = append(ds, more...)
	more = nil
	if c.Unit != nil && c.Unit.Values != nil {
		more = c.Unit.Values(ctx, values, e.Root())
	}
	switch {
	case c.Unit != nil && c.Unit.Tolerant:
		more = more.Errors().AsWarnings()
	case o.Partial && o.RootOnly: // which keeps nobody from looking at state and files
		more = more.AsWarnings()
	case o.Unapplied:
		more = slices.DeleteFunc(slices.Clone(more), func(m *diag.Message) bool { return m.Code == "unit/no-outputs" })
	}
	ds = append(ds, more...)
	if !o.RootOnly && !o.Partial && o.Saved == nil {
		ds = append(ds, p.workspaceVariables(ctx, values)...)
	}
	asked := false
	if !slices.ContainsFunc(loadDs.Errors(), func(m *diag.Message) bool { return m.CodeName() != module.CodeNotEarly }) { // an answer would not help
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
		loadDs = nil
	}
	if ds = append(loadDs, ds...); ds.HasErrors() {
		p.Close()
		return nil, ds
	}
	return p, ds
}

// heapPerByte is up to how many bytes of memory for a byte of configuration the
// collector waits: about what its expressions take, all of them built.
const heapPerByte = 26

// What is allocated for a byte of configuration when all of it is checked once. Up to a
// limit, a program that ends then does not collect it.
const (
	checkedPerByte = 80
	checkedAtMost  = 256 << 20
)

// expect readies the collector for the configuration of the working folder, or
// for the saved one.
func expect(c *command.Call, o Options) {
	if c.ExpectHeap == nil {
		return
	}
	var text int64
	for _, b := range o.Saved {
		text += int64(len(b))
	}
	if o.Saved == nil {
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
	heap := text * heapPerByte
	if o.Briefly {
		heap = max(heap, min(text*checkedPerByte, checkedAtMost))
	}
	c.ExpectHeap(heap)
}

// What a plan file takes for each of its bytes once it is read with its configuration: it
// is packed to an eighth. No more than the limit is expected of it, whatever it holds.
const (
	plannedPerByte = 8 * heapPerByte
	plannedAtMost  = 64 << 20
)

// expectPlan readies the collector for a plan file.
func expectPlan(c *command.Call, size int64) {
	if c.ExpectHeap != nil {
		c.ExpectHeap(min(size*plannedPerByte, plannedAtMost))
	}
}

// EngineOptions are the options for engines on the working folder, and what finds their
// providers, for commands that open more than one.
func EngineOptions(c *command.Call, o Options) (engine.Options, *folder.Plugins, diag.List) {
	p := &Project{Call: c, Workspace: o.Workspace}
	var ds diag.List
	if p.Workspace == "" {
		if p.Workspace, ds = c.Folder().Workspace(); ds.HasErrors() {
			return engine.Options{}, nil, ds
		}
	}
	var more diag.List
	p.Plugins, more = c.Folder().Plugins()
	ds = append(ds, more...)
	if o.Files == nil {
		o.Files = Files(c)
	}
	return p.engineOptions(o), p.Plugins, ds
}

func (p *Project) engineOptions(o Options) engine.Options {
	out := p.Folder().Engine(p.Plugins, p.Encryption)
	out.Workspace, out.Set, out.Observe, out.Parallelism, out.Sources = p.Workspace, p.Report.Set, p.Report.Event, o.Parallelism, o.Files
	if o.ConfigDir != "" {
		out.Dir, out.DataDir = p.Path(o.ConfigDir), p.DataPath()
	}
	if o.Observe != nil {
		out.Observe = o.Observe
	}
	if p.Unit != nil && p.Unit.Sources != nil && o.Files == nil {
		out.Sources = p.Unit.Sources
	} else if files := Virtual(p.Call); files != nil && o.Files == nil && o.ConfigDir == "" {
		out.Sources = &engine.Sources{FS: files}
	}
	if o.Saved != nil {
		out.Sources = &engine.Sources{FS: newSavedFiles(o.Saved)}
		out.Overlay = map[string][]byte{}
		if m, ok := o.Saved[ManifestName]; ok {
			out.Overlay[filepath.Join(p.DataDir(), "modules", "modules.json")] = m
		}
	}
	return out
}

func (p *Project) use(e *engine.Engine) {
	p.Engine = e
	p.Interrupts.EndsProviders(e.Close)
}

// Close ends the project's providers. It may be called more than once.
func (p *Project) Close() {
	p.Interrupts.EndsProviders(nil)
	p.Engine.Close()
}

// askMissing asks for the required variables that have no value, or says that
// they have none.
func (p *Project) askMissing(ctx context.Context, values vars.Values, o Options) (asked bool, ds diag.List) {
	if o.Partial {
		return false, nil
	}
	return p.ask(ctx, values, engine.Missing(values, p.Engine.Root().Variables), o.Input)
}

// ask asks for variables that have no value, or says that they have none.
func (p *Project) ask(ctx context.Context, values vars.Values, missing []*config.Variable, input bool) (asked bool, ds diag.List) {
	if len(missing) > 0 && !p.Prompt.May(input) {
		return false, vars.MissingErrors(missing)
	}
	for i, v := range missing {
		text, err := p.Prompt.Ask(ctx, prompt.Question{Title: prompt.Variable(v), Text: v.Description, Secret: v.Sensitive})
		if err != nil {
			return asked, vars.MissingErrors(missing[i:])
		}
		values[v.Name] = engine.InputValue{Text: &text, From: source.Layer{Kind: source.Prompt}}
		asked = true
	}
	return asked, nil
}

// SelectProviders finds the installed packages of the providers that
// configuration and state need.
func (p *Project) SelectProviders(ctx context.Context, states ...*state.State) diag.List {
	return p.Plugins.Choose(ctx, p.Required(states...))
}

// Required are the providers that configuration and states need. A state may be nil.
func (p *Project) Required(states ...*state.State) install.Requirements {
	return operation.Required(p.Engine, p.Env, states...)
}

// Operation is what is done with the project, once its state was taken.
func (p *Project) Operation() *operation.Operation {
	return &operation.Operation{Engine: p.Engine, Env: p.Env, Values: p.Vars, Choose: p.choose}
}

func (p *Project) choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List {
	return p.Plugins.Choose(ctx, needed)
}

// Translate gives providers in a state the addresses that configuration means.
func (p *Project) Translate(s *state.State) *state.State {
	return operation.Translate(p.Engine, p.Env, s)
}

// Schemas serves the views with the schemas of running providers. A provider
// that cannot be asked has none, and its message is kept.
type Schemas struct {
	ctx    context.Context
	engine *engine.Engine

	mu     sync.Mutex
	failed map[addr.Provider]bool
	Ds     diag.List
}

func NewSchemas(ctx context.Context, e *engine.Engine) *Schemas {
	return &Schemas{ctx: ctx, engine: e, failed: map[addr.Provider]bool{}}
}

func (p *Project) Schemas(ctx context.Context) *Schemas {
	return NewSchemas(ctx, p.Engine)
}

// Resource implements view.Schemas.
func (s *Schemas) Resource(a addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	if sp := s.of(a); sp != nil {
		return sp.Resource(mode, typ)
	}
	return nil
}

// of is the schema of a provider; nil where it cannot be had, which is reported once.
func (s *Schemas) of(a addr.Provider) *schema.Provider {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed[a] {
		return nil
	}
	sp, ds := s.engine.Schema(s.ctx, a)
	if ds.HasErrors() || sp == nil {
		s.failed[a] = true
		s.Ds = append(s.Ds, ds...)
		return nil
	}
	return sp
}

var _ view.Schemas = (*Schemas)(nil)

// LoadInstalled loads a configuration without the modules that are not here, or
// that have mistakes in them, which is a warning.
func LoadInstalled(ctx context.Context, c *command.Call, o Options) (*Project, diag.List) {
	p, ds := Load(ctx, c, o)
	missing := func(m *diag.Message) bool {
		return m.Severity == diag.Warning || module.Missing(m) || m.At != nil && filepath.Dir(m.At.Filename) != "."
	}
	if p != nil || slices.ContainsFunc(ds, func(m *diag.Message) bool { return !missing(m) }) {
		return p, ds
	}
	o.RootOnly = true
	p, more := Load(ctx, c, o)
	if p == nil {
		return nil, more
	}
	for _, m := range ds {
		m.Severity = diag.Warning
	}
	return p, ds
}

// ProviderConfig implements planjson.Schemas.
func (s *Schemas) ProviderConfig(a addr.Provider) *schema.Block {
	if sp := s.of(a); sp != nil {
		return sp.Config
	}
	return nil
}
