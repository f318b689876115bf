// Package project opens the directory that a command works in: the configuration with the
// values of its variables, the providers, the backend and the state. It adds the views,
// prompts and interrupts of the command line to package workdir, which programs that embed
// Terrace use too.
//
// Main types: Project, a loaded configuration with the call that loaded it; Schemas, the
// provider schemas for the views. The one rule: the caller that loads a project closes it,
// since its providers run until then.
package project

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/schema"
)

// Options contains the settings for loading a configuration.
type Options = workdir.LoadOptions

// A Project is a loaded configuration, with the call of the command that loaded it.
type Project struct {
	*command.Call
	*workdir.Loaded
}

// Load loads the configuration of the working directory. After errors, the project is nil.
func Load(ctx context.Context, c *command.Call, o Options) (*Project, diag.List) {
	p, ds := workdir.Load(ctx, c.Directory, o)
	if p == nil {
		return nil, ds
	}
	return &Project{c, p}, ds
}

// Schemas provides the schemas of running providers to the views. If the schema of a provider
// cannot be read, Schemas returns nil for it and adds the error to Ds once. Its methods may be
// called concurrently.
type Schemas struct {
	ctx    context.Context
	engine *engine.Engine
	saved  map[addr.Provider]*schema.Provider // schemas in a plan file, which are used first

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

// SavedSchemas returns the schemas for showing a saved plan: those in its file, and others from
// providers, which it selects only if the file lacks some.
func (p *Project) SavedSchemas(ctx context.Context, f *workdir.SavedPlan) (*Schemas, diag.List) {
	out := NewSchemas(ctx, p.Engine)
	found, complete, err := f.SchemasFor(p.Engine.Tree())
	if err != nil {
		return nil, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the saved plan", "%s.", diag.Reason(err))
	}
	out.saved = found
	if complete {
		return out, nil
	}
	return out, p.SelectProviders(ctx, f.Plan.PrevRun, f.Plan.Prior)
}

// Resource implements view.Schemas.
func (s *Schemas) Resource(a addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	if sp := s.of(a); sp != nil {
		return sp.Resource(mode, typ)
	}
	return nil
}

// of returns the schema of a provider, or nil if it cannot be read.
func (s *Schemas) of(a addr.Provider) *schema.Provider {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sp := s.saved[a]; sp != nil {
		return sp
	}
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

// LoadInstalled is Load, but ignores modules that are not installed or have errors. It reports
// their errors as warnings.
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

// WarnUninitialized prints errors that init would resolve as warnings on standard error. Commands
// call it if they continue without init where OpenTofu 1.12.6 reports these errors. In a unit it
// does nothing, because Terragrunt runs init before a command.
func (p *Project) WarnUninitialized(ds diag.List) {
	if p.Unit == nil {
		p.Report.AsideHere(ds.Errors().AsWarnings())
	}
}

// NeedsInit returns the errors that OpenTofu 1.12.6 reports before every command that uses
// providers or the state: the directory is not initialized for its backend, or a provider is not
// installed.
func (p *Project) NeedsInit(ctx context.Context) diag.List {
	_, ds := p.Call.Backend().Current(p.Engine.Root().Backend, p.Static(ctx))
	for _, m := range ds {
		if m.Code == diag.CodeBackendInit {
			return diag.List{m}
		}
	}
	return p.SelectProviders(ctx).Errors()
}

// ProviderConfig implements planjson.Schemas.
func (s *Schemas) ProviderConfig(a addr.Provider) *schema.Block {
	if sp := s.of(a); sp != nil {
		return sp.Config
	}
	return nil
}
