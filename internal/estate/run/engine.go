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
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/folder"
	"github.com/terrace-iac/terrace/internal/module"
)

// openEngine opens the engine, runs init where modules or providers are missing, and puts
// the directory on disk where something but the loader looks at it.
func (t *Turn) openEngine(ctx context.Context) (installed bool, ds diag.List) {
	at := t.at.Folder()
	if t.Host.Plugins != nil {
		t.plugins = t.Host.Plugins.In(at)
	}
	e, ds := engine.Open(ctx, t.engineOptions(at))
	if notInstalled(ds) && t.Host.Init != nil {
		if e != nil {
			e.Close()
		}
		if ds = t.install(ctx); ds.HasErrors() {
			return true, ds
		}
		installed = true
		t.Dirs.Share(t.at.dir)
		t.res.Set = t.at.dir.Parsed.Set
		e, ds = engine.Open(ctx, t.engineOptions(at))
	}
	t.engine = e
	if ds.HasErrors() {
		return installed, ds
	}
	t.needs.check(t.Unit, e.Tree())
	if needsFolder(e.Tree()) || t.at.dir.WritesOutside() || t.hasHooks() {
		ds = append(ds, t.at.dir.Make()...)
	}
	if t.plugins == nil || ds.HasErrors() {
		return installed, ds
	}
	again, more := t.choose(ctx, t.engine.Requirements())
	return installed || again, append(ds, more...)
}

// engineOptions are the options of the unit's engine.
func (t *Turn) engineOptions(at *folder.Folder) engine.Options {
	calls := t.o.Limits.Calls
	if t.at.extra.Calls > 0 {
		calls = t.at.extra.Calls
	}
	if most := t.o.Limits.Most; most > 0 && (calls == 0 || calls > most) {
		calls = most
	}
	o := t.at.engine(at, t.plugins, t.encryption)
	o.Parallelism, o.Observe = calls, t.observe()
	o.Processes, o.Turn = t.procs, t.Unit.Name
	return o
}

// encryption is how state and plans of the unit are encrypted; nil for not at all. It is
// known once the engine is open and the inputs are computed.
func (t *Turn) encryption(ctx context.Context) (*encryption.Config, diag.List) {
	return t.States.Encryption(ctx, t.at.dir, t.engine.Root(), t.engine, t.values, t.at.Environ())
}

// observe is where events of the unit's engine go.
func (t *Turn) observe() event.Sink {
	if t.o.Observe.Event == nil {
		return nil
	}
	return func(ev event.Event) {
		ev.Unit = t.Unit.Name
		t.o.Observe.Event(ev)
	}
}

// chooseMore finds the packages of providers that the state needs and the configuration
// does not name: those of what is to be destroyed.
func (t *Turn) chooseMore(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List {
	if t.plugins == nil || len(needed) == len(t.engine.Requirements()) {
		return nil
	}
	_, ds := t.choose(ctx, needed)
	return ds
}

// choose finds the provider packages, and installs them if they are missing.
func (t *Turn) choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) (installed bool, ds diag.List) {
	if ds = t.plugins.Choose(ctx, needed); !ds.HasErrors() || t.Host.Init == nil {
		return false, ds
	}
	if ds := t.install(ctx); ds.HasErrors() {
		return true, ds
	}
	return true, t.plugins.Choose(ctx, needed)
}

// install runs init in the working directory.
func (t *Turn) install(ctx context.Context) diag.List {
	if ds := t.at.dir.Make(); ds.HasErrors() {
		return ds
	}
	ctx, s := t.phase(ctx, "init")
	init, ds := t.at.forInit()
	if ds.HasErrors() {
		return ds
	}
	words := init.extra.Words
	for _, text := range init.Backend() {
		words = append(words, "-backend-config="+text)
	}
	ds = t.Host.Init(ctx, Installing{
		Folder: init.Folder(), Words: words, Sources: t.Loader.Sources(), Value: t.at.Value,
		Values: func(root *config.Module) (map[string]engine.InputValue, diag.List) {
			values, _, ds := inputs.Of(t.task, t.Unit.Unit, root.Variables)
			return values, ds
		},
	})
	ended(s, ds)
	if ds.HasErrors() {
		return ds
	}
	return append(ds, t.at.dir.KeepLock()...)
}

// notInstalled reports whether modules are missing.
func notInstalled(ds diag.List) bool {
	return slices.ContainsFunc(ds, module.NeedsInstall)
}

// needsFolder reports whether something but the loader may look at the files of a
// module: a provider, a provisioner or a function that reads files.
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

// namesFiles reports whether text may call a function that reads files: file,
// fileset, templatefile and their like, abspath and provider functions.
func namesFiles(text string) bool {
	return strings.Contains(text, "file") || strings.Contains(text, "abspath") || strings.Contains(text, "provider::")
}
