package estate

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
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/internal/state/hold"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
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
	hold   *hold.State
}

// prepare evaluates a unit and opens its engine. Without errors and without work
// there is nothing to do.
func (r *Run) prepare(ctx context.Context, u *Unit, res *Result) (*work, diag.List) {
	w := &work{r: r, u: u, res: res, t: r.e.task(ctx)}
	ds := r.e.first(u.CheckRunner(w.t))
	if ds.HasErrors() {
		return nil, ds
	}
	if stop, more := w.excluded(); stop || more.HasErrors() {
		return nil, append(ds, more...)
	}
	p, more := r.e.placeOf(w.t, u, true)
	if ds = append(ds, more...); more.HasErrors() {
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
	more = w.open(ctx)
	if ds = append(ds, more...); more.HasErrors() {
		w.close()
		return nil, ds
	}
	if more = w.unconfigured(); more.HasErrors() {
		w.close()
		return nil, append(ds, more...)
	}
	if r.o.Op == Validate || r.o.Op == Init {
		return w, ds
	}
	w.values, w.waits, more = r.e.values(w.t, u, w.engine.Root())
	if more.HasErrors() {
		empty, about := w.nothingLeft(ctx)
		if ds = append(ds, about...); empty || about.HasErrors() {
			w.close()
			return nil, ds
		}
	}
	if ds = append(ds, more...); more.HasErrors() {
		w.close()
		return nil, ds
	}
	w.savedInputs()
	ds = append(ds, r.e.debugInputs(w.t, u, w.engine.Root())...)
	more = append(missing(u, w.engine.Root(), w.values), u.CheckInputs(w.t, declared(w.engine.Root()), r.e.o.Strict)...)
	if ds = append(ds, more...); more.HasErrors() {
		w.close()
		return nil, ds
	}
	return w, ds
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
	case x.If && excludes(x, w.r.e.o.Command):
		w.res.Status, w.res.Reason = Excluded, "exclude block"
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
	h, ds := w.take(ctx, where)
	if ds.HasErrors() {
		return false, ds
	}
	empty := h.Current().Empty()
	return empty, append(ds, h.Release()...)
}

// take locks and reads the unit's state.
func (w *work) take(ctx context.Context, where local.Options) (*hold.State, diag.List) {
	operation := "OperationTypePlan"
	if w.r.o.Op == Apply {
		operation = "OperationTypeApply"
	}
	lock := w.r.o.Lock
	if x := w.u.extra(w.r.e.o.Command); x.lock != nil && lock == (LockOptions{}) {
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
	if w.r.e.o.Providers != nil {
		prov = w.r.e.o.Providers(Folder{Dir: p.dir, Env: w.r.e.environ(w.u)})
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
		p.shared = w.r.e.share(p)
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
	ds := w.r.e.o.Host.Init(ctx, w.r.e, w.u, p.dir)
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

// planAndApply is the turn of a unit in a plan and an apply.
func (w *work) planAndApply(ctx context.Context) diag.List {
	e, u := w.r.e, w.u
	where, ds := e.stateWhere(ctx, u, w.engine.Root(), w.engine, w.values)
	if ds.HasErrors() {
		return ds
	}
	skip := w.r.o.SkipRefresh
	if x := u.extra(e.o.Command); x.fresh != nil {
		skip = skip || !*x.fresh
	}
	h, ds := w.take(ctx, where)
	if ds.HasErrors() {
		return ds
	}
	w.hold = h
	if more := w.r.claim(u, local.Open(where).Path()); more.HasErrors() {
		return append(ds, more...)
	}
	prev := h.Current()
	p, more := w.engine.Plan(ctx, prev, engine.PlanOptions{
		Mode: w.mode(), Variables: w.values, SkipRefresh: skip, Targets: w.r.o.Targets, Excludes: w.r.o.Excludes, Replace: w.replaced(prev),
		Defer: w.r.o.Op == Plan, Time: w.plannedAt(),
	})
	if more.HasErrors() && len(w.waits) > 0 && w.r.o.Op == Plan && unplannable(more) {
		w.r.putOff(u, w.res, w.engine.Root(), Deferral{Reason: "what must be known before anything is planned is not known yet", At: more.Errors()[0].At, Waits: w.allWaits()})
		return append(ds, more.Warnings()...)
	}
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	w.noteplan(p)
	if w.r.o.Op == Plan {
		w.r.setOutputs(u, w.planned(p))
		return ds
	}
	yes, more := w.approved(p)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if !yes {
		w.res.Status, w.res.Reason, w.res.Cause, w.res.Code = EarlyExit, "run error", "what had been put off was not approved", 1
		return ds
	}
	return append(ds, w.apply(ctx, p)...)
}

// replaced are those instances that are to be replaced which the unit has: an
// address is meant for the units that know it.
func (w *work) replaced(prev *state.State) []addr.Instance {
	var out []addr.Instance
	for _, a := range w.r.o.Replace {
		n := w.engine.Tree().Root
		for _, step := range a.Module.Steps() {
			if n != nil {
				n = n.Calls[step.Name]
			}
		}
		if n != nil && n.Config.Resources[a.Resource] != nil || prev != nil && prev.Instance(a) != nil {
			out = append(out, a)
		}
	}
	return out
}

// plannedAt is when the approved plan was made; zero if there is none.
func (w *work) plannedAt() time.Time {
	if a := w.r.o.Approved[w.u.Name]; a != nil {
		return a.time
	}
	return time.Time{}
}

// mode is the engine's mode for the unit: of one that is no longer there
// everything is destroyed.
func (w *work) mode() plan.Mode {
	if w.u.Removed {
		return plan.Destroy
	}
	return w.r.o.mode()
}

// planned are the outputs that other units of a plan see.
func (w *work) planned(p *plan.Plan) cty.Value {
	if w.r.o.Destroy || w.r.o.RefreshOnly || w.r.e.o.UseMocks {
		return storedOutputs(w.hold.Current())
	}
	return plannedOutputs(p, w.engine.Root())
}

func countsOf(p *plan.Plan) Counts {
	n := p.Counts()
	return Counts{n.Add, n.Change, n.Destroy, n.Import, n.Forget}
}

func (w *work) noteplan(p *plan.Plan) {
	w.res.Plan, w.res.Changes, w.res.Deferred, w.res.Counts = p, p.HasChanges(), w.deferrals(p), countsOf(p)
	if w.r.o.Digest {
		w.res.digest = w.digest()
	}
	if w.r.o.Observe.Planned != nil {
		w.r.o.Observe.Planned(w.u, w.engine, p)
	}
	if w.r.o.Op == Apply {
		w.res.Plan, w.res.Counts = nil, Counts{} // plans are large, and what counts is what will be done
	}
}

// apply carries the plan out.
func (w *work) apply(ctx context.Context, p *plan.Plan) diag.List {
	h := w.hold
	if !p.HasChanges() {
		w.r.setOutputs(w.u, w.made())
		return nil
	}
	if ds := h.Start(ctx, len(p.Changes)); ds.HasErrors() {
		return ds
	}
	w.r.e.holding.add(h)
	defer w.r.e.holding.remove(h)
	got, ds := w.engine.Apply(context.WithoutCancel(ctx), p, engine.ApplyOptions{
		Variables: w.values, Persist: h.Write, Every: w.r.o.Every, Journal: h, Stop: w.r.o.Stop,
	})
	ds = append(ds, h.End(got.State)...)
	w.res.Counts = Counts{got.Added, got.Changed, got.Destroyed, got.Imported, got.Forgotten}
	if got.Stopped && !ds.HasErrors() {
		ds = append(ds, diag.Errorf(nil, "Apply was interrupted", "Not everything that was planned was done, since the run was interrupted. What was done is in the state.")...)
	}
	w.r.setOutputs(w.u, w.made())
	return ds
}

// made are the outputs that there are after an apply: of a unit without any, none.
func (w *work) made() cty.Value {
	v := storedOutputs(w.hold.Current())
	if v == cty.NilVal && w.mode() != plan.Destroy {
		return cty.EmptyObjectVal
	}
	return v
}
