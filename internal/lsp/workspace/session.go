package workspace

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/rules/lint"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
)

// A Session is the state of one client.
type Session struct {
	Files *Files
	Index *Index

	base    *workdir.Directory
	who     string
	plugins *workdir.Plugins // nil if the settings of the user cannot be read
	slots   chan struct{}    // limits how many results are computed at once
	trust   trust

	modules results[*Module]
	units   results[*Unit]
	stacks  results[*Stack]

	installed installedDirs

	schemas atomic.Int32 // changes if the cache of schemas has changed

	mu        sync.Mutex
	ruleSets  map[string]*ruleSet
	generated map[string]string // path of the stack file, by the directory of a unit that it generates
}

// New returns a session with the settings of a directory. who is user@host.
func New(d *workdir.Directory, who string) *Session {
	s := &Session{Files: &Files{}, who: who, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))} // one processor is left for other requests
	s.trust.now = d.Now
	if !d.NoPrograms {
		s.trust.programs = d.Run
	}
	base := *d
	base.Host, base.Stderr, base.KeptSchemas = workdir.Silent{}, nil, true
	base.WithoutPrograms() // before the backends, which may start programs too
	backends := base.NewBackends(who)
	base.Backends = func() *backend.Set { return backends }
	s.base = &base
	s.plugins, _ = base.Plugins() // without settings, providers count as not installed
	s.Index = newIndex(s.Files, base.Now)
	return s
}

// directory returns the directory dir, whose files are read through r.
func (s *Session) directory(dir string, r *reading) *workdir.Directory {
	d := s.base.In(dir, s.base.Env, nil)
	d.Set, d.Files, d.View, d.Tolerant = &source.Set{}, r.kept(), r, true
	return d
}

// take waits until a result may be computed. ok is false if ctx ends first.
func (s *Session) take(ctx context.Context) (release func(), ok bool) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, ctx.Err() == nil
	case <-ctx.Done():
		return func() {}, false
	}
}

// A Module is the result of loading one directory as a root module.
type Module struct {
	Dir    string
	Config *config.Module
	Diags  diag.List // with absolute paths
	Lint   []*finding.Finding

	s       *Session
	reading *reading
	linter  *lint.Linter // the last one, whose facts about files the next one takes; may be nil
	engine  *engine.Engine
	sources *engine.Sources // the files and the tree of modules, for the engines of m
	using   gate            // held while the engine is used
	loaded  *workdir.Loaded
	given   *workdir.GivenVariables
	opened  bool // loaded was computed
	ruled   *Rulings
	// instances contains the results of Instances, by its argument.
	instances map[string][]string
}

// Module returns the result for a directory with the files as they are now. It is nil if ctx ended.
func (s *Session) Module(ctx context.Context, dir string) *Module {
	return s.modules.get(ctx, s, dir, s.load)
}

func (m *Module) read() *reading { return m.reading }

func (s *Session) load(ctx context.Context, dir string, before *Module) *Module {
	m := &Module{Dir: dir, s: s, reading: newReading(s.Files, dir), using: newGate()}
	if before != nil {
		m.linter = before.linter
	}
	version := s.schemas.Load()
	m.reading.valid = func() bool { return s.schemas.Load() == version }
	d := s.directory(dir, m.reading)
	workspace, ds := d.Workspace()
	if ds.HasErrors() {
		workspace = "default"
	}
	var plugins *workdir.Plugins
	if s.plugins != nil {
		plugins = s.plugins.In(d)
	}
	o := d.Engine(plugins, nil)
	m.sources = &engine.Sources{FS: m.reading, Parses: before.parses().Next()}
	o.Workspace, o.Set, o.Sources = workspace, d.Set, m.sources
	e, ds := engine.Open(ctx, o)
	if e == nil {
		m.Config = &config.Module{Dir: dir, Set: d.Set}
		m.Diags = m.absolute(ds)
		return m
	}
	m.engine, m.Config = e, e.Root()
	if plugins != nil {
		_ = plugins.Choose(ctx, e.Requirements()) // a provider that is not installed has no schema
		m.reading.note(plugins.LockPath())
	}
	m.Diags = m.absolute(e.ValidateOffline(ctx, ds))
	if on, err := lint.Select(nil, nil, nil); err == nil && !m.Diags.HasErrors() {
		m.linter = m.linter.Next(on, dir)
		m.Lint = m.linter.Module(lint.NewModule(m.Config, m.path))
	}
	return m
}

// parses returns the parsed files of the module. It is nil if m is nil.
func (m *Module) parses() *config.Parses {
	if m == nil || m.sources == nil {
		return nil
	}
	return m.sources.Parses
}

func (m *Module) close() {
	m.using.wait()
	defer m.using.leave()
	if m.loaded != nil {
		m.loaded.Close()
	}
	if m.engine != nil {
		m.engine.Close()
	}
}

// path returns the absolute path of a file in the ranges of the module.
func (m *Module) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(m.Dir, name)
}

// absolute returns messages with absolute paths, and with the notes about overrides.
func (m *Module) absolute(ds diag.List) diag.List {
	out := make(diag.List, 0, len(ds))
	for _, d := range ds {
		c := *d
		c.Notes = slices.Clone(d.Notes)
		if d.At != nil {
			for _, r := range m.Config.Set.Remarks(*d.At) {
				c.Notes = append(c.Notes, diag.Note{Text: r.Text, At: &r.At})
			}
		}
		out = append(out, &c)
	}
	return out.Rename(m.path).Once()
}

// Range returns the range with the absolute path.
func (m *Module) Range(at source.Range) source.Range {
	at.Filename = m.path(at.Filename)
	return at
}

// Replaced returns the notes about the settings and blocks that the name at a position replaced. at has
// an absolute path, and the returned ranges too.
func (m *Module) Replaced(at source.Range) []source.Remark {
	rel, err := filepath.Rel(m.Dir, at.Filename)
	if err != nil {
		return nil
	}
	at.Filename = rel
	out := slices.Clone(m.Config.Set.Remarks(at))
	for i := range out {
		out[i].At = m.Range(out[i].At)
	}
	return out
}

// Schema returns the schema of a provider, or nil if it is not in the cache.
func (m *Module) Schema(ctx context.Context, a addr.Provider) *schema.Provider {
	if m.engine == nil {
		return nil
	}
	if !m.using.enter(ctx) {
		return nil
	}
	defer m.using.leave()
	p, ds := m.engine.Schema(ctx, a)
	if ds.HasErrors() {
		return nil
	}
	return p
}

// A Requirement is a provider that a module requires.
type Requirement struct {
	Provider    addr.Provider
	Constraints string // separated by commas; "" means any version
}

// WithoutSchema returns the providers of the module and those that it calls whose schemas are not known,
// sorted.
func (m *Module) WithoutSchema(ctx context.Context) (out []Requirement) {
	if m.engine == nil {
		return nil
	}
	for a, constraints := range m.engine.Requirements() {
		if a.IsBuiltIn() || m.Schema(ctx, a) != nil {
			continue
		}
		var texts []string
		for _, c := range constraints {
			if !slices.Contains(texts, c.Text) {
				texts = append(texts, c.Text)
			}
		}
		slices.Sort(texts)
		out = append(out, Requirement{a, strings.Join(texts, ", ")})
	}
	slices.SortFunc(out, func(a, b Requirement) int { return strings.Compare(a.Provider.String(), b.Provider.String()) })
	return out
}

// SchemasChanged makes modules be loaded again, because the cache has schemas that it did not have.
func (s *Session) SchemasChanged() { s.schemas.Add(1) }

// Resource returns the schema of a type of resource, or nil.
func (m *Module) Resource(ctx context.Context, mode addr.Mode, typ, local string) *schema.Resource {
	if local == "" {
		local = config.ImpliedProvider(typ)
	}
	if p := m.Schema(ctx, m.Config.Source(local)); p != nil {
		return p.Resource(mode, typ)
	}
	return nil
}

// Tree returns the tree of modules, or nil.
func (m *Module) Tree() *config.Tree {
	if m.engine == nil {
		return nil
	}
	return m.engine.Tree()
}

// open loads the configuration with the values of its variables. It returns false if the configuration
// has errors. The caller holds m.using.
func (m *Module) open(ctx context.Context) (bool, diag.List) {
	if m.opened {
		return m.loaded != nil, nil
	}
	m.opened = true
	d := m.s.directory(m.Dir, m.reading)
	d.Sources, d.Set = m.sources, m.Config.Set // without reading and building all again
	var ds diag.List
	m.loaded, ds = workdir.Load(ctx, d, workdir.LoadOptions{Partial: true})
	if m.loaded == nil {
		m.loaded, ds = workdir.Load(ctx, d, workdir.LoadOptions{Partial: true, RootOnly: true})
	}
	if ctx.Err() != nil { // the next request repeats it
		if m.loaded != nil {
			m.loaded.Close()
		}
		m.loaded, m.opened = nil, false
		return false, canceled()
	}
	if m.loaded == nil {
		return false, ds
	}
	m.given, _ = workdir.GatherVariables(workdir.VarSources{Dir: m.Dir, FS: d.View, Env: d.Env, Read: d.Files})
	if m.loaded.Plugins != nil {
		_ = m.loaded.Plugins.Choose(ctx, m.loaded.Engine.Requirements())
	}
	return true, nil
}

// canceled returns the error of a request that the client canceled.
func canceled() diag.List {
	return diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The request was canceled.")
}

// maxInstances is the number of instances of a called module that are listed.
const maxInstances = 100

// Instances returns the addresses of the instances of a module that the module calls, such as
// module.app["a"].module.db, at most maxInstances. calls is such an address without keys. Instances that are not
// known have one address without a key. The result is nil, and not empty, if there is no such call, or if the module
// has errors.
func (m *Module) Instances(ctx context.Context, calls string) []string {
	if !m.using.enter(ctx) {
		return nil
	}
	defer m.using.leave()
	if known, ok := m.instances[calls]; ok {
		return known
	}
	if ok, _ := m.open(ctx); !ok {
		return nil
	}
	out := textsOf(m.loaded.Engine.ModuleInstances(ctx, callNames(calls), engine.ExplainOptions{Variables: m.loaded.Vars}, maxInstances))
	if ctx.Err() != nil {
		return nil
	}
	if m.instances == nil {
		m.instances = map[string][]string{}
	}
	m.instances[calls] = out
	return out
}

// callNames returns the names of the calls in an address such as module.app.module.db.
func callNames(calls string) (out []string) {
	for _, step := range addr.ModuleInstance(calls).Steps() {
		out = append(out, step.Name)
	}
	return out
}

// textsOf returns addresses as texts. The result is nil only if all is.
func textsOf(all []addr.ModuleInstance) []string {
	if all == nil {
		return nil
	}
	out := []string{}
	for _, a := range all {
		out = append(out, string(a))
	}
	return out
}

// Explain explains the value at an address, without a state.
func (m *Module) Explain(ctx context.Context, address string) (*explanation.Explanation, diag.List) {
	if !m.using.enter(ctx) {
		return nil, canceled()
	}
	defer m.using.leave()
	if ok, ds := m.open(ctx); !ok {
		if len(ds) == 0 {
			ds = diag.Errorf(diag.CodeConfigReadDir, nil, "Failed to read module directory", "The configuration in %s has errors.", m.Dir)
		}
		return nil, ds
	}
	o := engine.ExplainOptions{Variables: m.loaded.Vars, Lost: m.given.Lost}
	return m.loaded.Engine.Explain(ctx, address, o)
}

// Print returns the module after merging, with the origin of each argument.
func (m *Module) Print() (string, error) {
	var b strings.Builder
	err := m.Config.Print(&b, config.PrintOptions{Origins: true, Hide: true})
	return b.String(), err
}
