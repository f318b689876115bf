package workcopy

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/overlay"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # The module before the run
//
// A unit's module can declare more than its source does: the files in the unit's directory are an
// overlay over it, and generate blocks write further files. Checks of inputs and outputs before a
// run include these, because otherwise they would reject valid units. Some files are unknown
// before the run: generated files that depend on outputs, and files that hooks write. They may
// declare anything, so in such modules a missing declaration is no error.

// A Module is the module of a unit, with the unit's files and generated files over it.
type Module struct {
	Root *config.Module // nil if the module is not on this machine or cannot be read
	// Whole means that no further files can declare anything.
	Whole bool
	// Values means that variable files may be among the generated files.
	Values bool
	Dir    *UnitDirectory // nil if Root is nil
	Diags  diag.List      // errors in generated files
}

// preparing contains the names in the commands of hooks that run before the module is loaded.
var preparing = []string{"init", "init-from-module", "terragrunt-read-config"}

// Module returns the module of a unit as it will run, if the module is on this machine. It
// fetches nothing and caches the result per unit. u and t must evaluate with all outputs unknown.
func (m *Maker) Module(t *demand.Task, u *unit.Unit) *Module {
	out, err := m.overlay.Do(t.Context(), u.ID, func() (*Module, bool) { return m.module(t, u) })
	if err != nil {
		return &Module{}
	}
	return out
}

// module is Module without the cache. known is false if the result may differ the next time: a
// source may have been fetched, or a program may succeed.
func (m *Maker) module(t *demand.Task, u *unit.Unit) (out *Module, known bool) {
	tf, ds := u.Terraform(t)
	if ds.HasErrors() {
		return &Module{}, false
	}
	src, ds := m.source(u, tf)
	if ds.HasErrors() {
		return &Module{}, false
	}
	d := &UnitDirectory{Unit: u, Terraform: tf, Path: m.runsIn(u, src.text, m.DownloadDir(t, u)), data: m.s.Data}
	if d.Files, ds = m.files(t.Context(), d, src, false); d.Files == nil || ds.HasErrors() {
		return &Module{}, false
	}
	out = &Module{Whole: true, Diags: m.generate(t, d)}
	if out.Diags.HasErrors() {
		return out, false
	}
	if d.WaitsIn == "generate" || tf != nil && slices.ContainsFunc(slices.Concat(tf.Before, tf.After), func(h unit.Hook) bool {
		return slices.ContainsFunc(preparing, func(name string) bool { return slices.Contains(h.Commands, name) })
	}) {
		out.Whole = false
	}
	out.Values = !out.Whole
	for name := range d.Files.Generated {
		out.Values = out.Values || overlay.IsValues(name)
	}
	d.Parsed = m.share(d)
	out.Root, out.Dir = d.Parsed.module(d.Files), d
	return out, true
}

// module returns the root module without the modules that it calls, or nil if it has errors. Its
// directory is the one that contains its files on this machine.
func (p *Parsed) module(f *overlay.FS) *config.Module {
	return p.load(f).module
}

func (p *Parsed) load(f *overlay.FS) loadedRoot {
	return p.root.Local(struct{}{}, func() (loadedRoot, bool) {
		m, ds := config.Load(".", config.Options{FS: f, Set: &p.looked, Parses: p.Sources.Parses})
		if ds.HasErrors() {
			return loadedRoot{errors: ds.Errors()}, !config.Unread(ds)
		}
		root := *m
		root.Dir = filepath.Join(f.Package, f.Sub)
		return loadedRoot{module: &root}, true
	})
}

// A loadedRoot is a root module, or the errors for which it cannot be read.
type loadedRoot struct {
	module *config.Module
	errors diag.List
}

// RootErrors returns the errors for which Root returns nil, and the text of their files. Both name the files
// by their paths.
func (d *UnitDirectory) RootErrors() (diag.List, *source.Set) {
	set := &source.Set{}
	if d.Parsed == nil {
		return nil, set
	}
	return d.Parsed.load(d.Files).errors.Rename(func(name string) string {
		path := cmp.Or(d.Files.Locate(name), filepath.Join(d.Path, name))
		if f := d.Parsed.looked.File(name); f != nil {
			set.Add(&source.File{Path: path, Bytes: f.Bytes, Layer: f.Layer})
		}
		return path
	}), set
}

// Root returns the root module of the directory without the modules that it calls. It returns nil
// if the module is unknown or has errors.
func (d *UnitDirectory) Root() *config.Module {
	if d.Parsed == nil {
		return nil
	}
	return d.Parsed.module(d.Files)
}

// A localTree is a module on this machine, without the files that units add to it.
type localTree struct {
	root      *config.Module
	providers map[addr.Provider]bool // required by the module and the modules that it calls; nil means unknown
}

// LocalRoot returns the root module of a unit without the files that the unit adds, if it is on
// this machine; otherwise nil. u and t must evaluate with all outputs unknown.
func (m *Maker) LocalRoot(t *demand.Task, u *unit.Unit) *config.Module {
	if l := m.local(t, u); l != nil {
		return l.root
	}
	return nil
}

// LocalProviders returns the providers that the module of a unit and the modules that it calls
// require, if all are on this machine. nil means that they are unknown.
func (m *Maker) LocalProviders(t *demand.Task, u *unit.Unit) map[addr.Provider]bool {
	if l := m.local(t, u); l != nil {
		return l.providers
	}
	return nil
}

func (m *Maker) local(t *demand.Task, u *unit.Unit) *localTree {
	tf, ds := u.Terraform(t)
	if ds.HasErrors() {
		return nil
	}
	src, ds := m.source(u, tf)
	if ds.HasErrors() {
		return nil
	}
	pkg, sub := u.Dir, ""
	if src.text != "" {
		if pkg, sub, ds = m.packageOf(t.Context(), u, src, false); ds.HasErrors() || pkg == "" {
			return nil
		}
	}
	dir := filepath.Join(pkg, sub)
	out, err := m.modules.Do(t.Context(), dir, func() (tree *localTree, known bool) {
		f, err := overlay.New(m.s.Read, pkg, sub, pkg, dir, m.s.Data, copytree.Rules{})
		if err != nil {
			return nil, false
		}
		o := module.Options{ // file names are those of a run
			Config: config.Options{FS: f, Set: &source.Set{}, Parses: &m.parses}, Loads: &module.Loads{}, Canonical: fetch.Canonical,
		}
		root, ds := o.Loads.Load(".", o.Config)
		if ds.HasErrors() {
			return nil, !config.Unread(ds)
		}
		here := *root
		here.Dir = dir
		out := &localTree{root: &here}
		if tree, ds := module.Build(t.Context(), ".", o); tree.Constant && !ds.HasErrors() {
			out.providers = map[addr.Provider]bool{}
			tree.Walk(func(n *module.Node) {
				for a := range module.Requirements(n.Config) {
					out.providers[a] = true
				}
			})
		}
		return out, true
	})
	if err != nil {
		return nil
	}
	return out
}
