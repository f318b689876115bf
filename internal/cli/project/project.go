// Package project opens the folder that a command works in: its configuration with the
// values of variables, its providers, the backend and the state. What it opens is that of
// internal/project, which programs that embed Terrace open too; here are the views, prompts
// and interrupts of the command line around it.
//
// Main types: Project, a loaded configuration with the call that loaded it; Place, where its
// state is; Options, how it is loaded. The one rule: a project that was loaded is closed by
// whoever loaded it, since its providers run until then.
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

// Options say how a configuration is loaded.
type Options = workdir.LoadOptions

// A Project is a loaded configuration, with the call of the command that loaded it.
type Project struct {
	*command.Call
	*workdir.Loaded
}

// Load loads the configuration of the working folder. With errors the project is nil.
func Load(ctx context.Context, c *command.Call, o Options) (*Project, diag.List) {
	p, ds := workdir.Load(ctx, c.Directory, o)
	if p == nil {
		return nil, ds
	}
	return &Project{c, p}, ds
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
