package apply

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// hasCreateProvisioners reports whether anything runs after a create.
func hasCreateProvisioners(d *eval.Desired) bool {
	for _, p := range d.Resource.Config().Provisioners {
		if !p.OnDestroy {
			return true
		}
	}
	return false
}

// provision runs the create or destroy provisioners of a wanted instance, in order.
func (a *applier) provision(t *demand.Task, d *eval.Desired, self cty.Value, destroy bool) diag.List {
	cfg := d.Resource.Config()
	if len(cfg.Provisioners) == 0 {
		return nil
	}
	var scope lang.Scope = d.Scope(a.selfValue(t, d, self))
	if destroy {
		scope = &destroyScope{key: d.Key(), self: a.selfValue(t, d, self), in: scope}
	}
	return a.runProvisioners(t, d.Addr(), cfg.Provisioners, cfg.Connection, scope, destroy)
}

func (a *applier) selfValue(t *demand.Task, d *eval.Desired, v cty.Value) cty.Value {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return v
	}
	return plan.WithSensitive(v, nil, s)
}

// provisionOrphan runs the destroy provisioners that a removed block gives.
func (a *applier) provisionOrphan(t *demand.Task, c *plan.Change) diag.List {
	list, conn := plan.RemovedProvisioners(a.in.Tree, plan.EarlyOptions(a.in.Functions, a.in.Variables, a.in.Plan.Workspace), c.Addr)
	if len(list) == 0 {
		return nil
	}
	scope := &destroyScope{key: c.Addr.Key, self: c.Before, in: a.ev.Root}
	return a.runProvisioners(t, c.Addr, list, conn, scope, true)
}

func (a *applier) runProvisioners(t *demand.Task, i addr.Instance, list []*config.Provisioner, conn *config.Block, scope lang.Scope, destroy bool) diag.List {
	var ds diag.List
	for _, p := range list {
		if p.OnDestroy != destroy {
			continue
		}
		more := a.runProvisioner(t, i, p, conn, scope)
		if p.Continue {
			for _, m := range more {
				m.Severity = diag.Warning
			}
		}
		ds = append(ds, more...)
		if more.HasErrors() {
			return ds
		}
	}
	return ds
}

func (a *applier) runProvisioner(t *demand.Task, i addr.Instance, p *config.Provisioner, conn *config.Block, scope lang.Scope) diag.List {
	if a.in.Provisioners == nil {
		return diag.Errorf(&p.At, "Provisioners not available", "This program was built without provisioners.")
	}
	b := a.in.Provisioners.Schema(p.Type)
	if b == nil {
		return diag.Errorf(&p.At, "Failed to instantiate provisioner", "There is no provisioner %q: those that are built in are file, local-exec and remote-exec.", p.Type)
	}
	v, marked, ds := evalBlock(t, p.Body, b, scope)
	if ds.HasErrors() {
		return ds
	}
	cv := cty.NilVal
	if p.Connection != nil {
		conn = p.Connection
	}
	if conn != nil {
		var more diag.List
		var m bool
		cv, m, more = evalBlock(t, conn.Body, a.in.Provisioners.ConnectionSchema(), scope)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		marked = marked || m
	}
	e := event.Event{Kind: event.ProvisionStart, Object: addr.Object{Instance: i}, Provisioner: p.Type}
	a.in.Observe.Send(e)
	hidden := false
	more := a.in.Provisioners.Run(a.ctx, p.Type, v, cv, func(line string) {
		out := e
		out.Kind, out.Text = event.ProvisionOutput, line
		if marked {
			if hidden {
				return
			}
			hidden = true
			out.Text = "(output suppressed due to sensitive value in config)"
		}
		a.in.Observe.Send(out)
	})
	if marked {
		conceal(more)
	}
	e.Kind = event.ProvisionDone
	if more.HasErrors() {
		e.Kind = event.ProvisionError
	}
	a.in.Observe.Send(e)
	return append(ds, more.Under(&p.At)...)
}

// conceal takes out of the messages of a provisioner what its configuration, a
// command or its output says.
func conceal(ds diag.List) {
	for _, m := range ds {
		if s, ok := m.Extra.(interface{ Concealed() string }); ok {
			m.Detail = s.Concealed()
		}
	}
}

// evalBlock evaluates a body and reports whether anything in it is secret.
func evalBlock(t *demand.Task, body hcl.Body, b *schema.Block, scope lang.Scope) (cty.Value, bool, diag.List) {
	c, ds := lang.CompileBody(body, b)
	if ds.HasErrors() {
		return cty.NilVal, false, ds
	}
	v, more := c.Eval(t, scope)
	secret := value.ContainsSecret(v) || value.ContainsMark(v, value.Ephemeral)
	v, _ = v.UnmarkDeep()
	return v, secret, append(ds, more...)
}

// destroyScope is what a destroy provisioner may refer to: self, its own key,
// path and terraform, since everything else may be gone.
type destroyScope struct {
	key  addr.Key
	self cty.Value
	in   lang.Scope
}

func (s *destroyScope) Functions(t *demand.Task, provider []string) (map[string]function.Function, diag.List) {
	return s.in.Functions(t, provider)
}

func (s *destroyScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	switch ref.RootName() {
	case "self":
		return s.self, 1, nil
	case "count", "each":
		v := cty.ObjectVal(map[string]cty.Value{"index": keyValue(s.key), "key": keyValue(s.key)})
		return v, 1, nil
	case "path", "terraform", "tofu":
		return s.in.Resolve(t, ref, at)
	}
	return cty.DynamicVal, 1, diag.Errorf(at, "Invalid reference from destroy provisioner", "Destroy-time provisioners and their connection configurations may only reference attributes of the related resource, via 'self', 'count.index', or 'each.key'. References to other resources during the destroy phase can cause dependency cycles and interact poorly with create_before_destroy.")
}

func keyValue(k addr.Key) cty.Value {
	if v := k.Value(); v != cty.NilVal {
		return v
	}
	return cty.NullVal(cty.DynamicPseudoType)
}
