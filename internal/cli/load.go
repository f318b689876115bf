package cli

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lock"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// loadOptions say how a configuration is loaded.
type loadOptions struct {
	vars        []vars.Flag
	input       bool // whether missing variables may be asked for
	parallelism int
	workspace   string            // "" for the selected one
	saved       map[string][]byte // the files of a saved plan, in place of those on disk
	files       *engine.Sources   // the working folder's files, shared with other steps; nil: read anew
	partial     bool              // go on with variables missing: they are not needed
	rootOnly    bool              // go on though other modules cannot be loaded
}

// A project is a loaded configuration with the values of its variables.
type project struct {
	*command.Call
	engine    *engine.Engine
	vars      vars.Values
	workspace string
	plugins   *plugins
}

// load loads the configuration of the working folder. With errors the project
// is nil.
func load(ctx context.Context, c *command.Call, o loadOptions) (*project, diag.List) {
	workspace := o.workspace
	if workspace == "" {
		var ds diag.List
		if workspace, ds = workspaceName(c); ds.HasErrors() {
			return nil, ds
		}
	}
	given, ds := vars.Gather(vars.Sources{Dir: c.Dir, FS: virtual(c), Env: c.Env, Flags: o.vars, Set: c.Report.Set})
	if ds.HasErrors() {
		return nil, ds
	}
	p := &project{Call: c, workspace: workspace}
	more := p.plug()
	ds = append(ds, more...)
	if more.HasErrors() {
		return nil, ds
	}
	eo := p.engineOptions(o)
	expect(c, o.saved)
	e, loadDs := engine.OpenWith(ctx, eo, given.All())
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
		more = asWarnings(more.Errors())
	case o.partial && o.rootOnly: // which keeps nobody from looking at state and files
		more = asWarnings(more)
	}
	ds = append(ds, more...)
	asked, more := p.askMissing(ctx, values, o)
	ds = append(ds, more...)
	if asked && loadDs.HasErrors() { // an answer may be what a module's source needs
		e.Close()
		if e, loadDs = engine.OpenWith(ctx, eo, values); e == nil {
			return nil, append(ds, loadDs...)
		}
		p.use(e)
	}
	p.vars = values
	if o.rootOnly {
		loadDs = nil
	}
	if ds = append(loadDs, ds...); ds.HasErrors() {
		p.close()
		return nil, ds
	}
	return p, ds
}

// heapPerByte is how many bytes of memory the syntax tree of a byte of
// configuration takes, with what is thrown away while it is made.
const heapPerByte = 26

// expect readies the collector for the configuration of the working folder, or
// for the saved one.
func expect(c *command.Call, saved map[string][]byte) {
	if c.ExpectHeap == nil {
		return
	}
	var text int64
	for _, b := range saved {
		text += int64(len(b))
	}
	if saved == nil {
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
	c.ExpectHeap(text * heapPerByte)
}

func (p *project) engineOptions(o loadOptions) engine.Options {
	out := engine.Options{
		Dir: p.Dir, LaunchDir: p.Launch, DataDir: p.DataDir(), Workspace: p.workspace, Environ: p.Env, Set: p.Report.Set,
		Observe: p.Report.Event, Now: p.Now, Stderr: p.Stderr, Parallelism: o.parallelism, Providers: p.plugins,
		Services: engine.Services{ReadState: stateReader(p.Call), Provisioners: provisioners{p.Call}}, Sources: o.files,
	}
	if files := virtual(p.Call); files != nil && o.files == nil {
		out.Sources = &engine.Sources{FS: files}
	}
	if o.saved != nil {
		out.Sources = &engine.Sources{FS: newSavedFiles(o.saved)}
		out.Overlay = map[string][]byte{}
		if m, ok := o.saved[manifestName]; ok {
			out.Overlay[filepath.Join(p.DataDir(), "modules", "modules.json")] = m
		}
	}
	return out
}

func (p *project) use(e *engine.Engine) {
	p.engine = e
	p.Interrupts.EndsProviders(e.Close)
}

// close ends the project's providers. It may be called more than once.
func (p *project) close() {
	p.Interrupts.EndsProviders(nil)
	p.engine.Close()
}

// askMissing asks for the required variables that have no value, or says that
// they have none.
func (p *project) askMissing(ctx context.Context, values vars.Values, o loadOptions) (asked bool, ds diag.List) {
	missing := vars.Missing(values, p.engine.Root().Variables)
	if len(missing) == 0 || o.partial {
		return false, nil
	}
	if !p.Prompt.May(o.input) {
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

// selectProviders finds the installed packages of the providers that
// configuration and state need.
func (p *project) selectProviders(ctx context.Context, states ...*state.State) diag.List {
	return p.plugins.choose(ctx, p.required(states...))
}

// required are the providers that configuration and states need. A state may be nil.
func (p *project) required(states ...*state.State) install.Requirements {
	req := install.Requirements(p.engine.Requirements())
	for _, s := range states {
		if s == nil {
			continue
		}
		for _, r := range p.translate(s).Resources {
			if _, ok := req[r.Provider.Provider]; !ok {
				req[r.Provider.Provider] = nil
			}
		}
	}
	return req
}

// named are the providers that configuration names.
func (p *project) named() map[addr.Provider]bool {
	out := map[addr.Provider]bool{}
	for a := range p.engine.Requirements() {
		out[a] = true
	}
	return out
}

// translate gives providers in a state the addresses that configuration means.
func (p *project) translate(s *state.State) *state.State {
	return s.TranslateProviders(p.named(), p.Env.Get("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") != "0")
}

// schemas serves the views with the schemas of running providers. A provider
// that cannot be asked has none, and its message is kept.
type schemas struct {
	ctx    context.Context
	engine *engine.Engine

	mu     sync.Mutex
	failed map[addr.Provider]bool
	ds     diag.List
}

func (p *project) schemas(ctx context.Context) *schemas {
	return &schemas{ctx: ctx, engine: p.engine, failed: map[addr.Provider]bool{}}
}

// Resource implements view.Schemas.
func (s *schemas) Resource(a addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed[a] {
		return nil
	}
	sp, ds := s.engine.Schema(s.ctx, a)
	if ds.HasErrors() || sp == nil {
		s.failed[a] = true
		s.ds = append(s.ds, ds...)
		return nil
	}
	return sp.Resource(mode, typ)
}

var _ view.Schemas = (*schemas)(nil)

// packaged leaves out the providers that need no package.
func (pl *plugins) packaged(req install.Requirements) install.Requirements {
	out := install.Requirements{}
	for _, a := range slices.SortedFunc(maps.Keys(req), lock.CompareProviders) {
		if _, attached := pl.attached[a]; !a.IsBuiltIn() && !attached {
			out[a] = req[a]
		}
	}
	return out
}
