package apply

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// remove destroys a current or deposed object.
func (a *applier) remove(t *demand.Task, id int, act plan.Action, c *plan.Change) diag.List {
	obj := addr.Object{Instance: c.Addr, Deposed: c.Deposed}
	if c.Op == plan.CreateThenDelete {
		key, ok := a.deposedOf(act.Change)
		if !ok {
			return nil
		}
		obj.Deposed = key
	}
	stored, of, ok := a.objectNow(obj)
	if !ok {
		return nil
	}
	sub, ds := a.unwanted(t, c.Addr, of)
	if ds.HasErrors() {
		return ds
	}
	d := a.blockOf(t, c.Addr)
	run := a.ops.Begin(obj, plan.Delete, sub.Called(c.Before, c.BeforeSensitive))
	if obj.Deposed == "" && c.Op != plan.CreateThenDelete && !stored.Tainted { // a tainted object may be incomplete
		ds = append(ds, a.runner.Destroying(t, c.Addr, sub.Marked(c.Before, c.BeforeSensitive))...)
		if ds.HasErrors() {
			run.End(false, nil)
			return ds
		}
	}
	if err := a.intent(id, obj, plan.Delete); err != nil {
		run.End(false, nil)
		return append(ds, diag.Errorf(diag.CodeJournalFiles, nil, "Failed to write the journal", "%s was not destroyed, because Terrace could not record that it was about to: %s.", obj, err)...)
	}
	got, more := sub.Destroy(c.Before, c.Private)
	ds = append(ds, more...)
	ds = append(ds, a.removed(id, state.Change{Object: obj, Provider: of, New: stored}, sub, got)...)
	run.End(!ds.HasErrors(), nil)
	if !ds.HasErrors() {
		a.count(func(r *Result) { r.Counts.Destroy++ })
	}
	if d != nil {
		ds = resourceclient.Blame(d, sub.Schema, ds)
	}
	return ds
}

// removed records the response to a destroy: the object is gone, or something remains of the
// stored object stood.
func (a *applier) removed(id int, stood state.Change, sub *resourceclient.Subject, got resourceclient.Answer) (ds diag.List) {
	old := stood.New
	stood.New = nil
	said := got.Value != cty.NilVal
	if said && !got.Value.IsNull() && !got.Failed {
		ds = diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider returned invalid result object after apply", "After applying the destroy of %s, the provider returned an object and no error. Destroying must always produce a null value, so this is a bug in the provider, which should be reported in the provider's own issue tracker.", stood.Object)
	}
	switch {
	case said && !got.Value.IsNull() && got.Value.IsWhollyKnown():
		next, bad := sub.Store(got.Object)
		if bad.HasErrors() {
			a.change(id)
			return append(bad, ds...)
		}
		next.Sensitive, next.Dependencies, next.Tainted, next.Replace = old.Sensitive, old.Dependencies, old.Tainted, old.Replace
		next.CreateBeforeDestroy, next.SkipDestroy = old.CreateBeforeDestroy, old.SkipDestroy
		stood.New = next
		a.change(id, stood)
	case got.Failed && (!said || !got.Value.IsNull()):
		a.change(id) // completed without a change
	default:
		a.change(id, stood)
	}
	return ds
}

// adopt writes an imported object without changes to state.
func (a *applier) adopt(id int, t *demand.Task, c *plan.Change) diag.List {
	x, ds := a.wanted(t, id, c)
	if ds.HasErrors() {
		return ds
	}
	a.change(id, a.stored(x, resourceclient.Object{Value: c.After, Private: c.Private, Identity: c.AfterIdentity}, false))
	a.count(func(r *Result) { r.Counts.Import++ })
	return append(ds, a.accept(t, x, c.After)...)
}
