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
// Much of what is wrong with a module shows without the schemas of its providers: what
// refers to something that there is not, what a call of a module lacks or gives too
// much, what no function takes. What belongs to a provider that is left out may be
// anything: each expression in it is evaluated by itself, and which values its objects
// have is not known.

// leavesOut reports whether nothing is to be asked of a provider.
func (v *validator) leavesOut(a addr.Provider) bool {
	return v.in.Without != nil && v.in.Without(a)
}

// alone is Value for an instance whose provider is left out.
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
