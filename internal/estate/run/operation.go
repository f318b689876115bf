package run

import (
	"context"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/outputs"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/plan/rounds"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// operationWork runs an operation of the run: plan, apply, validate or init.
type operationWork struct {
	*Turn
	waits    waits
	curable  diag.List          // errors that hooks before the command may fix
	approval *saved.Approval    // the approved plan of the unit; nil if no approval is required
	held     *workdir.OpenState // the open state; it stays readable after it is released
	round    int                // the current round of an apply, from 1 on
}

// excluded implements work. It evaluates an exclude block that depends on outputs, which was
// impossible before the run. The unit is skipped, or deferred if the outputs are still unknown.
func (w *operationWork) excluded() (out bool, ds diag.List) {
	x, ds := w.Unit.Exclude(w.task)
	if ds.HasErrors() || x == nil || !x.Late {
		return false, ds
	}
	if x, ds = w.Unit.ExcludeNow(w.task); ds.HasErrors() || x == nil {
		return false, ds
	}
	switch {
	case x.Late:
		w.deferUnit("exclude", "exclude")
		return true, ds
	case x.If && discovery.Excludes(x, w.Command):
		w.res.LeaveOut()
		return true, ds
	}
	return false, ds
}

// found implements work. It defers the unit as a whole if its directory depends on outputs that
// are not known yet.
func (w *operationWork) found() (idle bool, ds diag.List) {
	if part := w.at.dir.Waits; part != "" {
		w.deferUnit(part, w.at.dir.WaitsIn)
		return true, nil
	}
	return false, nil
}

// deferUnit defers the unit as a whole. part describes the part of the unit that depends on
// unknown outputs, and name is its name in the unit file.
func (w *operationWork) deferUnit(part, name string) {
	wait := waits{name: w.Name}.of("", w.Unit.Waits(w.task, name))
	w.deferred(nil, report.Deferral{Reason: part + " is not known yet", Waits: wait})
}

// deferred records that the unit is deferred as a whole. root is its module, or nil if that is
// unknown.
func (w *operationWork) deferred(root *config.Module, d report.Deferral) {
	w.res.Deferred, w.res.Changes = []report.Deferral{d}, true
	w.Computed.Set(w.Unit.ID, outputs.Unknown(root))
}

// ready implements work. It opens the engine and computes the inputs.
func (w *operationWork) ready(ctx context.Context) (idle bool, ds diag.List) {
	if ds = w.unfit(); ds.HasErrors() {
		return false, ds
	}
	if ds = append(ds, w.States.Prepare(ctx, w.Unit.Name, w.at.dir, w.at.Environ())...); ds.HasErrors() {
		return false, ds
	}
	changed, more := w.beforeInit(ctx)
	if ds = append(ds, more...); more.HasErrors() {
		return false, ds
	}
	if changed {
		w.res.Set = w.at.dir.Parsed.Set
	}
	idle, more = w.open(ctx)
	if !idle && w.hooks.any() && curable(more) {
		w.curable = more
		return false, ds
	}
	return idle, append(ds, more...)
}

// curable reports whether hooks may fix all errors in ds before the command runs, such as missing
// files or values for variables. It is true if there are no errors.
func curable(ds diag.List) bool {
	return !slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool {
		return m.Code == diag.CodeEstateInputType || strings.HasPrefix(m.Code, "unit/")
	})
}

// open opens the engine and computes the inputs. It returns idle if there is nothing to do.
func (w *operationWork) open(ctx context.Context) (idle bool, ds diag.List) {
	if _, ds = w.module.open(ctx); ds.HasErrors() {
		return false, ds
	}
	if more := append(w.unconfigured(w.module.root()), workcopy.NoBackendBlock(w.Unit.Called(), w.at.dir.Remote, w.module.root())...); more.HasErrors() {
		return false, append(ds, more...)
	}
	idle, more := w.evaluate(ctx)
	return idle, append(ds, more...)
}

// evaluate computes the inputs if the operation needs them, and opens the approved plan. It
// returns idle if there is nothing to do.
func (w *operationWork) evaluate(ctx context.Context) (idle bool, ds diag.List) {
	if w.o.Op == Validate || w.o.Op == Init {
		return false, ds
	}
	u, declared := w.Unit, w.module.root().Variables
	values, waiting, ds := w.at.variables(declared)
	w.module.values, w.waits = values, waits{name: w.Name, inputs: waiting}
	if ds.HasErrors() {
		empty, about := w.state.nothingLeft(ctx, w.module)
		if empty || about.HasErrors() {
			return empty, about
		}
		return false, append(ds, about...)
	}
	if w.o.Approved != nil {
		enc, more := w.module.encryption(ctx)
		if ds = append(ds, more.Errors()...); more.HasErrors() {
			return false, ds
		}
		if w.approval, more = saved.Of(w.o.Approved, u.Name, enc.Plan(ctx).Plans()); more.HasErrors() {
			return false, append(ds, more...)
		}
	}
	for name, v := range w.approval.Inputs() { // values of the approved plan that nothing sets now
		if _, ok := values[name]; !ok && declared[name] != nil {
			values[name] = engine.InputValue{Value: v}
		}
	}
	ds = append(ds, inputs.Missing(u.Called(), u.Path, declared, values)...)
	return false, append(ds, w.at.checkInputs(declared)...)
}

// unfit returns an error if extra_arguments contain arguments that a run over several units does
// not accept.
func (w *operationWork) unfit() diag.List {
	if len(w.at.extra.Other) == 0 {
		return nil
	}
	return diag.Errorf(diag.CodeEstateExtraArgument, w.at.dir.Terraform.At, "Extra argument not available", "The extra_arguments of the unit contain %s. A run over several units takes no flags for one directory (-state, -out) from a unit, and no flags for the output of the whole run (-json, -detailed-exitcode). Run the command in the directory of the unit, or write the flags of the whole run on the command line.", strings.Join(w.at.extra.Other, " "))
}

// run implements work.
func (w *operationWork) run(ctx context.Context) diag.List {
	ds := w.hooks.before(ctx)
	if !ds.HasErrors() {
		idle, more := w.settle(ctx)
		if ds = append(ds, more...); !ds.HasErrors() && !idle {
			ds = append(ds, w.operate(ctx)...)
		}
	}
	return append(ds, w.hooks.after(ctx, ds)...)
}

// settle reads the module and the inputs again after hooks ran. If hooks changed the working
// directory, it reads the module from there. It drops errors that the hooks have fixed.
func (w *operationWork) settle(ctx context.Context) (idle bool, ds diag.List) {
	if !w.hooks.ran {
		return false, w.curable
	}
	changed, ds := w.hooks.reread()
	switch {
	case ds.HasErrors():
		return false, ds
	case changed:
		w.res.Set = w.at.dir.Parsed.Set
	case !w.curable.HasErrors():
		idle, ds = w.evaluate(ctx)
		for _, m := range w.curable {
			if !slices.ContainsFunc(ds, func(o *diag.Message) bool { return o.Summary == m.Summary && o.Detail == m.Detail }) {
				ds = append(ds, m)
			}
		}
		return idle, ds
	}
	w.module.close()
	return w.open(ctx)
}

// operate runs the operation.
func (w *operationWork) operate(ctx context.Context) diag.List {
	switch w.o.Op {
	case Init:
		if _, ds := w.module.place(ctx, w.module.values); w.Host.initializes() && slices.ContainsFunc(ds, states.Changed) {
			return w.module.install(ctx)
		}
		return nil // init does not check the rest of the state's configuration
	case Validate:
		ctx, s := w.at.phase(ctx, "validate")
		ds := w.module.engine.Validate(ctx)
		if w.o.Tests != "" {
			_, more := testrun.Load(w.at.dir.Files, w.o.Tests, w.at.dir.Parsed.Set, w.module.engine.Tree().Root.Config)
			ds = append(ds, more...)
		}
		ended(s, ds)
		return ds
	}
	return w.planAndApply(ctx)
}

// planAndApply runs plan, and apply if that is the operation.
func (w *operationWork) planAndApply(ctx context.Context) diag.List {
	where, ds := w.state.where(ctx, w.module)
	if ds.HasErrors() {
		return ds
	}
	op := &workdir.Operation{
		Engine: w.module.engine, Env: w.at.Environ(), Values: w.module.values, Unit: siteUnit{w.at}, Moves: siteUnit{w.at}.Moves(), Stop: w.o.Stop,
		Host:  turnHost{w.Host.of(w.at.unit.Name), w.module.observe, w.Changing},
		Reads: w.reads(), Choose: w.module.chooseMore,
	}
	generate, more := w.generateTo()
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	po := w.at.extra.Plan(w.o.Plan)
	po.Accept = po.Accept.In(path.Join(po.Accept.Dir, w.Unit.Name))
	po.Mode, po.GenerateTo, po.DeferInputs, po.Time = w.mode(), generate, w.o.Op == Plan, w.approval.Time()
	var done workdir.Done
	var counts plan.Counts
	w.round = 1
	steps := workdir.Steps{
		Locked: func(ctx context.Context) (statemgr.Options, diag.List) {
			return w.state.options(ctx, where)
		},
		Taken: func(h *workdir.OpenState, po *plan.Options) diag.List {
			w.States.Took()
			if w.held = h; w.round == 1 {
				po.Replace = w.replaced(h.Current())
			}
			if w.o.Op != Apply {
				return nil
			}
			return siteUnit{w.at}.Applying(ctx, where.Config, where.Workspace)
		},
		Planned: func(_ context.Context, p *plan.Plan, ds diag.List) (bool, diag.List) {
			return w.planned(p, where.Encryption.Plan(ctx).Plans(), ds)
		},
		Span: w.at.span,
	}
	for ; ; w.round++ {
		done, more = op.Run(ctx, workdir.Want{
			Plan:  po,
			Apply: w.o.Op == Apply, Every: w.o.Every, ShowSensitive: w.o.ShowSensitive, MovesFirst: true,
		}, steps)
		ds = append(ds, more...)
		w.res.Diags = append(w.res.Diags, done.Released...)
		counts = counts.Plus(done.Counts)
		if !done.Applied || !rounds.Continues(done.Plan, w.round, w.o.Rounds.Most) || w.approval.Saved() || stopped(w.o.Stop) {
			break
		}
		po.Replace, po.ReplacePatterns = nil, nil // the state contains what is still to be replaced
	}
	if _, err := os.Stat(generate); generate != "" && err == nil {
		w.o.Observe.Log(w.Unit, "Configuration was generated and written to "+generate)
	}
	if w.o.Op != Apply || w.held == nil {
		return ds
	}
	w.res.Counts = counts
	if done.Applied || done.Began {
		w.Computed.Set(w.Unit.ID, w.made(done.Plan))
	}
	if done.Applied {
		w.o.Observe.Applied(w.res, done.State)
	}
	return ds
}

// generateTo returns the file for configuration that plan generates for imported objects, or ""
// for none. The file is in the working directory of the unit, which generateTo creates. It is an
// error if the file exists.
func (w *operationWork) generateTo() (string, diag.List) {
	if w.o.Plan.GenerateTo == "" || w.o.Op != Plan {
		return "", nil
	}
	path := sys.Join(w.at.dir.Path, w.o.Plan.GenerateTo)
	if _, err := os.Stat(path); err == nil {
		return "", diag.Errorf(diag.CodeCLIGenerateExists, nil, "Target generated file already exists", "The file %s exists already in the working directory of the unit %s, and generated configuration is only written into a new file. Use another name for it, or delete the file.", path, w.Unit.Called())
	}
	return path, w.at.dir.Make()
}

// planned records the plan p with the messages ds of planning. It reports whether the plan may be
// applied and returns the messages that remain.
func (w *operationWork) planned(p *plan.Plan, by sealing.Sealer, ds diag.List) (yes bool, left diag.List) {
	switch {
	case ds.HasErrors() && len(w.waits.inputs) > 0 && w.o.Op == Plan && workcopy.NotKnownYet(ds):
		w.deferred(w.module.root(), report.Deferral{Reason: "what must be known before anything is planned is not known yet", At: ds.Errors()[0].At, Waits: w.waits.all()})
		return false, ds.Warnings()
	case ds.HasErrors():
		return false, ds
	}
	w.notePlan(p, by)
	if w.o.Op == Plan {
		w.Computed.Set(w.Unit.ID, w.outputs(p))
		return false, ds
	}
	yes, more := w.approved(p)
	if w.round > 1 && w.o.Approver == nil {
		more = append(more, rounds.Check(p, w.round, w.o.Rounds.Allow)...)
	}
	if ds = append(ds, more...); !yes && !more.HasErrors() {
		w.res.Break("run error", "what had been deferred was not approved")
	}
	return yes, ds
}

// replaced returns the instances of the -replace option that exist in this unit's module or in
// prev, its previous state. The option is given to all units, and those that do not have the
// instance ignore it.
func (w *operationWork) replaced(prev *state.State) []addr.Instance {
	var out []addr.Instance
	for _, a := range w.at.extra.Plan(w.o.Plan).Replace {
		n := w.module.engine.Tree().Root
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

// outputs returns the outputs that other units of a plan see.
func (w *operationWork) outputs(p *plan.Plan) cty.Value {
	if w.o.Plan.Mode != plan.Normal || w.Inputs.Mocks {
		return outputs.Stored(w.held.Current())
	}
	return outputs.Planned(p, w.module.root())
}

// notePlan records the unit's plan in the result. by encrypts the plan if it is saved.
func (w *operationWork) notePlan(p *plan.Plan, by sealing.Sealer) {
	w.res.Plan, w.res.Changes, w.res.Deferred, w.res.Counts, w.res.Reads = p, p.HasChanges(), w.waits.deferrals(p), p.Counts(), p.Reads
	w.res.Drift = drifted(p)
	if w.o.Saving != nil {
		w.o.Saving.Take(w.Unit.Name, w.digest(), by, p)
	}
	w.res.Accepted = p.Accepted
	w.o.Observe.Planned(w.Unit, w.module.engine, p)
	if w.o.Op == Apply || w.o.DropPlans || w.o.Saving != nil {
		w.res.Plan = nil // plans are large
	}
	if w.o.Op == Apply {
		w.res.Counts = plan.Counts{} // the counts of an apply are those of the actions done
	}
}

// stopped reports whether a channel that may be nil is closed.
func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// made returns the outputs after an apply of p, without those that wait for deferred objects.
// For a unit without outputs it returns an empty object.
func (w *operationWork) made(p *plan.Plan) cty.Value {
	v := outputs.Stored(w.held.Current())
	if len(p.Deferred) > 0 {
		v = outputs.Only(v, p)
	}
	if v == cty.NilVal && !w.state.destroys {
		return cty.EmptyObjectVal
	}
	return v
}

// digest returns a digest of the unit's configuration.
func (w *operationWork) digest() string {
	return w.digests.Pure(w.at.dir.Parsed, func() string { return saved.Digest(w.module.engine.Tree()) })
}

// drifted returns the number of objects that a refresh-only plan shows as changed.
func drifted(p *plan.Plan) (n int) {
	if p.Mode&plan.RefreshOnly == 0 {
		return 0
	}
	for _, c := range plan.Shown(p.Drift) {
		if c.Op != plan.NoOp {
			n++
		}
	}
	return n
}
