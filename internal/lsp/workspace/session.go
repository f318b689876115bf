package workspace

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/sys"
	estates "github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/modules"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/rules/lint"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/migrate"
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
	mu      sync.Mutex      // held while the engine is used
	loaded  *workdir.Loaded
	given   *workdir.GivenVariables
	opened  bool // loaded was computed
}

// Module returns the result for a directory with the files as they are now. It is nil if ctx ended.
func (s *Session) Module(ctx context.Context, dir string) *Module {
	return s.modules.get(ctx, s, dir, s.load)
}

func (m *Module) read() *reading { return m.reading }

func (s *Session) load(ctx context.Context, dir string, before *Module) *Module {
	m := &Module{Dir: dir, s: s, reading: newReading(s.Files, dir)}
	if before != nil {
		m.linter = before.linter
	}
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
	m.mu.Lock()
	defer m.mu.Unlock()
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
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ds := m.engine.Schema(ctx, a)
	if ds.HasErrors() {
		return nil
	}
	return p
}

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

// Explain explains the value at an address, without a state.
func (m *Module) Explain(ctx context.Context, address string) (*explanation.Explanation, diag.List) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.opened {
		m.opened = true
		d := m.s.directory(m.Dir, m.reading)
		d.Sources, d.Set = m.sources, m.Config.Set // without reading and building all again
		var ds diag.List
		m.loaded, ds = workdir.Load(ctx, d, workdir.LoadOptions{Partial: true})
		if m.loaded == nil {
			m.loaded, ds = workdir.Load(ctx, d, workdir.LoadOptions{Partial: true, RootOnly: true})
		}
		if m.loaded == nil {
			return nil, ds
		}
		m.given, _ = workdir.GatherVariables(workdir.VarSources{Dir: m.Dir, FS: d.View, Env: d.Env, Read: d.Files})
		if m.loaded.Plugins != nil {
			_ = m.loaded.Plugins.Choose(ctx, m.loaded.Engine.Requirements())
		}
	}
	if m.loaded == nil {
		return nil, diag.Errorf(diag.CodeConfigReadDir, nil, "Failed to read module directory", "The configuration in %s has errors.", m.Dir)
	}
	o := engine.ExplainOptions{Variables: m.loaded.Vars, Lost: m.given.Lost}
	return m.loaded.Engine.Explain(ctx, address, o)
}

// A Unit is the result of reading one unit.
type Unit struct {
	Path  string
	Diags diag.List // with absolute paths

	s        *Session
	reading  *reading
	estate   *estates.Estate
	unit     *discovery.Unit // nil if the unit cannot be read
	redactor *diag.Redactor
	dir      *workdir.Directory
	env      unit.Env
	mu       sync.Mutex // held while the unit is evaluated
}

// Unit returns the result for a unit file with the files as they are now. It is nil if ctx ended.
func (s *Session) Unit(ctx context.Context, path string) *Unit {
	return s.units.get(ctx, s, path, s.read)
}

func (u *Unit) read() *reading { return u.reading }

func (u *Unit) close() {}

// IsUnit reports whether a file contains units, and not parts that units read.
func (s *Session) IsUnit(path string) bool {
	if filepath.Base(path) == unit.DefaultName {
		return true
	}
	f := s.Index.File(path)
	return f.Kind == index.Unit && slices.ContainsFunc(f.Names, func(o index.Occurrence) bool {
		return o.Role == index.Declares && strings.HasPrefix(o.Addr, "module.")
	})
}

// read opens a unit and checks it.
func (s *Session) read(ctx context.Context, path string, _ *Unit) *Unit {
	u, ds := s.openUnit(ctx, path)
	if u.unit != nil {
		ds = append(ds, u.estate.Check(ctx, false)...)
		ds = append(ds, u.unit.Check(u.estate.Task(ctx))...)
	}
	for _, m := range ds.Once() {
		if m.Code != diag.CodeUnitMocksUsed && m.Code != diag.CodeEstateNoExec {
			u.Diags = append(u.Diags, m)
		}
	}
	return u
}

// Value explains the value at an address in a unit that is not kept afterwards. It is nil if the unit
// has errors.
func (s *Session) Value(ctx context.Context, path, address string) *explanation.Explanation {
	release, ok := s.take(ctx)
	defer release()
	if !ok {
		return nil
	}
	u, _ := s.openUnit(ctx, path)
	x, ds := u.Explain(ctx, address)
	if ds.HasErrors() {
		return nil
	}
	return x
}

// openUnit opens a unit without checking it.
func (s *Session) openUnit(ctx context.Context, path string) (*Unit, diag.List) {
	root := filepath.Dir(path)
	u := &Unit{Path: path, s: s, reading: newReading(s.Files, root), redactor: &diag.Redactor{}}
	u.dir = s.directory(root, u.reading)
	u.dir.View = nil
	plugins := s.plugins
	if plugins == nil {
		return u, nil
	}
	plugins = plugins.In(u.dir)
	unsaved := &stacks.Overlay{} // documents that do not exist on disk
	for _, b := range s.Files.Open() {
		if _, err := os.Stat(b.Path); err != nil {
			u.reading.note(b.Path)
			unsaved.Replace(b.Path, b.Text.Bytes)
		}
	}
	o := estates.Options{
		Discovery: discovery.Settings{Root: root, Whole: true, Overlay: unsaved},
		Request:   unit.Request{Command: "plan", Args: []string{"plan"}},
		Machine:   unit.Machine{Environ: u.dir.Env, Run: s.trust.runner(u.reading), Now: u.dir.Now, Home: u.dir.HomeOrError},
		Who:       s.who, Checking: true, Tolerant: true, Redactor: u.redactor,
		Sources: workcopy.Sources{Fetch: modules.Fetched(u.dir, plugins.Config)},
		Host:    estates.Host{Plugins: plugins, Backends: u.dir.Backends(), Texts: u.dir.Set},
	}
	u.env = o.UnitEnv(root)
	u.env.Machine.Run = sys.SkipPrograms               // a conversion is tried with texts that nobody has saved
	for _, name := range s.Index.File(path).Searched { // a file that appears in a parent directory changes the unit
		for at := filepath.Dir(root); ; at = filepath.Dir(at) {
			u.reading.note(filepath.Join(at, name))
			if s.Files.Exists(filepath.Join(at, name)) || filepath.Dir(at) == at {
				break
			}
		}
	}
	var ds diag.List
	u.estate, u.unit, ds = estates.OpenUnit(ctx, o, path, "")
	return u, ds
}

// WithImports returns the text of the unit file with import blocks in place of its includes, and its text
// before. changes is false if the result would mean something else, or if other files had to change too.
func (u *Unit) WithImports(ctx context.Context) (before, after []byte, changes bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.unit == nil {
		return nil, nil, false
	}
	plan, err := migrate.Imports(ctx, u.env, []string{u.Path}, nil)
	if err != nil || len(plan.Changes) != 1 || plan.Changes[0].Path != u.Path {
		return nil, nil, false
	}
	return plan.Changes[0].Before, plan.Changes[0].After, true
}

// Explain explains the value at an address in the unit, or in its module. Outputs of other units are
// their mock outputs, or unknown.
func (u *Unit) Explain(ctx context.Context, address string) (*explanation.Explanation, diag.List) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.unit == nil {
		return nil, u.Diags
	}
	outputs := estates.UnknownOutputs
	if strings.HasPrefix(address, "dependency.") {
		outputs = estates.MockOutputs
	}
	v := u.estate.Evaluate(u.unit, outputs)
	set := &source.Set{}
	shown := func(file string) string { return sys.RelativeTo(filepath.Dir(u.Path), file) }
	inUnit := func(file string) (string, string) { return shown(file), "" }
	x, ds := v.Explain(ctx, set, address, inUnit, func(s *run.Site) (*explanation.Explanation, diag.List) {
		return v.ExplainInModule(ctx, s, set, address, shown, false)
	})
	u.tidy(x)
	return x, ds
}

// tidy removes the values of the environment from the texts of an explanation. It does not claim that
// an output does not exist, since no state was read.
func (u *Unit) tidy(x *explanation.Explanation) {
	if x == nil {
		return
	}
	for _, s := range x.Steps {
		s.Text = u.redactor.Text(s.Text)
		if s.Kind == explanation.Dependency {
			s.Text = strings.Replace(s.Text, ", which has none yet", ", whose state is not read here", 1)
		}
	}
}

// Print returns the module after merging, with the origin of each argument.
func (m *Module) Print() (string, error) {
	var b strings.Builder
	err := m.Config.Print(&b, config.PrintOptions{Origins: true, Hide: true})
	return b.String(), err
}

// Render returns the effective unit as a unit file.
func (u *Unit) Render(ctx context.Context) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.unit == nil {
		return "", u.Diags.Err()
	}
	text, ds := u.unit.RenderHCL(u.estate.Task(ctx))
	return u.redactor.Text(string(text)), ds.Err()
}
