package run

import (
	"context"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// unitModule is the module of a unit, with the engine that works on it.
type unitModule struct {
	x     *execution
	at    *Site
	res   *report.Result
	hooks *unitHooks

	engine  *engine.Engine   // nil until it is open
	plugins *workdir.Plugins // nil means that only the built-in provider is available
	values  map[string]engine.InputValue
}

// open opens the engine and finds the providers. It runs init if modules or providers are
// missing, and reports whether it did. It creates the working directory if anything but the
// loader reads it.
func (m *unitModule) open(ctx context.Context) (installed bool, ds diag.List) {
	at, host := m.at.Directory(), &m.x.Host
	if host.Plugins != nil {
		m.plugins = host.Plugins.In(at)
	}
	e, ds := engine.Open(ctx, m.options(at))
	if notInstalled(ds) && host.initializes() {
		if e != nil {
			e.Close()
		}
		if ds = m.install(ctx); ds.HasErrors() {
			return true, ds
		}
		installed = true
		m.x.Dirs.Share(m.at.dir)
		m.res.Set = m.at.dir.Parsed.Set
		e, ds = engine.Open(ctx, m.options(at))
	}
	m.engine = e
	if ds.HasErrors() {
		return installed, ds
	}
	m.x.needs.check(m.at.unit, e.Tree())
	if needsFolder(e.Tree()) || m.at.dir.WritesOutside() || m.hooks.any() {
		ds = append(ds, m.at.dir.Make()...)
	}
	if m.plugins == nil || ds.HasErrors() {
		return installed, ds
	}
	again, more := m.choose(ctx, e.Requirements())
	return installed || again, append(ds, more...)
}

// root returns the root module. The engine must be open.
func (m *unitModule) root() *config.Module { return m.engine.Root() }

// close closes the engine, if it is open.
func (m *unitModule) close() {
	if m.engine != nil {
		m.engine.Close()
		m.engine = nil
	}
}

// place returns the location of the state, given the values of the module's variables.
func (m *unitModule) place(ctx context.Context, values map[string]engine.InputValue) (states.Location, diag.List) {
	return m.at.where(ctx, m.root(), m.engine, values)
}

// options returns the options of the engine.
func (m *unitModule) options(at *workdir.Directory) engine.Options {
	calls := m.x.o.Limits.Calls
	if m.at.extra.Calls > 0 {
		calls = m.at.extra.Calls
	}
	if most := m.x.o.Limits.Most; most > 0 && (calls == 0 || calls > most) {
		calls = most
	}
	o := m.at.engine(at, m.plugins, m.encryption)
	o.Parallelism, o.Observe = calls, m.observe
	o.Processes, o.Turn = m.x.procs, m.at.unit.Name
	return o
}

// encryption returns the configuration that encrypts the state and plans of the unit, or nil for
// none. It may be called once the engine is open and the inputs are computed.
func (m *unitModule) encryption(ctx context.Context) (*encryption.Config, diag.List) {
	return m.x.States.Encryption(m.at.dir, m.root(), m.at.static(ctx, m.engine, m.values), m.at.Environ())
}

// observe passes an event of the unit's engine to the observer, with the name of the unit.
func (m *unitModule) observe(ev event.Event) {
	ev.Unit = m.at.unit.Name
	m.x.o.Observe.Event(ev)
}

// chooseMore finds the packages of providers that the state needs and the configuration does not
// name, such as those of objects to be destroyed.
func (m *unitModule) chooseMore(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List {
	if m.plugins == nil || len(needed) == len(m.engine.Requirements()) {
		return nil
	}
	_, ds := m.choose(ctx, needed)
	return ds
}

// choose finds the provider packages. If any are missing it runs init, and then reports
// installed.
func (m *unitModule) choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) (installed bool, ds diag.List) {
	if ds = m.plugins.Choose(ctx, needed); !ds.HasErrors() || !m.x.Host.initializes() {
		return false, ds
	}
	if ds := m.install(ctx); ds.HasErrors() {
		return true, ds
	}
	return true, m.plugins.Choose(ctx, needed)
}

// install runs init in the working directory, which it creates first.
func (m *unitModule) install(ctx context.Context) diag.List {
	if ds := m.at.dir.Make(); ds.HasErrors() {
		return ds
	}
	ctx, s := m.at.phase(ctx, "init")
	init, ds := m.at.forInit()
	if ds.HasErrors() {
		return ds
	}
	words := slices.Clone(init.extra.Words)
	if root := m.at.dir.Root(); root != nil {
		for _, f := range m.at.flags() { // the backend configuration may refer to them
			if name, _, _ := strings.Cut(f.Value, "="); f.File || root.Variables[name] != nil {
				words = append(words, f.Word())
			}
		}
	}
	if m.x.States.Throwaway() {
		words = append(words, "-backend=false") // the backend may need credentials, and contains no state of this run
	} else {
		for _, text := range init.Backend() {
			words = append(words, "-backend-config="+text)
		}
	}
	ds = m.x.Host.Program.Init(ctx, Installing{
		Directory: init.directory(initUnit{siteUnit{init}}), Words: words, Sources: m.x.Loader.Sources(),
	})
	ended(s, ds)
	if ds.HasErrors() || m.x.States.Throwaway() {
		return ds
	}
	return append(ds, m.at.dir.KeepLock()...)
}

// notInstalled reports whether ds contains an error about modules that are not installed.
func notInstalled(ds diag.List) bool {
	return slices.ContainsFunc(ds, module.NeedsInstall)
}

// needsFolder reports whether anything but the loader may read the files of the module: a
// provider, a provisioner or a function that reads files.
func needsFolder(tree *module.Tree) bool {
	found := false
	seen := map[*config.Module]bool{}
	tree.Walk(func(n *module.Node) {
		if found || seen[n.Config] {
			return
		}
		seen[n.Config] = true
		for _, r := range n.Config.Resources {
			found = found || !n.Config.Source(r.LocalProvider()).IsBuiltIn() || len(r.Provisioners) > 0
		}
		for _, p := range n.Config.Providers {
			found = found || !n.Config.Source(p.Name).IsBuiltIn()
		}
		for _, f := range n.Config.Files {
			if src := n.Config.Set.File(f.Path); !found && src != nil && namesFiles(string(src.Bytes)) {
				found = true
			}
		}
	})
	return found
}

// namesFiles reports whether the text may call a function that reads files, such as file,
// fileset, templatefile, abspath or a provider function.
func namesFiles(text string) bool {
	return strings.Contains(text, "file") || strings.Contains(text, "abspath") || strings.Contains(text, "provider::")
}
