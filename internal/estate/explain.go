package estate

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/lang/origin"
)

// OfUnit reports whether an address refers to a part of a unit, and not to a part of its module.
func OfUnit(t *demand.Task, u *discovery.Unit, address string) bool {
	ref, diags := hclsyntax.ParseTraversalAbs([]byte(address), "<address>", hcl.InitialPos)
	if diags.HasErrors() {
		return false
	}
	_, ok, ds := u.Origin(t).Part(ref)
	return ok && !ds.HasErrors()
}

// AtHand reports whether the module of a unit can be read without fetching it.
func (e *Estate) AtHand(ctx context.Context, u *discovery.Unit) bool {
	d, ds := e.dirs.Dir(e.Task(ctx), u.Unit, false)
	return d != nil && d.Files != nil && !ds.HasErrors()
}

// Explain returns the origin of a part of a unit, without its module. show is as in
// origin.Explainer.
func (e *Estate) Explain(t *demand.Task, u *discovery.Unit, address string, show func(string) (name, layer string)) (*explanation.Explanation, diag.List) {
	x := &origin.Explainer{Set: e.Sources(), Unit: u.Origin(t), Show: show}
	return x.Explain(t, address)
}
