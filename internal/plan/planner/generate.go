package planner

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/plan/imports"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// generateImports plans imports of objects without a resource block, and generates the blocks.
func (p *driver) generateImports() {
	if p.in.GenerateTo == "" {
		return
	}
	t := p.graph.Task(p.ctx)
	for _, it := range p.imports.Sorted() {
		a := it.Addr
		if p.in.Eval.Tree.Root.Config.Resources[a.Resource] != nil || p.prior.Instance(a) != nil || !p.scope.wantsInstance(a) {
			continue
		}
		g, ds := p.generate(t, it)
		p.graph.Report(ds.Under(&it.Block.At).About(a.String()))
		if g != nil {
			p.found.generated = append(p.found.generated, g)
		}
	}
}

// unmetImports reports imports to instances that are not in the configuration.
func (p *driver) unmetImports() {
	if p.imports == nil || p.in.Mode != plan.Normal {
		return
	}
	var planned map[addr.Instance]bool
	t := p.graph.Task(p.ctx)
	for _, it := range p.imports.Sorted() {
		if planned == nil {
			planned = make(map[addr.Instance]bool, len(p.found.plans))
			for _, ip := range p.found.plans {
				planned[ip.d.Addr()] = true
			}
		}
		if n := p.in.Eval.Tree.Node(it.Addr.Module); planned[it.Addr] || !p.scope.wantsInstance(it.Addr) || n == nil || n.Config.Resources[it.Addr.Resource] == nil {
			continue
		}
		if _, wanted := p.whyOrphan(t, it.Addr); !wanted {
			p.graph.Report(it.Unmet())
		}
	}
}

// A generatedPlan is the plan for an object with a generated block.
type generatedPlan struct {
	change *plan.Change
	stored *state.Object
}

func (p *planner) generate(t *demand.Task, it *imports.Instance) (*generatedPlan, diag.List) {
	pc, ds := it.Provider(t)
	if ds.HasErrors() {
		return nil, ds
	}
	prov, ds := p.client.Configured(t, pc, &it.Block.At)
	if ds.HasErrors() {
		return nil, ds
	}
	ps, ds := p.client.Schema(pc.Addr.Provider)
	if ds.HasErrors() {
		return nil, ds
	}
	s := ps.Resource(addr.Managed, it.Addr.Resource.Type)
	if s == nil {
		return nil, append(ds, diag.Errorf(diag.CodePlanResourceType, nil, "Invalid resource type", "The provider %s does not support resource type %q.", pc.Addr.Provider.Display(), it.Addr.Resource.Type)...)
	}
	imp, more := it.ID(t, s)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	sub := p.client.Subject(p.ev, it.Addr, pc.Addr, s, prov)
	obj, more := sub.Import(imp.ID, imp.Identity)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	imp.GeneratedConfig = imports.GenerateConfig(it.Addr.Resource, it.Block.Provider, s, obj.Value)
	stored, more := sub.Store(obj)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	obj.Stored = stored
	c, more := planGenerated(sub, obj, imp)
	return &generatedPlan{c, stored}, append(ds, more...)
}

// planGenerated plans an imported object as if its generated block were in the configuration.
func planGenerated(sub *resourceclient.Subject, obj resourceclient.Object, imp *plan.Import) (*plan.Change, diag.List) {
	c := &plan.Change{
		Addr: sub.Addr, Prev: sub.Addr, Provider: sub.Of, Op: plan.NoOp, Import: imp, Before: obj.Value, After: obj.Value, Handling: plan.Handling{Private: obj.Private, ConfigKnown: true},
		BeforeIdentity: obj.Identity, AfterIdentity: obj.Identity,
		BeforeSensitive: resourceclient.SensitivePaths(sub.Schema, obj.Value, nil), AfterSensitive: resourceclient.SensitivePaths(sub.Schema, obj.Value, nil),
	}
	config, ds := imports.GeneratedValue(imp.GeneratedConfig, sub.Schema)
	if ds.HasErrors() {
		return c, ds
	}
	if ds = append(ds, sub.Validate(config)...); ds.HasErrors() {
		return c, ds
	}
	resp, more := sub.Plan(obj, config)
	if ds = append(ds, more...); more.HasErrors() {
		return c, ds
	}
	if c.ReplacePaths = sub.Replacing(resp, obj.Value); len(c.ReplacePaths) > 0 {
		c.Op, c.Reason = plan.DeleteThenCreate, plan.ReplaceCannotUpdate
		resp, more = sub.Plan(sub.None(), config)
		if ds = append(ds, more...); more.HasErrors() {
			return c, ds
		}
	} else if !resp.Planned.RawEquals(obj.Value) {
		c.Op = plan.Update
	} else {
		return c, ds
	}
	c.After, c.Private, c.AfterIdentity = resp.Planned, resp.Private, resp.Identity
	c.AfterSensitive = resourceclient.SensitivePaths(sub.Schema, resp.Planned, nil)
	return c, ds
}
