package unit

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/zclconf/go-cty/cty"
)

// Refer computes a reference in the unit, such as local.region or
// dependency.vpc.outputs.id. The reference inputs is the
// effective inputs. Refer is for callers outside of the unit's file, such as a console.
func (u *Unit) Refer(t *demand.Task, ref hcl.Traversal) (cty.Value, diag.List) {
	c := u.on(t, true)
	var r resolved
	if ref.RootName() == "inputs" {
		n := u.field(c, "inputs")
		if n == nil {
			return cty.EmptyObjectVal, c.ds
		}
		r = c.descend(n, ref, 1)
	} else {
		r = c.resolve(u.e, ref)
	}
	at := ref.SourceRange()
	switch {
	case c.stuck():
		return cty.DynamicVal, c.ds
	case r.n == nil:
		return cty.DynamicVal, append(c.ds, diag.Errorf(diag.CodeUnitUnknownVariable, &at, unknownVariable, "%s", unknownRoot(ref.RootName()))...)
	case r.missing != "":
		at := ref[r.used].SourceRange()
		return cty.DynamicVal, append(c.ds, diag.Errorf(diag.CodeLangUnsupportedAttribute, &at, "Unsupported attribute", "%s", r.missing)...)
	}
	v := r.n.value(c)
	if c.stuck() || r.used == len(ref) {
		return v, c.ds
	}
	v, diags := ref[r.used:].TraverseRel(v)
	for _, d := range diags {
		d.Expression, d.EvalContext = nil, nil
	}
	return v, append(c.ds, diag.FromHCL(diags)...)
}
