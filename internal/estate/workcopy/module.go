package workcopy

import (
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

// # The module as it will run, before anything runs
//
// What a unit's module declares is more than what its source declares: the files
// beside the unit file are its overlay, and generate blocks write others. What is
// said of inputs and outputs before a run has to count these, or working units would
// be refused. What is not known before a run (contents made of outputs, what hooks
// write) may declare anything: then what is not found proves nothing.

// A Module is the module of a unit with the overlay of the unit's files.
type Module struct {
	Root *config.Module // nil if it is not on this machine, or cannot be read
	// Whole says that it declares nothing besides.
	Whole bool
	// Values says that values of variables may be among the generated files.
	Values bool
	Dir    *Dir      // nil if Root is
	Diags  diag.List // errors of generated files
}

// preparing are the names by which hooks run before the module is loaded.
var preparing = []string{"init", "init-from-module", "terragrunt-read-config"}

// Module reads the module of a unit where it lies on this machine, as it will run, once
// for each unit. It fetches nothing; u and t are to take all outputs for unknown.
func (m *Maker) Module(t *demand.Task, u *unit.Unit) *Module {
	out, err := m.overlay.Do(t.Context(), u.ID, func() (*Module, bool) { return m.module(t, u) })
	if err != nil {
		return &Module{}
	}
	return out
}

// module is Module without the cache. known is false if the module is not known, which may
// be otherwise the next time: a source may have been fetched, or a program may answer.
func (m *Maker) module(t *demand.Task, u *unit.Unit) (out *Module, known bool) {
	tf, ds := u.Terraform(t)
	if ds.HasErrors() {
		return &Module{}, false
	}
	src, ds := m.source(u, tf)
	if ds.HasErrors() {
		return &Module{}, false
	}
	d := &Dir{Unit: u, Terraform: tf, Path: m.runsIn(u, src.text, m.DownloadDir(t, u)), data: m.s.Data}
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

// module is the root module alone, nil if there is something wrong with it. Its
// folder is where it lies on this machine.
func (p *Parsed) module(f *overlay.FS) *config.Module {
	return p.root.Local(struct{}{}, func() (*config.Module, bool) {
		m, ds := config.Load(".", config.Options{FS: f, Set: &p.looked, Parses: p.Sources.Parses})
		if ds.HasErrors() {
			return nil, !config.Unread(ds)
		}
		root := *m
		root.Dir = filepath.Join(f.Package, f.Sub)
		return &root, true
	})
}

// Root is the root module of the directory alone, nil if it is not known or there is
// something wrong with it.
func (d *Dir) Root() *config.Module {
	if d.Parsed == nil {
		return nil
	}
	return d.Parsed.module(d.Files)
}

// A localTree is a module on this machine, read without what units add to it.
type localTree struct {
	root      *config.Module
	providers map[addr.Provider]bool // that it and the modules that it calls name; nil: not known
}

// LocalRoot is the root module of a unit where it lies on this machine, read without what
// the unit adds to it; nil if it is elsewhere. u and t are to take all outputs for unknown.
func (m *Maker) LocalRoot(t *demand.Task, u *unit.Unit) *config.Module {
	if l := m.local(t, u); l != nil {
		return l.root
	}
	return nil
}

// LocalProviders are the providers that the module of a unit, and those that it calls,
// name where they lie on this machine; nil if they are not known.
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
		f, err := overlay.New(pkg, sub, pkg, dir, m.s.Data, copytree.Rules{})
		if err != nil {
			return nil, false
		}
		o := module.Options{ // by the names that files have in a run
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
