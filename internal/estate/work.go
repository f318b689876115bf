package estate

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/unit"
)

// work is one turn of a unit.
type work struct {
	r      *Run
	u      *Unit
	res    *Result
	t      *demand.Task
	engine *engine.Engine
	values map[string]engine.InputValue
	waits  []*unit.Setting // inputs with something unknown in them
	hold   *statemgr.State
	first  diag.List // what was said before hooks ran, if they may change it
	ran    bool      // they did, now or before
	again  bool      // the unit was begun before in this run, and failed

	approval *Approval // what was approved of it; nil if everything is
}

// prepare evaluates a unit and opens its engine. Without errors and without work
// there is nothing to do.
func (r *Run) prepare(ctx context.Context, u *Unit, res *Result) (*work, diag.List) {
	w := &work{r: r, u: u, res: res, t: r.e.task(ctx)}
	ds := r.e.told.first(u.CheckRunner(w.t))
	if ds.HasErrors() {
		return nil, ds
	}
	var wrong diag.List
	if w.approval, wrong = w.allowed(); wrong.HasErrors() {
		return nil, append(ds, wrong...)
	}
	stop, more := w.excluded()
	var p *place
	if !stop && !more.HasErrors() {
		var told diag.List
		p, told = r.e.placeOf(w.t, u, true)
		more = append(more, told...)
	}
	if gone, about := w.gone(ctx, more); gone {
		return nil, append(ds, about...)
	} else if ds = slices.Concat(ds, more, about); stop || ds.HasErrors() {
		return nil, ds
	}
	u.place = p
	if p.shared != nil {
		res.Set = &p.shared.set
	}
	if p.waits != "" {
		r.putOff(u, res, nil, Deferral{Reason: p.waits + " is not known yet", Waits: r.e.waitsOf("", u.Waits(w.t, p.waitsIn))})
		return nil, ds
	}
	more = append(r.e.signIn(w.t, u), r.e.unfit(u)...)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	idle, more := w.ready(ctx)
	switch {
	case idle:
		w.close()
		return nil, append(ds, more...)
	case w.hasHooks() && curable(more):
		w.first = more
		return w, ds
	case more.HasErrors():
		w.close()
		return nil, append(ds, more...)
	}
	return w, append(ds, more...)
}

// curable reports whether there is nothing wrong, or only what hooks may put right
// before the command runs: files that are missing, and values for variables.
func curable(ds diag.List) bool {
	return !slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool {
		return m.Code == "estate/input-type" || strings.HasPrefix(m.Code, "unit/")
	})
}

// ready opens the engine and computes the inputs. idle reports that there is nothing
// to do.
func (w *work) ready(ctx context.Context) (idle bool, ds diag.List) {
	if ds = w.open(ctx); ds.HasErrors() {
		return false, ds
	}
	if more := append(w.unconfigured(), noBackendBlock(w.u, w.u.place.remote, w.engine.Root())...); more.HasErrors() {
		return false, append(ds, more...)
	}
	idle, more := w.inputs(ctx)
	return idle, append(ds, more...)
}

// inputs computes the inputs, where they are needed. idle reports that there is
// nothing to do.
func (w *work) inputs(ctx context.Context) (idle bool, ds diag.List) {
	if w.r.o.Op == Validate || w.r.o.Op == Init {
		return false, ds
	}
	e, u := w.r.e, w.u
	w.values, w.waits, ds = e.values(w.t, u, w.engine.Root())
	if ds.HasErrors() {
		empty, about := w.nothingLeft(ctx)
		if empty || about.HasErrors() {
			return empty, about
		}
		return false, append(ds, about...)
	}
	w.savedInputs()
	ds = append(ds, e.debugInputs(w.t, u, w.engine.Root())...)
	ds = append(ds, missing(u, w.engine.Root(), w.values)...)
	return false, append(ds, u.CheckInputs(w.t, declared(w.engine.Root()), e.o.Inputs.Strict)...)
}

// excluded looks at an exclude block that is made of outputs, which could not be
// done before the run. stop reports that the unit takes no part, or waits for them.
func (w *work) excluded() (stop bool, ds diag.List) {
	x, ds := w.u.Exclude(w.t)
	if ds.HasErrors() || x == nil || !x.Late {
		return false, ds
	}
	if x, ds = w.u.ExcludeNow(w.t); ds.HasErrors() || x == nil {
		return false, ds
	}
	switch {
	case x.Late:
		w.r.putOff(w.u, w.res, nil, Deferral{Reason: "exclude is not known yet", Waits: w.r.e.waitsOf("", w.u.Waits(w.t, "exclude"))})
		return true, ds
	case x.If && excludes(x, w.r.e.o.Request.Command):
		w.res.LeaveOut()
		return true, ds
	}
	return false, ds
}

// nothingLeft reports whether the unit is to be destroyed and has no objects: then
// nothing is asked of it, its inputs least of all, which may hang on what is gone. The
// state is locked meanwhile: nobody else is making something.
func (w *work) nothingLeft(ctx context.Context) (bool, diag.List) {
	if w.mode() != plan.Destroy {
		return false, nil
	}
	where, ds := w.r.e.stateWhere(ctx, w.u, w.engine.Root(), w.engine, nil)
	if ds.HasErrors() {
		return false, nil
	}
	return w.empty(ctx, where)
}

// empty reports whether a state holds nothing.
func (w *work) empty(ctx context.Context, where local.Options) (bool, diag.List) {
	h, ds := w.take(ctx, where)
	if ds.HasErrors() {
		return false, ds
	}
	empty := h.Current().Empty()
	return empty, append(ds, h.Release()...)
}

// take locks and reads the unit's state.
func (w *work) take(ctx context.Context, where local.Options) (*statemgr.State, diag.List) {
	operation := "OperationTypePlan"
	if w.r.o.Op == Apply {
		operation = "OperationTypeApply"
	}
	lock := w.r.o.Lock
	if x := w.u.extra(w.r.e.o.Request.Command); x.lock != nil && lock == (LockOptions{}) {
		lock = *x.lock
	}
	return w.r.e.take(ctx, where, lock, operation)
}

// declared are the variables for CheckInputs, none of them required: what is
// missing is told with regard to values that are given by other ways too.
func declared(m *config.Module) map[string]bool {
	out := make(map[string]bool, len(m.Variables))
	for name := range m.Variables {
		out[name] = false
	}
	return out
}

// open opens the engine, and puts the folder on disk where something but the
// loader looks at it.
func (w *work) open(ctx context.Context) diag.List {
	p := w.u.place
	o := w.options()
	var prov Providers
	if w.r.e.o.Host.Providers != nil {
		prov = w.r.e.o.Host.Providers(Folder{Dir: p.dir, Env: w.r.e.environ(w.u)})
		o.Providers = prov
	}
	e, ds := engine.Open(ctx, o)
	if notInstalled(ds) && w.r.e.o.Host.Init != nil {
		if e != nil {
			e.Close()
		}
		if ds = w.install(ctx); ds.HasErrors() {
			return ds
		}
		if !p.own {
			p.shared = w.r.e.share(p)
		}
		w.res.Set = &p.shared.set
		o = w.options()
		o.Providers = prov
		e, ds = engine.Open(ctx, o)
	}
	w.engine = e
	if ds.HasErrors() {
		return ds
	}
	w.r.needs.met(w.u, e.Tree())
	if needsFolder(e.Tree()) || p.outside != nil || w.hasHooks() {
		ds = append(ds, p.onDisk()...)
	}
	if prov == nil || ds.HasErrors() {
		return ds
	}
	return append(ds, w.choose(ctx, prov)...)
}

// choose finds the provider packages, and installs them if they are missing.
func (w *work) choose(ctx context.Context, prov Providers) diag.List {
	needed := maps.Clone(w.engine.Requirements())
	maps.DeleteFunc(needed, func(a providerAddr, _ []config.Constraint) bool { return a.IsBuiltIn() })
	if len(needed) == 0 {
		return nil
	}
	ds := prov.Choose(ctx, needed)
	if !ds.HasErrors() || w.r.e.o.Host.Init == nil {
		return ds
	}
	if ds := w.install(ctx); ds.HasErrors() {
		return ds
	}
	return prov.Choose(ctx, needed)
}

func (w *work) install(ctx context.Context) diag.List {
	p := w.u.place
	if ds := p.onDisk(); ds.HasErrors() {
		return ds
	}
	ctx, s := w.phase(ctx, "init")
	ds := w.r.e.o.Host.Init(ctx, w.r.e, w.u, p.dir)
	ended(s, ds)
	if ds.HasErrors() {
		return ds
	}
	if err := p.keepLock(); err != nil {
		ds = append(ds, diag.Errorf(nil, "Failed to keep the dependency lock file", "%s.", err)...)
	}
	return ds
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

func (w *work) close() {
	if w.engine != nil {
		w.engine.Close()
	}
	if w.hold != nil {
		w.res.Diags = append(w.res.Diags, w.hold.Release()...)
	}
}
