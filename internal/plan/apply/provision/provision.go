// Package provision runs the provisioners of an instance when its object was created or is
// about to be destroyed. They are in the resource block or in a removed block.
//
// Main type: Runner. The one rule: if a provisioner's configuration contains a secret, its
// output is not shown.
package provision

import (
	"cmp"
	"context"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/refactoring"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Types validates and runs the types of provisioners.
type Types interface {
	Schema(typ string) *schema.Block
	ConnectionSchema() *schema.Block
	Run(ctx context.Context, typ string, config, connection cty.Value, output func(string)) diag.List
}

// A Runner runs the provisioners of one evaluation. It is safe for concurrent use by many
// tasks.
type Runner struct {
	ctx     context.Context
	types   Types
	observe event.Sink
	ev      *eval.Evaluator
	reveal  bool                        // output with secrets is shown
	removed func() refactoring.Removals // computed on demand
}

// New returns a runner. If types is nil, each provisioner is an error. With reveal, the output of
// provisioners whose configuration contains secrets is shown.
func New(ctx context.Context, types Types, observe event.Sink, ev *eval.Evaluator, reveal bool) *Runner {
	return &Runner{ctx: ctx, types: types, observe: observe, ev: ev, reveal: reveal, removed: sync.OnceValue(func() refactoring.Removals {
		all, _ := refactoring.ReadRemovals(ev.Tree(), ev.ModuleOptions()) // the plan reported the errors
		return all
	})}
}

// AfterCreate reports whether an instance has create provisioners.
func AfterCreate(d *eval.Desired) bool {
	for _, p := range d.Resource.Config().Provisioners {
		if !p.OnDestroy {
			return true
		}
	}
	return false
}

// Created runs the create provisioners of an instance in order. self is the new object, with
// marks.
func (r *Runner) Created(t *demand.Task, d *eval.Desired, self cty.Value) diag.List {
	cfg := d.Resource.Config()
	if len(cfg.Provisioners) == 0 {
		return nil
	}
	return r.all(&runs{t, d.Addr(), cfg.Connection, d.Scope(self)}, cfg.Provisioners, false)
}

// Destroying runs the destroy provisioners of an instance in order. They come from a removed
// block for the instance, otherwise from its resource block. self is the object that will be
// destroyed, with marks.
func (r *Runner) Destroying(t *demand.Task, a addr.Instance, self cty.Value) diag.List {
	list, conn := r.removed().Provisioners(a)
	in := r.ev.Root
	if n := r.ev.Tree().Node(a.Module); len(list) == 0 && n != nil && n.Config.Resources[a.Resource] != nil {
		cfg := n.Config.Resources[a.Resource]
		list, conn = cfg.Provisioners, cfg.Connection
		if len(list) > 0 {
			in = r.ev.Any(a.Module)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return r.all(&runs{t, a, conn, &destroyScope{key: a.Key, self: self, in: in}}, list, true)
}

// runs contains the common inputs of one instance's provisioners.
type runs struct {
	t     *demand.Task
	addr  addr.Instance
	conn  *config.Block // the connection block of the instance's resource; nil if there is none
	scope lang.Scope
}

func (r *Runner) all(x *runs, list []*config.Provisioner, destroy bool) diag.List {
	var ds diag.List
	for _, p := range list {
		if p.OnDestroy != destroy {
			continue
		}
		more := r.one(x, p)
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

func (r *Runner) one(x *runs, p *config.Provisioner) diag.List {
	if r.types == nil {
		return diag.Errorf(diag.CodeApplyProvisionersNotAvailable, &p.At, "Provisioners not available", "This program was built without provisioners.")
	}
	b := r.types.Schema(p.Type)
	if b == nil {
		return diag.Errorf(diag.CodeApplyProvisioner, &p.At, "Failed to instantiate provisioner", "There is no provisioner %q: those that are built in are file, local-exec and remote-exec.", p.Type)
	}
	v, why, ds := evalBlock(x.t, p.Body, b, x.scope)
	if ds.HasErrors() {
		return ds
	}
	cv := cty.NilVal
	if conn := cmp.Or(p.Connection, x.conn); conn != nil {
		var more diag.List
		var also secrecy
		cv, also, more = evalBlock(x.t, conn.Body, r.types.ConnectionSchema(), x.scope)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		why |= also
	}
	if !v.IsWhollyKnown() || cv != cty.NilVal && !cv.IsWhollyKnown() {
		return append(ds, diag.Errorf(diag.CodeProvisionerConfig, &p.At, "Invalid "+p.Type+" provisioner configuration", "It refers to something that is not known while the provisioner runs, such as another instance of the same resource, which may be made later. Nothing was run.")...)
	}
	e := event.Event{Kind: event.ProvisionStart, Object: addr.Object{Instance: x.addr}, Provisioner: p.Type}
	r.observe.Send(e)
	if r.reveal {
		why = 0
	}
	more := r.types.Run(r.ctx, p.Type, v, cv, func(line string) {
		out := e
		out.Kind, out.Text = event.ProvisionOutput, line
		if why != 0 {
			out.Text = "(output suppressed due to " + why.String() + " value in config)"
		}
		r.observe.Send(out)
	})
	if why != 0 {
		conceal(more)
	}
	e.Kind = event.ProvisionDone
	if more.HasErrors() {
		e.Kind = event.ProvisionError
	}
	r.observe.Send(e)
	return append(ds, more.Under(&p.At)...)
}

// conceal removes configuration, commands and output from the messages of a provisioner.
func conceal(ds diag.List) {
	for _, m := range ds {
		if s, ok := m.Extra.(interface{ Concealed() string }); ok {
			m.Detail = s.Concealed()
		}
	}
}

// evalBlock evaluates a body and reports whether it contains secrets.
func evalBlock(t *demand.Task, body hcl.Body, b *schema.Block, scope lang.Scope) (cty.Value, secrecy, diag.List) {
	c, ds := lang.CompileBody(body, b)
	if ds.HasErrors() {
		return cty.NilVal, 0, ds
	}
	v, more := c.Eval(t, scope)
	var why secrecy
	if value.ContainsSecret(v) {
		why |= sensitive
	}
	if value.ContainsMark(v, value.Ephemeral) {
		why |= ephemeral
	}
	v, _ = v.UnmarkDeep()
	return v, why, append(ds, more...)
}

// secrecy is the reason for which a provisioner's output is hidden; 0 means that it is shown.
type secrecy uint8

const (
	sensitive secrecy = 1 << iota
	ephemeral
)

func (s secrecy) String() string {
	if s&ephemeral != 0 {
		return "ephemeral"
	}
	return "sensitive"
}

// destroyScope resolves the references that a destroy provisioner may use: self, its own key,
// path and terraform. Other objects may be destroyed already.
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
	return cty.DynamicVal, 1, diag.Errorf(diag.CodeConfigDestroyReference, at, "Invalid reference from destroy provisioner", "Destroy-time provisioners and their connection configurations may only reference attributes of the related resource, via 'self', 'count.index', or 'each.key'. References to other resources during the destroy phase can cause dependency cycles and interact poorly with create_before_destroy.")
}

func keyValue(k addr.Key) cty.Value {
	if v := k.Value(); v != cty.NilVal {
		return v
	}
	return cty.NullVal(cty.DynamicPseudoType)
}
