package run

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/state"
)

// openEngine opens the engine, runs init where modules or providers are missing, and puts
// the directory on disk where something but the loader looks at it.
func (t *Turn) openEngine(ctx context.Context) (installed bool, ds diag.List) {
	o := t.engineOptions()
	var prov Providers
	if t.Host.Providers != nil {
		prov = t.Host.Providers(Folder{Dir: t.dir.Path, Env: t.environ()})
		o.Providers = prov
	}
	e, ds := engine.Open(ctx, o)
	if notInstalled(ds) && t.Host.Init != nil {
		if e != nil {
			e.Close()
		}
		if ds = t.install(ctx); ds.HasErrors() {
			return true, ds
		}
		installed = true
		t.Dirs.Share(t.dir)
		t.res.Set = t.dir.Parsed.Set
		o = t.engineOptions()
		o.Providers = prov
		e, ds = engine.Open(ctx, o)
	}
	t.engine = e
	if ds.HasErrors() {
		return installed, ds
	}
	t.needs.check(t.Unit, e.Tree())
	if needsFolder(e.Tree()) || t.dir.WritesOutside() || t.hasHooks() {
		ds = append(ds, t.dir.Make()...)
	}
	if prov == nil || ds.HasErrors() {
		return installed, ds
	}
	t.providers = prov
	again, more := t.choose(ctx, t.engine.Requirements())
	return installed || again, append(ds, more...)
}

// engineOptions are the options of the unit's engine.
func (t *Turn) engineOptions() engine.Options {
	calls := t.o.Limits.Calls
	if t.extra.Calls > 0 {
		calls = t.extra.Calls
	}
	if most := t.o.Limits.Most; most > 0 && (calls == 0 || calls > most) {
		calls = most
	}
	o := t.Host.engineOptions(t.folder(), t.dir.Parsed, t.Machine.Now, t.encryption)
	o.Workspace, o.Parallelism, o.Observe = t.States.Workspace(t.dir.Path), calls, t.observe()
	o.Processes, o.Turn = t.procs, t.Unit.Name
	return o
}

// engineOptions are options for an engine in a folder.
func (h *Host) engineOptions(at Folder, p *workdir.Parsed, now func() time.Time, encrypted func(context.Context) (*encryption.Config, diag.List)) engine.Options {
	out := engine.Options{Dir: at.Dir, Environ: at.Env, Set: p.Set, Now: now, Sources: &p.Sources, Decorate: h.Decorate}
	if h.Services != nil {
		out.Services = h.Services(at, encrypted)
	}
	return out
}

// encryption is how state and plans of the unit are encrypted; nil for not at all. It is
// known once the engine is open and the inputs are computed.
func (t *Turn) encryption(ctx context.Context) (*encryption.Config, diag.List) {
	return t.States.Encryption(ctx, t.dir, t.engine.Root(), t.engine, t.values, t.environ())
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

// chooseFor finds the packages of providers that the state needs and the configuration
// does not name: those of what is to be destroyed.
func (t *Turn) chooseFor(ctx context.Context, s *state.State) diag.List {
	named, needed := t.engine.Requirements(), operation.Required(t.engine, t.environ(), s)
	if t.providers == nil || len(named) == len(needed) {
		return nil
	}
	_, ds := t.choose(ctx, needed)
	return ds
}

// choose finds the provider packages, and installs them if they are missing.
func (t *Turn) choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) (installed bool, ds diag.List) {
	prov := t.providers
	maps.DeleteFunc(needed, func(a addr.Provider, _ []config.Constraint) bool { return a.IsBuiltIn() })
	if len(needed) == 0 {
		return false, nil
	}
	if ds = prov.Choose(ctx, needed); !ds.HasErrors() || t.Host.Init == nil {
		return false, ds
	}
	if ds := t.install(ctx); ds.HasErrors() {
		return true, ds
	}
	return true, prov.Choose(ctx, needed)
}

// install runs init in the working directory.
func (t *Turn) install(ctx context.Context) diag.List {
	if ds := t.dir.Make(); ds.HasErrors() {
		return ds
	}
	ctx, s := t.phase(ctx, "init")
	ds := t.Host.Init(ctx, Installing{
		Folder: t.folder(), Backend: backendArguments(t.dir), Sources: t.Loader.Sources(),
		Values: func(root *config.Module) (map[string]engine.InputValue, diag.List) {
			values, _, ds := inputs.Of(t.task, t.Unit.Unit, root.Variables)
			return values, ds
		},
	})
	ended(s, ds)
	if ds.HasErrors() {
		return ds
	}
	return append(ds, t.dir.KeepLock()...)
}

// backendArguments are the arguments of init that a remote_state without generate stands
// for.
func backendArguments(d *workdir.Dir) []string {
	rs := d.Remote
	if rs == nil || rs.Generate != nil {
		return nil
	}
	v, _ := rs.Config.UnmarkDeep()
	if v.IsNull() || !v.CanIterateElements() {
		return nil
	}
	var out []string
	for k, v := range v.AsValueMap() {
		if text, ok := states.Text(v); ok {
			out = append(out, k+"="+text)
		}
	}
	slices.Sort(out)
	return out
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
