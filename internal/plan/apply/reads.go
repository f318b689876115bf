package apply

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/plan/checks"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// readPlanned reads a data source that was deferred to apply. An error of a data source in a
// check does not stop the apply.
func (a *applier) readPlanned(t *demand.Task, id int, c *plan.Change) diag.List {
	ds := a.read(t, id, c)
	d := a.ev.Desired(t, c.Addr)
	if d == nil || d.Resource.Config().Check == "" || !ds.HasErrors() {
		return ds
	}
	failure := checks.Soften(ds)
	a.change(id, state.Change{Object: addr.Object{Instance: c.Addr}, Provider: c.Provider})
	a.mu.Lock()
	a.unread[c.Addr] = failure
	a.mu.Unlock()
	return ds
}

// read reads a data source that was deferred to apply.
func (a *applier) read(t *demand.Task, id int, c *plan.Change) diag.List {
	x, ds := a.wanted(t, id, c)
	if ds.HasErrors() {
		return ds
	}
	if !x.config.IsWhollyKnown() {
		return append(ds, diag.Errorf(diag.CodeApplyNotKnown, &x.d.Resource.Config().At, "Configuration not known", "The configuration of %s holds values that are still not known. This is a bug in Terrace.", c.Addr)...)
	}
	if more := x.sub.Validate(x.config); len(more) > 0 {
		if ds = append(ds, x.blame(more)...); more.HasErrors() {
			return ds
		}
	}
	v, _, more := x.sub.Read(x.config, x.marks) // an apply defers nothing
	if ds = append(ds, x.blame(more)...); more.HasErrors() {
		return ds
	}
	obj := a.stored(x, resourceclient.Object{Value: v}, false)
	obj.New.Sensitive = resourceclient.Present(v, x.marks)
	obj.New.Dependencies = nil
	a.change(id, obj)
	return append(ds, a.accept(t, x, v)...)
}

// recheck evaluates the conditions of an unchanged instance that were unknown while planning.
func (a *applier) recheck(t *demand.Task, c *plan.Change) diag.List {
	d := a.ev.Desired(t, c.Addr)
	if d == nil {
		return nil
	}
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return ds
	}
	pre, more := d.Preconditions(t)
	a.outcomes(d, pre)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	v := resourceclient.WithSensitive(c.After, c.AfterSensitive, s)
	post, more := d.Postconditions(t, v)
	a.outcomes(d, post)
	if ds = append(ds, more...); !more.HasErrors() {
		a.keepValue(c.Addr, v)
	}
	return ds
}
