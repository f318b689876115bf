package eval

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// listingCode contains the arguments of a list block that other resources do not have.
type listingCode struct{ objects, limit *lang.Expr }

// DefaultLimit is the number of objects that a list block returns if it has no limit. Source:
// Terraform's documentation of list blocks.
const DefaultLimit = 100

// A Listing contains the evaluated arguments of a list block.
type Listing struct {
	Objects bool  // include_resource
	Limit   int64 // at least 1
}

// Listing evaluates include_resource and limit of an instance of a list block. During validation,
// unknown values count as not given.
func (d *Desired) Listing(t *demand.Task) (Listing, diag.List) {
	out := Listing{Limit: DefaultLimit}
	code := d.Resource.code.listing
	var ds diag.List
	get := func(x *lang.Expr, name string, want cty.Type) (cty.Value, bool) {
		if x == nil {
			return cty.NilVal, false
		}
		v, more := lang.Eval(t, d.Scope(cty.NilVal), x, want)
		if ds = append(ds, more...); more.HasErrors() {
			return cty.NilVal, false
		}
		v, _ = v.Unmark()
		at := x.Range()
		switch {
		case v.IsNull():
			return cty.NilVal, false
		case v.IsKnown():
			return v, true
		case !d.Resource.Mod.ev.o.Validating:
			ds = append(ds, diag.Errorf(diag.CodeEvalListing, &at, "Invalid list argument", "The value of %s depends on resource attributes that cannot be determined until apply.", name)...)
		}
		return cty.NilVal, false
	}
	if v, ok := get(code.objects, "include_resource", cty.Bool); ok {
		out.Objects = v.True()
	}
	if v, ok := get(code.limit, "limit", cty.Number); ok {
		n, acc := v.AsBigFloat().Int64()
		if acc != 0 || n < 1 {
			at := code.limit.Range()
			ds = append(ds, diag.Errorf(diag.CodeEvalListing, &at, "Invalid list argument", "The limit must be a whole number from 1 on.")...)
		} else {
			out.Limit = n
		}
	}
	return out, ds
}

// Listed returns the schema of the objects that a list block lists: that of the managed resource
// type with the same name. It must have an identity.
func (r *Resource) Listed(t *demand.Task) (*schema.Resource, diag.List) {
	ps, ds := r.Mod.ev.o.Phase.Schema(t, r.Provider())
	if ds.HasErrors() {
		return nil, ds.Under(&r.code.cfg.At)
	}
	s := ps.Resource(addr.Managed, r.code.cfg.Addr.Type)
	if s == nil || s.Identity == nil {
		at := r.code.cfg.TypeAt()
		return nil, diag.Errorf(diag.CodeProviderIdentity, &at, "List resource without identity", "The provider %s lists objects of %q, but declares no identity for this resource type. This is a bug in the provider, which should be reported in the provider's own issue tracker.", r.Provider().Display(), r.code.cfg.Addr.Type)
	}
	return s, nil
}

// ListedType returns the type of the elements of data in the value of a list block, for objects
// with the schema s. state is null unless include_resource is set.
func ListedType(s *schema.Resource) cty.Type {
	return cty.Object(map[string]cty.Type{"display_name": cty.String, "identity": s.Identity.ImpliedType(), "state": s.Block.ImpliedType()})
}

// ListedValue returns the value of a list block with the given elements of data.
func ListedValue(s *schema.Resource, data []cty.Value) cty.Value {
	ty := ListedType(s)
	switch {
	case ty.HasDynamicTypes(): // the elements may have different types
		return cty.ObjectVal(map[string]cty.Value{"data": cty.TupleVal(data)})
	case len(data) == 0:
		return cty.ObjectVal(map[string]cty.Value{"data": cty.ListValEmpty(ty)})
	}
	return cty.ObjectVal(map[string]cty.Value{"data": cty.ListVal(data)})
}

// UnknownListed returns the value of a list block during validation.
func UnknownListed(s *schema.Resource) cty.Value {
	ty := ListedType(s)
	if ty.HasDynamicTypes() {
		return cty.ObjectVal(map[string]cty.Value{"data": cty.DynamicVal})
	}
	return cty.ObjectVal(map[string]cty.Value{"data": cty.UnknownVal(cty.List(ty)).RefineNotNull()})
}
