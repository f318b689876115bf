package estate

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/unit"
)

// # The module as it will run, before anything runs
//
// What a unit's module declares is more than what its source declares: the files
// beside the unit file are laid over it, and generate blocks write others. What is
// said of inputs and outputs before a run has to count these, or working units would
// be refused. What is not known before a run (contents made of outputs, what hooks
// write) may declare anything: then what is not found proves nothing.

// A laidModule is a module with what its unit lays over it.
type laidModule struct {
	root *config.Module // nil if it is not on this machine, or cannot be read
	// whole says that it declares nothing besides.
	whole  bool
	place  *place    // nil if it cannot be examined, or was
	values bool      // values of variables may be among the generated files
	ds     diag.List // errors of generated files
}

// preparing are the names by which hooks run before the module is loaded.
var preparing = []string{"init", "init-from-module", "terragrunt-read-config"}

// laid reads the module of a unit where it lies on this machine, as it will run. It
// fetches nothing and takes all outputs for unknown.
func (e *Estate) laid(ctx context.Context, u *Unit) *laidModule {
	return e.shared.laid.Do(u.ID, func() *laidModule { return e.layOver(e.blind.Task(ctx), u) })
}

func (e *Estate) layOver(t *demand.Task, u *Unit) *laidModule {
	in := &Unit{Unit: u.In(e.blind), Name: u.Name}
	tf, ds := in.Terraform(t)
	if ds.HasErrors() {
		return &laidModule{}
	}
	src, ds := e.sourceOf(in, tf)
	if ds.HasErrors() {
		return &laidModule{}
	}
	p := &place{unit: in, terraform: tf, dir: e.runsIn(in, src.text, e.downloadDir(t, in))}
	if p.files, ds = e.filesOf(t.Context(), p, src, false); p.files == nil || ds.HasErrors() {
		return &laidModule{}
	}
	out := &laidModule{whole: true, ds: e.generate(t, p)}
	if out.ds.HasErrors() {
		return out
	}
	if p.waitsIn == "generate" || tf != nil && slices.ContainsFunc(slices.Concat(tf.Before, tf.After), func(h unit.Hook) bool {
		return slices.ContainsFunc(preparing, func(name string) bool { return slices.Contains(h.Commands, name) })
	}) {
		out.whole = false
	}
	out.values = !out.whole
	for name := range p.files.generated {
		out.values = out.values || isValues(name)
	}
	p.shared = e.share(p)
	out.root, out.place = p.shared.module(p.files), p
	return out
}

// module is the root module alone, nil if there is something wrong with it. Its
// folder is where it lies on this machine.
func (p *parsed) module(f *files) *config.Module {
	p.loading.Do(func() {
		m, ds := config.Load(".", config.Options{FS: f, Set: &p.looked, Parses: p.sources.Parses})
		if ds.HasErrors() {
			return
		}
		root := *m
		root.Dir = filepath.Join(f.pkg, f.sub)
		p.root = &root
	})
	return p.root
}
