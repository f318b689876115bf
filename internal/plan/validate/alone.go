package validate

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/zclconf/go-cty/cty"
)

// # Without providers
//
// Many errors in a module are visible without provider schemas: references to undeclared
// objects, missing or unexpected arguments of module calls, invalid function arguments. Blocks
// of skipped providers may have any arguments: each expression in them is evaluated separately,
// and the values of their objects are unknown.

// leavesOut reports whether a provider is skipped.
func (v *validator) leavesOut(a addr.Provider) bool {
	return v.in.Without != nil && v.in.Without(a)
}

// alone is Value for an instance whose provider is skipped.
func (v *validator) alone(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	out := cty.DynamicVal
	if d.Addr().Resource.Mode == addr.Ephemeral {
		out = out.Mark(value.Ephemeral)
	}
	_, ds := d.Provider(t)
	_, more := d.Preconditions(t)
	ds = append(ds, notFailures(more)...)
	ds = append(ds, d.Expressions(t)...)
	ds = append(ds, v.provisioners(t, d, out)...)
	ds = append(ds, made(t, d, out)...)
	return out, ds.About(d.Addr().String())
}
