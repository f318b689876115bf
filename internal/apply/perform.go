package apply

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/zclconf/go-cty/cty"
)

// perform carries out one action and reports whether it succeeded.
func (a *applier) perform(id int, act plan.Action) bool {
	a.mu.Lock()
	dead := a.dead
	a.mu.Unlock()
	if dead != nil {
		return false
	}
	c := a.in.Plan.Changes[act.Change]
	t := a.graph.Task(a.ctx)
	var ds diag.List
	switch act.Kind {
	case plan.StepCreate, plan.StepUpdate:
		ds = a.write(t, id, act, c)
	case plan.StepRead:
		ds = a.readPlanned(t, id, c)
	case plan.StepDelete, plan.StepDeleteDeposed:
		ds = a.remove(t, id, act, c)
	case plan.StepForget:
		a.change(id, state.Change{Object: addr.Object{Instance: c.Addr, Deposed: c.Deposed}, Provider: c.Provider})
		a.count(func(r *Result) { r.Forgotten++ })
	case plan.StepNoOp:
		ds = a.adopt(id, t, c)
	}
	if len(ds) > 0 {
		a.graph.Report(ds.About(c.Addr.String()))
	}
	if ds.HasErrors() {
		a.mu.Lock()
		a.failed[c.Addr] = true
		a.mu.Unlock()
		return false
	}
	return true
}

// skip marks an instance whose action cannot run because another one failed.
func (a *applier) skip(act plan.Action) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed[a.in.Plan.Changes[act.Change].Addr] = true
}

func (a *applier) count(f func(*Result)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.result)
}

// target is everything that is needed to change one object.
type target struct {
	id     int
	c      *plan.Change
	d      *eval.Desired // nil for an object whose block was generated
	s      *schema.Resource
	prov   provider.Provider
	config cty.Value // plain
	meta   cty.Value
	marks  []cty.Path // sensitive paths of the configuration
}

// blame sets the place of messages about the target.
func (x *target) blame(ds diag.List) diag.List {
	if x.d == nil {
		return ds
	}
	return plan.Blame(x.d, x.s, ds)
}

// generated prepares the change of an imported object whose block was written
// while planning and is no part of the configuration yet.
func (a *applier) generated(t *demand.Task, id int, c *plan.Change) (*target, diag.List) {
	ps, ds := a.shell.Schema(c.Provider.Provider)
	if ds.HasErrors() {
		return nil, ds
	}
	pc, more := a.ev.ProviderAt(t, c.Provider, c.Addr)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	prov, more := a.configured(t, pc)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	x := &target{id: id, c: c, s: ps.Resource(addr.Managed, c.Addr.Resource.Type), prov: prov}
	x.meta = a.shell.Meta(a.in.Tree.Root, c.Addr, prov)
	x.config, more = plan.GeneratedValue(c.Import.GeneratedConfig, x.s)
	return x, append(ds, more...)
}

// wanted prepares the change of an instance that configuration wants.
func (a *applier) wanted(t *demand.Task, id int, c *plan.Change) (*target, diag.List) {
	if c.Import != nil && c.Import.GeneratedConfig != "" {
		return a.generated(t, id, c)
	}
	d := a.ev.Desired(t, c.Addr)
	if d == nil {
		return nil, diag.Errorf(nil, "Instance not found", "The plan holds %s, which configuration does not want any more. This is a bug in Terrace.", c.Addr)
	}
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return nil, ds
	}
	pc, ds := d.Provider(t)
	if ds.HasErrors() {
		return nil, ds
	}
	prov, ds := a.configured(t, pc)
	if ds.HasErrors() {
		return nil, ds
	}
	x := &target{id: id, c: c, d: d, s: s, prov: prov, meta: a.shell.Meta(d.Resource.Mod.Node, c.Addr, prov)}
	pre, ds := d.Preconditions(t)
	a.outcomes(d, pre)
	if ds.HasErrors() {
		return nil, ds
	}
	var more diag.List
	prior := c.Before
	if c.Op.IsReplace() {
		prior = cty.NullVal(s.Block.ImpliedType()) // a new object ignores no changes, as in the plan
	}
	x.config, x.marks, more = plan.ConfigValue(t, d, s, prior)
	return x, append(ds, plan.Blame(d, s, more)...)
}

func (a *applier) outcomes(d *eval.Desired, out []eval.Outcome) {
	if len(out) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcome = append(a.outcome, plan.ResourceConditions(d, out))
}

// write creates or updates an object.
func (a *applier) write(t *demand.Task, id int, act plan.Action, c *plan.Change) diag.List {
	x, ds := a.wanted(t, id, c)
	if ds.HasErrors() {
		return ds
	}
	if c.Import != nil {
		a.count(func(r *Result) { r.Imported++ })
	}
	prior, private := c.Before, c.Private
	if act.Kind == plan.StepCreate {
		prior = cty.NullVal(x.s.Block.ImpliedType())
	}
	planned, private, identity, more := a.finalPlan(x, prior, private)
	if ds = append(ds, more...); more.HasErrors() {
		return x.blame(ds)
	}
	if act.Kind == plan.StepUpdate && planned.RawEquals(prior) && !c.After.IsWhollyKnown() && plan.SamePaths(plan.SensitivePaths(x.s, planned, x.marks), c.BeforeSensitive) {
		a.keep(x, planned)
		return ds // nothing is left to change now that all is known
	}
	op := c.Op
	if act.Kind == plan.StepCreate {
		op = plan.Create
	}
	if c.Op == plan.CreateThenDelete {
		if more := a.depose(id, act.Change, c); more.HasErrors() {
			return append(ds, more...)
		}
	}
	run := a.begin(id, a.startEvent(c, op, prior))
	if err := a.intent(id, c, op); err != nil {
		return append(ds, diag.Errorf(nil, "Failed to write the journal", "%s was not started, because Terrace could not record that it was about to: %s.", c.Addr, err)...)
	}
	done := a.call()
	resp, more := x.prov.Apply(a.ctx, provider.ApplyRequest{Type: c.Addr.Resource.Type, Prior: prior, Planned: planned, Config: x.config, Private: private, Meta: x.meta, PlannedIdentity: identity})
	done()
	ds = append(ds, x.blame(more)...)
	ds = append(ds, x.blame(a.answer(t, x, act, planned, prior, resp, more.HasErrors()))...)
	a.tell(x, run, op, resp.State, ds)
	if ds.HasErrors() {
		return ds
	}
	if x.d == nil {
		return ds
	}
	post, more := x.d.Postconditions(t, a.valueOf(c.Addr))
	a.outcomes(x.d, post)
	return append(ds, more...)
}

func (a *applier) startEvent(c *plan.Change, op plan.Op, prior cty.Value) event.Event {
	e := event.Event{Kind: event.ApplyStart, Object: addr.Object{Instance: c.Addr, Deposed: c.Deposed}, Op: op}
	if !prior.IsNull() {
		e.IDKey, e.IDValue = plan.Identify(prior)
	}
	return e
}

func (a *applier) intent(id int, c *plan.Change, op plan.Op) error {
	if a.in.Journal == nil {
		return nil
	}
	return a.in.Journal.Begin(id, addr.Object{Instance: c.Addr, Deposed: c.Deposed}.String(), op.String())
}

// tell sends the event of a finished operation and counts it.
func (a *applier) tell(x *target, run *operation, op plan.Op, v cty.Value, ds diag.List) {
	if ds.HasErrors() {
		a.end(x.id, run, event.ApplyError, cty.NilVal)
		return
	}
	a.end(x.id, run, event.ApplyDone, v)
	a.count(func(r *Result) {
		if op == plan.Create {
			r.Added++
		} else {
			r.Changed++
		}
	})
}

// finalPlan is the planned value with everything known that was not while
// planning: where the configuration was not wholly known then, the provider is
// asked again, and held to what it said.
func (a *applier) finalPlan(x *target, prior cty.Value, private []byte) (planned cty.Value, newPrivate []byte, identity cty.Value, ds diag.List) {
	c := x.c
	if c.ConfigKnown {
		return c.After, private, c.AfterIdentity, nil
	}
	done := a.call()
	resp, ds := x.prov.Plan(a.ctx, provider.PlanRequest{
		Type: c.Addr.Resource.Type, Prior: prior, Proposed: x.s.Block.ProposedNew(prior, x.config), Config: x.config,
		Private: a.priorPrivate(c, prior), Meta: x.meta, PriorIdentity: c.BeforeIdentity,
	})
	done()
	if ds.HasErrors() {
		return c.After, private, c.AfterIdentity, ds
	}
	if resp.Planned == cty.NilVal || resp.Planned.IsNull() {
		return c.After, private, c.AfterIdentity, append(ds, inconsistent(x, "the plan holds no object")...)
	}
	for _, err := range schema.AssertPlanValid(x.s.Block, prior, x.config, resp.Planned, resp.Legacy) {
		ds = append(ds, diag.Errorf(nil, "Provider produced invalid plan", "Provider %q planned an invalid value for %s: %s.\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", c.Provider.Provider.String(), c.Addr, err)...)
	}
	if !resp.Legacy {
		for _, err := range schema.AssertObjectCompatible(x.s.Block, c.After, resp.Planned) {
			ds = append(ds, inconsistent(x, err.Error())...)
		}
	}
	return resp.Planned, resp.Private, resp.Identity, ds
}

// priorPrivate is the private data of the object before the change; c.Private is
// that of the plan.
func (a *applier) priorPrivate(c *plan.Change, prior cty.Value) []byte {
	if prior.IsNull() {
		return nil
	}
	if obj, _, ok := a.in.Plan.Prior.Object(addr.Object{Instance: c.Addr}); ok {
		return obj.Private
	}
	return nil
}

func inconsistent(x *target, why string) diag.List {
	return diag.Errorf(nil, "Provider produced inconsistent final plan", "When expanding the plan for %s to include new values learned so far during apply, provider %q produced an invalid new value: %s.\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", x.c.Addr, x.c.Provider.Provider.String(), why)
}

// answer records what a provider answered, runs create provisioners, and says
// what is wrong with the answer.
func (a *applier) answer(t *demand.Task, x *target, act plan.Action, planned, prior cty.Value, resp provider.ApplyResponse, failed bool) diag.List {
	c := x.c
	null := cty.NullVal(x.s.Block.ImpliedType())
	v := resp.State
	var ds diag.List
	if v == cty.NilVal {
		v = null
		if failed && act.Kind == plan.StepUpdate {
			v = prior
		}
	}
	if err := conforms(x.s, v); err != nil {
		ds = append(ds, diag.Errorf(nil, "Provider produced invalid object", "Provider %q produced an invalid value after apply for %s: %s. The result cannot be saved.\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", c.Provider.Provider.String(), c.Addr, err)...)
		v, failed = null, true
		if act.Kind == plan.StepUpdate {
			v = prior
		}
	}
	if !v.IsWhollyKnown() {
		path, _ := schema.FirstUnknown(v)
		ds = append(ds, diag.Errorf(nil, "Provider returned invalid result object after apply", "After the apply operation, the provider still indicated an unknown value for %s%s. All values must be known after apply, so this is always a bug in the provider and should be reported in the provider's own repository. Terrace will still save the other known object values in the state.", c.Addr, value.PathString(path))...)
		v, _ = cty.Transform(v, func(_ cty.Path, e cty.Value) (cty.Value, error) {
			if !e.IsKnown() {
				return cty.NullVal(e.Type()), nil
			}
			return e, nil
		})
		failed = true
	}
	if v.IsNull() {
		return append(ds, a.nothing(x, act, failed || len(ds) > 0)...)
	}
	if !failed && !resp.Legacy {
		for _, err := range schema.AssertObjectCompatible(x.s.Block, planned, v) {
			ds = append(ds, diag.Errorf(nil, "Provider produced inconsistent result after apply", "When applying changes to %s, provider %q produced an unexpected new value: %s.\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", c.Addr, c.Provider.Provider.String(), err)...)
		}
	}
	v = x.s.Block.StripWriteOnly(v)
	failed = failed || ds.HasErrors()
	// Until its provisioners have run, a new object counts as tainted: a run that
	// is killed meanwhile must not leave it behind as if it were whole.
	provision := act.Kind == plan.StepCreate && !failed && x.d != nil && hasCreateProvisioners(x.d)
	tainted := act.Kind == plan.StepCreate && (failed || provision)
	a.change(x.id, a.stored(x, v, resp.Private, resp.Identity, tainted))
	a.keep(x, v)
	if failed || !provision {
		return ds
	}
	more := a.provision(t, x.d, v, false)
	if !more.HasErrors() {
		a.change(x.id, a.stored(x, v, resp.Private, resp.Identity, false))
	}
	return append(ds, more...)
}

func conforms(s *schema.Resource, v cty.Value) error {
	if v.IsNull() && v.Type().Equals(s.Block.ImpliedType()) {
		return nil
	}
	if !v.IsKnown() {
		return fmt.Errorf("the whole object is unknown")
	}
	return schema.AssertUsable(s.Block, v, false)
}

// nothing handles an answer without an object.
func (a *applier) nothing(x *target, act plan.Action, failed bool) diag.List {
	c := x.c
	if failed {
		if key, was := a.deposedOf(act.Change); was { // the old object takes its place again
			old, pc, _ := a.snapshot().Object(addr.Object{Instance: c.Addr, Deposed: key})
			a.change(x.id,
				state.Change{Object: addr.Object{Instance: c.Addr, Deposed: key}, Provider: pc},
				state.Change{Object: addr.Object{Instance: c.Addr}, Provider: pc, New: old})
		} else {
			a.settleIntent(x.id)
		}
		return nil
	}
	a.settleIntent(x.id)
	return diag.Errorf(nil, "Provider produced invalid object", "Provider %q returned no object after applying changes to %s, and no error either.\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", c.Provider.Provider.String(), c.Addr)
}

// settleIntent records that a call was answered and changed nothing.
func (a *applier) settleIntent(id int) { a.change(id) }

// stored is the state change for an object of a wanted instance.
func (a *applier) stored(x *target, v cty.Value, private []byte, identity cty.Value, tainted bool) state.Change {
	obj, err := plan.NewObject(v, x.s, private, identity)
	if err != nil { // the value was checked to be known and of the right type
		panic(fmt.Sprintf("apply: %s cannot be stored: %s", x.c.Addr, err))
	}
	obj.Sensitive = plan.SensitivePaths(x.s, v, x.marks)
	obj.Tainted = tainted
	obj.Dependencies = x.c.Dependencies
	obj.CreateBeforeDestroy = x.c.ForcedCBD
	obj.SkipDestroy = x.c.SkipDestroy
	return state.Change{Object: addr.Object{Instance: x.c.Addr}, Provider: x.c.Provider, New: obj}
}

// keep makes a new value available to what reads the instance.
func (a *applier) keep(x *target, v cty.Value) {
	out := plan.WithSensitive(v, plan.SensitivePaths(x.s, v, x.marks), x.s)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.values[x.c.Addr] = out
}

func (a *applier) valueOf(i addr.Instance) cty.Value {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.values[i]
}

// depose moves the current object aside for a create-before-destroy replacement.
func (a *applier) depose(id, change int, c *plan.Change) diag.List {
	old, pc, ok := a.snapshotObject(c.Addr)
	if !ok {
		return nil
	}
	var raw [4]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return diag.Errorf(nil, "No random numbers", "The key for the old object of %s cannot be made: %s.", c.Addr, err)
	}
	key := addr.DeposedKey(hex.EncodeToString(raw[:]))
	a.change(id,
		state.Change{Object: addr.Object{Instance: c.Addr}, Provider: pc},
		state.Change{Object: addr.Object{Instance: c.Addr, Deposed: key}, Provider: pc, New: old})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deposed[change] = key
	return nil
}

func (a *applier) deposedOf(change int) (addr.DeposedKey, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.deposed[change]
	return k, ok
}

// snapshotObject reads the current object of an instance out of state as it is now.
func (a *applier) snapshotObject(i addr.Instance) (*state.Object, addr.ProviderConfig, bool) {
	return a.objectNow(addr.Object{Instance: i})
}

func (a *applier) objectNow(o addr.Object) (*state.Object, addr.ProviderConfig, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draft != nil {
		return a.draft.Object(o)
	}
	return a.frozen.Object(o)
}
