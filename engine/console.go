package engine

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// ConsoleOptions configures Console.
type ConsoleOptions struct {
	Variables map[string]InputValue // variables that are missing are unknown
	State     *state.State          // nil means no state
	// Plan makes a plan first. Expressions then have the values that an apply would produce.
	Plan bool
	// Scope is the module instance in which expressions are evaluated; "" means the root module.
	Scope addr.ModuleInstance
	// Fallback resolves references that the root module does not define; nil means none. It is not
	// used with a Scope.
	Fallback func(ref hcl.Traversal) (v cty.Value, used int, ds diag.List, ok bool)
}

// A Console evaluates expressions in the scope of a module instance. It changes nothing. It is
// not safe for concurrent use.
type Console struct {
	e       *Engine
	in      planner.Input
	o       ConsoleOptions
	planned *planner.Session // nil without a plan
}

// Console returns a console, which is usable only if there are no errors. The caller must close
// it.
func (e *Engine) Console(ctx context.Context, o ConsoleOptions) (*Console, diag.List) {
	e.ExpectStates(o.State)
	vars, ds := e.inputsOrUnknown(o.Variables)
	if ds.HasErrors() {
		return nil, ds
	}
	now := e.o.Now().UTC()
	in := e.evaluation(vars, now, o.Plan, eval.DeferNothing)
	in.Compiled = &eval.Compiled{}
	if !o.Plan {
		in.Functions = funcs.Table(funcs.Config{BaseDir: e.dir, ReadFile: e.o.ReadFile, Home: e.home, Now: e.o.Now, Console: true, TemplateDepth: e.templateDepth()})
	}
	c := &Console{e: e, o: o, in: planner.Input{
		Eval: in, Providers: e.providers(), State: o.State, Options: plan.Options{Time: now},
		KeepHosts: e.getenv("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") == "0",
	}}
	if !o.Plan && o.Scope != "" {
		s, more := planner.NewSession(ctx, c.in, false, c.scope())
		more = append(more, s.Close()...)
		if more.HasErrors() {
			return c, append(ds, more.Errors()...)
		}
	}
	if o.Plan {
		c.in.Eval.Functions = funcs.Table(funcs.Config{BaseDir: e.dir, ReadFile: e.o.ReadFile, Home: e.home, PlanTime: now, PureOnly: true, Console: true, TemplateDepth: e.templateDepth()})
		var more diag.List
		c.planned, more = planner.NewSession(ctx, c.in, true, c.scope())
		ds = append(ds, more...)
	}
	return c, ds
}

func (c *Console) scope() planner.Scope {
	return planner.Scope{Module: c.o.Scope, Fallback: c.o.Fallback}
}

// Eval evaluates an expression. The result has its marks.
func (c *Console) Eval(ctx context.Context, x hcl.Expression) (cty.Value, diag.List) {
	if c.planned != nil {
		return c.planned.Eval(x)
	}
	s, ds := planner.NewSession(ctx, c.in, false, c.scope()) // a new session, so that its messages are reported again
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	v, more := s.Eval(x)
	return v, append(append(ds, more...), s.Close()...)
}

// Close releases the resources that a plan has opened.
func (c *Console) Close() diag.List {
	if c.planned == nil {
		return nil
	}
	return c.planned.Close()
}

// Names returns the beginnings of valid references, such as "var.name", for completion.
func (c *Console) Names() []string {
	n := c.e.tree.Node(c.o.Scope)
	if n == nil {
		return nil
	}
	m := n.Config
	out := []string{"path.cwd", "path.module", "path.root", "terraform.workspace"}
	for name := range m.Variables {
		out = append(out, "var."+name)
	}
	for name := range m.Locals {
		out = append(out, "local."+name)
	}
	for name := range m.Calls {
		out = append(out, "module."+name)
	}
	for a := range m.Resources {
		out = append(out, a.String())
	}
	for name := range c.in.Eval.Functions {
		out = append(out, name+"(")
	}
	return out
}
