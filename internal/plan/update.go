package plan

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/zclconf/go-cty/cty"
)

// planUpdate plans what becomes of an instance that configuration wants.
func (p *planner) planUpdate(t *demand.Task, d *eval.Desired, ip *instancePlan, s *schema.Resource, prov provider.Provider, now object, imp *Import) (cty.Value, diag.List) {
	a := d.Addr()
	ty := s.Block.ImpliedType()
	config, sensitive, ds := configValue(t, d, s)
	if ds.HasErrors() {
		return cty.UnknownVal(ty), ds
	}
	done := p.call()
	ds = append(ds, prov.ValidateResource(p.ctx, addr.Managed, a.Resource.Type, config)...)
	done()
	if ds.HasErrors() {
		return cty.UnknownVal(ty), ds
	}
	ds = append(ds, p.touchTriggers(t, d)...)
	life := d.Resource.Config().Lifecycle
	tainted := now.stored != nil && now.stored.Tainted
	prior := now
	if tainted {
		prior = object{value: cty.NullVal(ty)}
	}
	written := config
	config = ignoreChanges(life.IgnoreChanges, life.IgnoreAll, prior.value, config, s)
	req := planCall{p: p, addr: a, of: d.Resource.Provider(), s: s, prov: prov, config: config}
	resp, more := req.plan(prior)
	ds = append(ds, more...)
	if more.HasErrors() {
		return withSensitive(resp.Planned, sensitive, s), ds
	}
	if resp.Legacy && (life.IgnoreAll || len(life.IgnoreChanges) > 0) {
		resp.Planned = ignoreChanges(life.IgnoreChanges, life.IgnoreAll, prior.value, resp.Planned, s)
	}

	c := &Change{
		Addr: a, Prev: p.prev(a), Provider: ip.provider, Import: imp, Before: now.value, After: resp.Planned,
		Private: resp.Private, BeforeIdentity: now.identity, AfterIdentity: resp.Identity,
		SkipDestroy: life.Destroy != nil && !*life.Destroy, ConfigKnown: config.IsWhollyKnown(),
	}
	if life.CreateBeforeDestroy != nil {
		c.ForcedCBD = *life.CreateBeforeDestroy
	}
	c.BeforeSensitive = sensitivePaths(s, now.value, storedSensitive(now.stored))
	if len(sensitive) > 0 || s.Block.HasSensitive() {
		c.AfterSensitive = sensitivePaths(s, resp.Planned, present(resp.Planned, sensitive))
	}
	req.config = written
	ds = append(ds, p.decide(t, d, c, now, prior, resp, &req)...)
	ip.change = c
	if ds.HasErrors() {
		return cty.UnknownVal(ty), ds
	}
	v := c.After
	if len(sensitive) > 0 || s.Block.HasSensitive() {
		v = value.MarkPaths(v, value.Sensitive, c.AfterSensitive...)
	}
	return v, append(ds, p.preventReplace(t, d, c)...)
}

// present keeps the paths that lead somewhere in a value.
func present(v cty.Value, paths []cty.Path) []cty.Path {
	var out []cty.Path
	for _, path := range paths {
		if _, err := path.Apply(v); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// decide chooses the operation and, for a replacement, plans the new object by
// the configuration as it is written: there is nothing to ignore changes against.
func (p *planner) decide(t *demand.Task, d *eval.Desired, c *Change, now, prior object, resp provider.PlanResponse, req *planCall) diag.List {
	if now.value.IsNull() {
		c.Op = Create
		return nil
	}
	reason, paths, ds := p.replaceReason(t, d, now, prior, resp)
	if ds.HasErrors() {
		return ds
	}
	if reason == "" {
		c.Op = Update
		if resp.Planned.RawEquals(prior.value) && samePaths(c.BeforeSensitive, c.AfterSensitive) {
			c.Op = NoOp
		}
		return ds
	}
	c.Op, c.Reason, c.ReplacePaths = DeleteThenCreate, reason, paths
	if c.SkipDestroy {
		c.Op = ForgetThenCreate
	}
	if !prior.value.IsNull() { // plan again as a create
		fresh, more := req.plan(object{value: cty.NullVal(now.value.Type())})
		ds = append(ds, more...)
		if more.HasErrors() {
			return ds
		}
		c.After, c.Private, c.AfterIdentity = fresh.Planned, fresh.Private, fresh.Identity
	}
	return ds
}

func samePaths(a, b []cty.Path) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !hasPath(b, x) {
			return false
		}
	}
	return true
}

// replaceReason says why an object must be replaced, or "".
func (p *planner) replaceReason(t *demand.Task, d *eval.Desired, now, prior object, resp provider.PlanResponse) (Reason, []cty.Path, diag.List) {
	if now.stored != nil && now.stored.Tainted {
		return ReplaceTainted, nil, nil
	}
	if p.replace[d.Addr()] {
		return ReplaceByRequest, nil, nil
	}
	if paths := replacing(resp, prior.value, req(d, t)); len(paths) > 0 {
		return ReplaceCannotUpdate, paths, nil
	}
	hit, ds := p.triggered(t, d)
	if hit {
		return ReplaceByTriggers, nil, ds
	}
	return "", nil, ds
}

// replacing lists what a provider says forces a replacement and really changed.
func replacing(resp provider.PlanResponse, prior cty.Value, s *schema.Resource) []cty.Path {
	var paths []cty.Path
	for _, path := range resp.RequiresReplace {
		if requiresReplace(path, prior, resp.Planned, s) {
			paths = append(paths, path)
		}
	}
	return paths
}

// req finds the schema again; it was found before, so that it cannot fail.
func req(d *eval.Desired, t *demand.Task) *schema.Resource {
	s, _ := d.Resource.Schema(t)
	return s
}

// requiresReplace reports whether what a path names really changed; write-only
// arguments cannot be compared and count as changed.
func requiresReplace(path cty.Path, prior, planned cty.Value, s *schema.Resource) bool {
	if s.Block.HasWriteOnly() && underAny(path, s.Block.WriteOnlyPaths(planned)) {
		return true
	}
	before, errBefore := path.Apply(prior)
	after, errAfter := path.Apply(planned)
	if errBefore != nil && errAfter != nil {
		// The path leads into something that is on neither side whole, such as an element of an unknown list.
		for len(path) > 1 {
			path = path[:len(path)-1]
			before, errBefore = path.Apply(prior)
			after, errAfter = path.Apply(planned)
			if errBefore == nil || errAfter == nil {
				break
			}
		}
	}
	if errBefore != nil || errAfter != nil {
		return errBefore == nil || errAfter == nil
	}
	return !before.RawEquals(after)
}

// touchTriggers records reads of what replace_triggered_by names, so that the
// order of actions and the dependencies in state know of it.
func (p *planner) touchTriggers(t *demand.Task, d *eval.Desired) diag.List {
	var ds diag.List
	for _, x := range d.Triggers() {
		target, _, more := d.TriggerTarget(t, x)
		ds = append(ds, more...)
		for _, other := range target {
			other.Resource.Whole(t)
		}
	}
	return ds
}

// triggered reports whether anything that replace_triggered_by names is to change.
func (p *planner) triggered(t *demand.Task, d *eval.Desired) (bool, diag.List) {
	var ds diag.List
	for _, x := range d.Triggers() {
		target, rest, more := d.TriggerTarget(t, x)
		ds = append(ds, more...)
		if more.HasErrors() {
			return false, ds
		}
		for _, other := range target {
			other.Value(t, nil)
			ip, _ := other.Memo.(*instancePlan)
			if ip == nil || ip.change == nil {
				continue
			}
			c := ip.change
			switch {
			case len(rest) == 0 && (c.Op == Create || c.Op == Update || c.Op.IsReplace()), len(rest) > 0 && c.Op.IsReplace():
				return true, ds
			case len(rest) == 0 || c.Op == NoOp:
				continue
			}
			if attrDiffers(rest, c.Before, c.After) {
				return true, ds
			}
		}
	}
	return false, ds
}

func attrDiffers(rest hcl.Traversal, before, after cty.Value) bool {
	if before.IsNull() || after.IsNull() {
		return before.IsNull() != after.IsNull()
	}
	b, bd := rest.TraverseRel(before)
	a, ad := rest.TraverseRel(after)
	if bd.HasErrors() || ad.HasErrors() {
		return bd.HasErrors() != ad.HasErrors()
	}
	return !b.RawEquals(a)
}

// preventReplace stops a replacement that lifecycle.prevent_destroy forbids.
func (p *planner) preventReplace(t *demand.Task, d *eval.Desired, c *Change) diag.List {
	if c.Op != DeleteThenCreate && c.Op != CreateThenDelete && c.Op != Delete {
		return nil
	}
	prevent, at, ds := d.Resource.PreventDestroy(t)
	if !prevent {
		return ds
	}
	return append(ds, &diag.Message{Code: "plan/prevent-destroy", Severity: diag.Error, Summary: "Resource instance cannot be destroyed", At: &d.Resource.Config().At,
		Detail: fmt.Sprintf("Resource %s has lifecycle.prevent_destroy set, but the plan calls for this resource to be destroyed. To avoid this error and continue with the plan, either disable lifecycle.prevent_destroy or exclude this resource instance using the -exclude=%s option.", c.Addr, quoteAddr(c.Addr)),
		Notes:  []diag.Note{{Text: "prevent_destroy is set here", At: at}}})
}

func quoteAddr(a addr.Instance) string {
	s := a.String()
	if a.Key.Kind == addr.StringKey {
		return "'" + s + "'"
	}
	return s
}

// planCall asks a provider for a plan and holds the answer to the protocol.
type planCall struct {
	p      *planner
	addr   addr.Instance
	of     addr.Provider
	s      *schema.Resource
	prov   provider.Provider
	config cty.Value
}

func (c *planCall) plan(prior object) (provider.PlanResponse, diag.List) {
	a := c.addr
	proposed := c.s.Block.ProposedNew(prior.value, c.config)
	done := c.p.call()
	resp, ds := c.prov.Plan(c.p.ctx, provider.PlanRequest{
		Type: a.Resource.Type, Prior: prior.value, Proposed: proposed, Config: c.config,
		Private: prior.private, PriorIdentity: prior.identity, Meta: c.p.meta(a, c.prov),
	})
	done()
	if ds.HasErrors() {
		resp.Planned = cty.UnknownVal(c.s.Block.ImpliedType())
		return resp, ds
	}
	if resp.Planned == cty.NilVal || resp.Planned.IsNull() {
		resp.Planned = cty.UnknownVal(c.s.Block.ImpliedType())
		return resp, append(ds, c.invalid("the plan holds no object")...)
	}
	for _, err := range schema.AssertPlanValid(c.s.Block, prior.value, c.config, resp.Planned, resp.Legacy) {
		ds = append(ds, c.invalid(err.Error())...)
	}
	return resp, ds
}

func (c *planCall) invalid(why string) diag.List {
	return diag.Errorf(nil, "Provider produced invalid plan", "Provider %q planned an invalid value for %s: %s.\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", c.of.String(), c.addr, why)
}

// ignoreChanges puts prior values back into a configuration at the paths that
// lifecycle.ignore_changes names, so that changes there are not seen.
func ignoreChanges(paths []hcl.Traversal, all bool, prior, config cty.Value, s *schema.Resource) cty.Value {
	if prior.IsNull() || config.IsNull() || !all && len(paths) == 0 {
		return config
	}
	if all {
		return ignoreAll(s.Block, prior, config)
	}
	for _, ref := range paths {
		config = ignoreOne(ref, prior, config)
	}
	return config
}

// ignoreAll takes every argument that configuration could set from prior.
func ignoreAll(b *schema.Block, prior, config cty.Value) cty.Value {
	vals := config.AsValueMap()
	for name, v := range prior.AsValueMap() {
		if a := b.Attributes[name]; a != nil && a.WriteOnly {
			continue
		}
		vals[name] = v
	}
	return cty.ObjectVal(vals)
}

func ignoreOne(ref hcl.Traversal, prior, config cty.Value) cty.Value {
	if len(ref) == 0 || config.IsNull() || !config.IsKnown() || prior.IsNull() || !prior.IsKnown() {
		return prior
	}
	ty := config.Type()
	switch step := ref[0].(type) {
	case hcl.TraverseRoot:
		return ignoreAttr(step.Name, ref[1:], prior, config)
	case hcl.TraverseAttr:
		if ty.IsMapType() {
			return ignoreKey(cty.StringVal(step.Name), ref[1:], prior, config)
		}
		return ignoreAttr(step.Name, ref[1:], prior, config)
	case hcl.TraverseIndex:
		if ty.IsObjectType() && step.Key.Type() == cty.String {
			return ignoreAttr(step.Key.AsString(), ref[1:], prior, config)
		}
		return ignoreKey(step.Key, ref[1:], prior, config)
	}
	return config
}

func ignoreAttr(name string, rest hcl.Traversal, prior, config cty.Value) cty.Value {
	if !config.Type().IsObjectType() || !config.Type().HasAttribute(name) || !prior.Type().IsObjectType() || !prior.Type().HasAttribute(name) {
		return config
	}
	vals := config.AsValueMap()
	vals[name] = ignoreRest(rest, prior.GetAttr(name), vals[name])
	return cty.ObjectVal(vals)
}

func ignoreRest(rest hcl.Traversal, prior, config cty.Value) cty.Value {
	if len(rest) == 0 {
		return prior
	}
	if prior.IsNull() || !prior.IsKnown() {
		if step, ok := rest[0].(hcl.TraverseIndex); ok && config.Type().IsMapType() && len(rest) == 1 && config.IsKnown() && !config.IsNull() {
			return withoutKey(config, step.Key)
		}
		return config
	}
	if config.IsNull() {
		if step, ok := rest[0].(hcl.TraverseIndex); ok && prior.Type().IsMapType() && len(rest) == 1 && hasKey(prior, step.Key) {
			return cty.MapVal(map[string]cty.Value{step.Key.AsString(): prior.Index(step.Key)})
		}
		return config
	}
	return ignoreOne(rest, prior, config)
}

func hasKey(v, key cty.Value) bool {
	if key.Type() != cty.String && key.Type() != cty.Number {
		return false
	}
	if v.Type().IsMapType() && key.Type() != cty.String || v.Type().IsListType() && key.Type() != cty.Number {
		return false
	}
	has := v.HasIndex(key)
	return has.IsKnown() && has.True()
}

func withoutKey(m, key cty.Value) cty.Value {
	vals := m.AsValueMap()
	delete(vals, key.AsString())
	if len(vals) == 0 {
		return cty.MapValEmpty(m.Type().ElementType())
	}
	return cty.MapVal(vals)
}

// ignoreKey handles one element of a map or list: set back, added or removed.
func ignoreKey(key cty.Value, rest hcl.Traversal, prior, config cty.Value) cty.Value {
	ty := config.Type()
	switch {
	case ty.IsMapType() && key.Type() == cty.String:
		inPrior, inConfig := hasKey(prior, key), hasKey(config, key)
		vals := config.AsValueMap()
		if vals == nil {
			vals = map[string]cty.Value{}
		}
		switch {
		case inPrior && inConfig:
			vals[key.AsString()] = ignoreRest(rest, prior.Index(key), config.Index(key))
		case inPrior:
			vals[key.AsString()] = prior.Index(key)
		case inConfig:
			return withoutKey(config, key)
		}
		if len(vals) == 0 {
			return config
		}
		return cty.MapVal(vals)
	case (ty.IsListType() || ty.IsTupleType()) && key.Type() == cty.Number && hasKey(config, key) && (prior.Type().IsListType() || prior.Type().IsTupleType()) && hasKey(prior, key):
		vals := config.AsValueSlice()
		n, _ := key.AsBigFloat().Int64()
		vals[n] = ignoreRest(rest, prior.Index(key), vals[n])
		if ty.IsListType() {
			return cty.ListVal(vals)
		}
		return cty.TupleVal(vals)
	}
	return config
}
