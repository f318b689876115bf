package resourceclient

import (
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Planned is a provider's plan for an object.
type Planned struct {
	provider.PlanResponse
	Deferred provider.DeferReason // the reason for which the provider deferred the object; then the plan must not be used
}

// Plan requests the plan for changing the prior object to a configuration without marks.
func (sub *Subject) Plan(prior Object, config cty.Value) (Planned, diag.List) {
	s := sub.Schema
	proposed := s.Block.ProposedNew(prior.Value, config)
	ctx, wait := sub.deferrable()
	done := sub.x.call()
	got, ds := sub.prov.Plan(ctx, provider.PlanRequest{
		Type: sub.Addr.Resource.Type, Prior: prior.Value, Proposed: proposed, Config: config,
		Private: prior.Private, PriorIdentity: prior.Identity, Meta: sub.meta,
	})
	done()
	resp := Planned{got, wait.Reason}
	if resp.Deferred != "" {
		return resp, ds
	}
	if ds.HasErrors() {
		resp.Planned = cty.UnknownVal(s.Block.ImpliedType())
		return resp, ds
	}
	if resp.Planned == cty.NilVal || resp.Planned.IsNull() {
		resp.Planned = cty.UnknownVal(s.Block.ImpliedType())
		return resp, append(ds, sub.invalid("the plan holds no object")...)
	}
	for _, err := range schema.AssertPlanValid(s.Block, prior.Value, config, resp.Planned, resp.Legacy) {
		ds = append(ds, sub.invalid(err.Error())...)
	}
	return resp, ds
}

func (sub *Subject) invalid(why string) diag.List {
	return diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid plan", "Provider %q planned an invalid value for %s: %s.\n\n%s", sub.Of.Provider.String(), sub.Addr, why, sub.fault())
}

// fault returns a sentence about the cause of an answer that does not fit the schema or the plan.
func (sub *Subject) fault() string {
	if sub.Schema.Newer {
		return "The schema of " + sub.Addr.Resource.Type + " has parts of a newer version of the plugin protocol. Terrace ignores these parts, which can be the reason. Use an earlier version of the provider, or a newer version of Terrace."
	}
	return "This is a bug in the provider, which should be reported in the provider's own issue tracker."
}

// PlanDelete requests the plan for destroying an object, if the provider supports it, and
// returns the private data.
func (sub *Subject) PlanDelete(now Object) (private []byte, ds diag.List) {
	ps, ds := sub.prov.Schema(sub.x.ctx)
	if ds.HasErrors() || !ps.Capabilities.PlanDestroy {
		return now.Private, ds
	}
	done := sub.x.call()
	resp, more := sub.prov.Plan(sub.ctx(), provider.PlanRequest{Type: sub.Addr.Resource.Type, Prior: now.Value, Proposed: sub.Null(), Config: sub.Null(), Private: now.Private, PriorIdentity: now.Identity, Meta: sub.meta})
	done()
	if ds = append(ds, more...); more.HasErrors() {
		return now.Private, ds
	}
	if resp.Planned != cty.NilVal && !resp.Planned.IsNull() {
		return now.Private, append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid plan", "The provider planned a value for %s, which is to be destroyed. This is a bug in the provider, which should be reported in the provider's own issue tracker.", sub.Addr)...)
	}
	return resp.Private, ds
}

// Replacing returns the paths that require a replacement according to the provider and that
// changed.
func (sub *Subject) Replacing(resp Planned, prior cty.Value) []cty.Path {
	var paths []cty.Path
	for _, path := range resp.RequiresReplace {
		if requiresReplace(path, prior, resp.Planned, sub.Schema) {
			paths = append(paths, path)
		}
	}
	return paths
}

// requiresReplace reports whether the value at a path changed. Write-only arguments cannot
// be compared and count as changed.
func requiresReplace(path cty.Path, prior, planned cty.Value, s *schema.Resource) bool {
	if s.Block.HasWriteOnly() && underAny(path, s.Block.WriteOnlyPaths(planned)) {
		return true
	}
	before, errBefore := path.Apply(prior)
	after, errAfter := path.Apply(planned)
	if errBefore != nil && errAfter != nil {
		// The path may lead into a value that is unknown or null in both, such as an
		// element of an unknown list.
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
