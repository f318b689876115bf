package apply

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/apply/provision"
	"github.com/terrace-iac/terrace/internal/plan/imports"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
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
		if c.Op == plan.Forget { // one that is replaced counts as added alone, as in OpenTofu
			a.count(func(r *Result) { r.Counts.Forget++ })
		}
	case plan.StepNoOp:
		ds = a.adopt(id, t, c)
	case plan.StepCheck:
		ds = a.recheck(t, c)
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
	sub    *resourceclient.Subject
	config cty.Value  // plain
	marks  []cty.Path // sensitive paths of the configuration
}

// blame sets the place of messages about the target.
func (x *target) blame(ds diag.List) diag.List {
	if x.d == nil {
		return ds
	}
	return resourceclient.Blame(x.d, x.sub.Schema, ds)
}

// generated prepares the change of an imported object whose block was written
// while planning and is no part of the configuration yet.
func (a *applier) generated(t *demand.Task, id int, c *plan.Change) (*target, diag.List) {
	sub, ds := a.unwanted(t, c.Addr, c.Provider)
	if ds.HasErrors() {
		return nil, ds
	}
	config, more := imports.GeneratedValue(c.Import.GeneratedConfig, sub.Schema)
	return &target{id: id, c: c, sub: sub, config: config}, append(ds, more...)
}

// unwanted prepares calls about a managed instance that no block stands for.
func (a *applier) unwanted(t *demand.Task, i addr.Instance, of addr.ProviderConfig) (*resourceclient.Subject, diag.List) {
	pc, ds := a.ev.ProviderAt(t, of, i)
	if ds.HasErrors() {
		return nil, ds
	}
	prov, more := a.client.Configured(t, pc, nil)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	ps, more := a.client.Schema(of.Provider)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	return a.client.Subject(a.ev, i, of, ps.Resource(addr.Managed, i.Resource.Type), prov), ds
}

// wanted prepares the change of an instance that configuration wants.
func (a *applier) wanted(t *demand.Task, id int, c *plan.Change) (*target, diag.List) {
	if c.Import != nil && c.Import.GeneratedConfig != "" {
		return a.generated(t, id, c)
	}
	d := a.ev.Desired(t, c.Addr)
	if d == nil {
		return nil, diag.Errorf(diag.CodeApplyInstanceNotFound, nil, "Instance not found", "The plan contains %s, but with the values that are known now the configuration does not declare it: its count, for_each or enabled argument, or that of a module that contains it, has another value than in the plan. Nothing was done with it. Plan again.", c.Addr)
	}
	if ds := a.openBefore(t, d); ds.HasErrors() {
		return nil, ds
	}
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return nil, ds
	}
	pc, ds := d.Provider(t)
	if ds.HasErrors() {
		return nil, ds
	}
	prov, ds := a.client.Configured(t, pc, nil)
	if ds.HasErrors() {
		return nil, ds
	}
	x := &target{id: id, c: c, d: d, sub: a.client.Subject(a.ev, c.Addr, c.Provider, s, prov)}
	pre, ds := d.Preconditions(t)
	a.outcomes(d, pre)
	if ds.HasErrors() {
		return nil, ds
	}
	var more diag.List
	x.config, x.marks, more = resourceclient.ConfigValue(t, d, s)
	if !more.HasErrors() {
		prior := c.Before
		if c.Op.IsReplace() {
			prior = x.sub.Null() // a new object ignores no changes, as in the plan
		}
		x.config = resourceclient.IgnoreChanges(d, s, prior, x.config)
	}
	return x, append(ds, x.blame(more)...)
}

// write creates or updates an object.
func (a *applier) write(t *demand.Task, id int, act plan.Action, c *plan.Change) diag.List {
	x, ds := a.wanted(t, id, c)
	if ds.HasErrors() {
		return ds
	}
	if c.Import != nil {
		a.count(func(r *Result) { r.Counts.Import++ })
	}
	prior, op := c.Before, c.Op
	if act.Kind == plan.StepCreate {
		prior, op = x.sub.Null(), plan.Create
	}
	planned, more := a.finalPlan(x, prior)
	if ds = append(ds, more...); more.HasErrors() {
		return x.blame(ds)
	}
	if act.Kind == plan.StepUpdate && planned.Value.RawEquals(prior) && !c.After.IsWhollyKnown() && resourceclient.SamePaths(x.sensitive(planned.Value), c.BeforeSensitive) {
		return append(ds, a.accept(t, x, planned.Value)...) // nothing is left to change now that all is known
	}
	if c.Op == plan.CreateThenDelete {
		if more := a.depose(id, act.Change, c); more.HasErrors() {
			return append(ds, more...)
		}
	}
	obj := addr.Object{Instance: c.Addr, Deposed: c.Deposed}
	if err := a.intent(id, obj, op); err != nil {
		return append(ds, diag.Errorf(diag.CodeJournalFiles, nil, "Failed to write the journal", "%s was not started, because Terrace could not record that it was about to: %s.", c.Addr, err)...)
	}
	run := a.ops.Begin(obj, op, x.sub.Called(prior, c.BeforeSensitive))
	got, more := a.make(x, prior, planned)
	ds = append(ds, x.blame(more)...)
	ds = append(ds, x.blame(a.answer(t, x, act, got))...)
	run.End(!ds.HasErrors(), called(x.sub, got.Value, x.marks))
	if ds.HasErrors() {
		return ds
	}
	a.countWritten(op)
	if got.Failed {
		return ds // outputs do not read what is not whole
	}
	return append(ds, a.accept(t, x, got.Value)...)
}

// called is what a new object is called by, nil if there is none.
func called(sub *resourceclient.Subject, v cty.Value, sensitive []cty.Path) *resourceclient.Called {
	if v == cty.NilVal || v.IsNull() {
		return nil
	}
	out := sub.Called(v, sensitive)
	return &out
}

// accept holds a new value to the postconditions. Only one that meets them is there
// for what reads the instance.
func (a *applier) accept(t *demand.Task, x *target, v cty.Value) diag.List {
	if x.d == nil || !x.d.Resource.HasRules() {
		a.keep(x, v)
		return nil
	}
	post, ds := x.d.Postconditions(t, resourceclient.WithSensitive(v, x.sensitive(v), x.sub.Schema))
	a.outcomes(x.d, post)
	if !ds.HasErrors() {
		a.keep(x, v)
	}
	return ds
}

// make has the provider make what is planned. Where nothing but what is
// sensitive changes, there is nothing for it to do.
func (a *applier) make(x *target, prior cty.Value, planned resourceclient.Object) (resourceclient.Answer, diag.List) {
	if !prior.IsNull() && planned.Value.RawEquals(prior) {
		return resourceclient.Answer{Object: resourceclient.Object{Value: prior, Private: a.priorPrivate(x.c, prior), Identity: x.c.BeforeIdentity}}, nil
	}
	return x.sub.Apply(prior, planned, x.config)
}

// intent records that a call is about to be made.
func (a *applier) intent(id int, obj addr.Object, op plan.Op) error {
	if a.in.State == nil {
		return nil
	}
	return a.in.State.Begin(id, obj.String(), op.String())
}

func (a *applier) countWritten(op plan.Op) {
	a.count(func(r *Result) {
		if op == plan.Create {
			r.Counts.Add++
		} else {
			r.Counts.Change++
		}
	})
}

// finalPlan is the planned object with everything known that was not while
// planning: where the configuration was not wholly known then, the provider is
// asked again, and held to what it said.
func (a *applier) finalPlan(x *target, prior cty.Value) (resourceclient.Object, diag.List) {
	c := x.c
	planned := resourceclient.Object{Value: c.After, Private: c.Private, Identity: c.AfterIdentity}
	if c.ConfigKnown {
		return planned, nil
	}
	resp, ds := x.sub.Replan(resourceclient.Object{Value: prior, Private: a.priorPrivate(c, prior), Identity: c.BeforeIdentity}, x.config, c.After)
	if ds.HasErrors() {
		return planned, ds
	}
	return resourceclient.Object{Value: resp.Planned, Private: resp.Private, Identity: resp.Identity}, ds
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

// answer records what a provider answered and runs create provisioners.
func (a *applier) answer(t *demand.Task, x *target, act plan.Action, got resourceclient.Answer) diag.List {
	if got.Value.IsNull() {
		return a.nothing(x, act, got.Failed)
	}
	// Until its provisioners have run, a new object counts as tainted: a run that
	// is killed meanwhile must not leave it behind as if it were whole.
	run := act.Kind == plan.StepCreate && !got.Failed && x.d != nil && provision.AfterCreate(x.d)
	tainted := act.Kind == plan.StepCreate && (got.Failed || run)
	a.change(x.id, a.stored(x, got.Object, tainted))
	if !tainted {
		return nil
	}
	if !got.Failed {
		ds := a.safe(x)
		if !ds.HasErrors() {
			ds = a.runner.Created(t, x.d, x.sub.Marked(got.Value, x.marks))
		}
		if !ds.HasErrors() {
			a.change(x.id, a.stored(x, got.Object, false))
			return nil
		}
		a.taint(x)
		return ds
	}
	a.taint(x)
	return nil
}

// safe returns once a new object is in the journal and on disk, before its provisioners
// run: they may take long, or end the machine.
func (a *applier) safe(x *target) diag.List {
	if a.in.State == nil {
		return nil
	}
	if err := a.in.State.Sync(); err != nil {
		return diag.Errorf(diag.CodeJournalFiles, nil, "Failed to write the journal", "The provisioners of %s were not run, because Terrace could not record that it was created: %s.", x.c.Addr, err)
	}
	return nil
}

// taint notes that an object is there, but not whole: outputs read what the plan knew
// of it, and nothing that the provider decided.
func (a *applier) taint(x *target) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tainted[x.c.Addr] = resourceclient.WithSensitive(x.c.After, x.c.AfterSensitive, x.sub.Schema)
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
			a.change(x.id) // answered: nothing changed
		}
		return nil
	}
	a.change(x.id) // answered: nothing changed
	return diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid object", "Provider %q returned no object after applying changes to %s, and no error either.\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", c.Provider.Provider.String(), c.Addr)
}

// stored is the state change for an object of a wanted instance.
func (a *applier) stored(x *target, o resourceclient.Object, tainted bool) state.Change {
	obj, ds := x.sub.Store(o)
	if ds.HasErrors() { // the value was checked to be known and of the right type
		panic(fmt.Sprintf("apply: %s cannot be stored: %s", x.c.Addr, ds.Err()))
	}
	obj.Sensitive = x.sensitive(o.Value)
	obj.Tainted = tainted
	obj.Dependencies = x.c.Dependencies
	obj.CreateBeforeDestroy = x.c.ForcedCBD
	obj.SkipDestroy = x.c.SkipDestroy
	return state.Change{Object: addr.Object{Instance: x.c.Addr}, Provider: x.c.Provider, New: obj}
}

// sensitive is what is sensitive in a value, by configuration and by the schema.
func (x *target) sensitive(v cty.Value) []cty.Path {
	return resourceclient.SensitivePaths(x.sub.Schema, v, resourceclient.Present(v, x.marks))
}

// depose moves the current object aside for a create-before-destroy replacement.
func (a *applier) depose(id, change int, c *plan.Change) diag.List {
	old, pc, ok := a.objectNow(addr.Object{Instance: c.Addr})
	if !ok {
		return nil
	}
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // it never fails: the program ends where the system has no random numbers
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

// objectNow reads an object out of state as it is now.
func (a *applier) objectNow(o addr.Object) (*state.Object, addr.ProviderConfig, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draft != nil {
		return a.draft.Object(o)
	}
	return a.frozen.Object(o)
}
