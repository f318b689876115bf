package apply

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/checks"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// readPlanned reads a data source that had to wait. What a check finds wrong
// with its own does not stop the apply.
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

// read reads a data source that had to wait.
func (a *applier) read(t *demand.Task, id int, c *plan.Change) diag.List {
	x, ds := a.wanted(t, id, c)
	if ds.HasErrors() {
		return ds
	}
	if !x.config.IsWhollyKnown() {
		return append(ds, diag.Errorf(&x.d.Resource.Config().At, "Configuration not known", "The configuration of %s holds values that are still not known. This is a bug in Terrace.", c.Addr)...)
	}
	v, more := x.sub.Read(x.config, x.marks)
	if ds = append(ds, x.blame(more)...); more.HasErrors() {
		return ds
	}
	obj := a.stored(x, resourceclient.Object{Value: v}, false)
	obj.New.Sensitive = resourceclient.Present(v, x.marks)
	obj.New.Dependencies = nil
	a.change(id, obj)
	a.keep(x, v)
	post, more := x.d.Postconditions(t, a.valueOf(c.Addr))
	a.outcomes(x.d, post)
	return append(ds, more...)
}
