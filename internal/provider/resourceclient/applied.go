package resourceclient

import (
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Replan requests the plan again with values that were unknown during planning, and
// compares the result with the first plan.
func (sub *Subject) Replan(prior Object, config, was cty.Value) (Planned, diag.List) {
	resp, ds := sub.Plan(prior, config)
	if ds.HasErrors() || resp.Legacy {
		return resp, ds
	}
	for _, err := range schema.AssertObjectCompatible(sub.Schema.Block, was, resp.Planned) {
		ds = append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced inconsistent final plan", "When expanding the plan for %s to include new values learned so far during apply, provider %q produced an invalid new value: %s.\n\n%s", sub.Addr, sub.Of.Provider.String(), err, sub.fault())...)
	}
	return resp, ds
}

// An Answer is the result of changing an object.
type Answer struct {
	Object      // the object after the change; the value is null if the result is not known
	Failed bool // there were errors, so the object may differ from the plan
}

// Apply changes an object from prior, which is null for a new object, to planned. The value
// of the answer is wholly known and conforms to the schema.
func (sub *Subject) Apply(prior cty.Value, planned Object, config cty.Value) (Answer, diag.List) {
	done := sub.x.call()
	resp, ds := sub.prov.Apply(sub.ctx(), provider.ApplyRequest{Type: sub.Addr.Resource.Type, Prior: prior, Planned: planned.Value, Config: config, Private: planned.Private, Meta: sub.meta, PlannedIdentity: planned.Identity})
	done()
	out := Answer{Object: Object{Value: resp.State, Private: resp.Private, Identity: resp.Identity}, Failed: ds.HasErrors()}
	if out.Value == cty.NilVal {
		out.Value = sub.Null()
		if out.Failed {
			out.Value = prior // null for a new object
		}
	}
	if err := sub.conforms(out.Value); err != nil {
		ds = append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid object", "Provider %q produced an invalid value after apply for %s: %s. The result cannot be saved.\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", sub.Of.Provider.String(), sub.Addr, err)...)
		out.Value, out.Failed = prior, true
	}
	if !out.Value.IsWhollyKnown() {
		path, _ := schema.FirstUnknown(out.Value)
		ds = append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider returned invalid result object after apply", "After the apply operation, the provider still indicated an unknown value for %s%s. All values must be known after apply, so this is always a bug in the provider and should be reported in the provider's own repository. Terrace will still save the other known object values in the state.", sub.Addr, value.PathString(path))...)
		out.Value, out.Failed = nullUnknowns(out.Value), true
	}
	if out.Value.IsNull() {
		return out, ds
	}
	if !out.Failed && !resp.Legacy {
		for _, err := range schema.AssertObjectCompatible(sub.Schema.Block, planned.Value, out.Value) {
			ds = append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced inconsistent result after apply", "When applying changes to %s, provider %q produced an unexpected new value: %s.\n\n%s", sub.Addr, sub.Of.Provider.String(), err, sub.fault())...)
			out.Failed = true
		}
	}
	out.Value = sub.Schema.Block.StripWriteOnly(out.Value)
	return out, ds
}

func (sub *Subject) conforms(v cty.Value) error {
	if v.IsNull() && v.Type().Equals(sub.Schema.Block.ImpliedType()) {
		return nil
	}
	if !v.IsKnown() {
		return fmt.Errorf("the whole object is unknown")
	}
	return schema.AssertUsable(sub.Schema.Block, v, false)
}

// nullUnknowns replaces all unknown values by null.
func nullUnknowns(v cty.Value) cty.Value {
	v, _ = cty.Transform(v, func(_ cty.Path, e cty.Value) (cty.Value, error) {
		if !e.IsKnown() {
			return cty.NullVal(e.Type()), nil
		}
		return e, nil
	})
	return v
}

// Destroy destroys an object. The value of the answer is null if the object was destroyed.
// It is cty.NilVal if the provider did not return a result.
func (sub *Subject) Destroy(prior cty.Value, private []byte) (Answer, diag.List) {
	done := sub.x.call()
	resp, ds := sub.prov.Apply(sub.ctx(), provider.ApplyRequest{Type: sub.Addr.Resource.Type, Prior: prior, Planned: sub.Null(), Config: sub.Null(), Private: private, PlannedIdentity: cty.NilVal, Meta: cty.NilVal})
	done()
	return Answer{Object: Object{Value: resp.State, Private: resp.Private, Identity: resp.Identity}, Failed: ds.HasErrors()}, ds
}
