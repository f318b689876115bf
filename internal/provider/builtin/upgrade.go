package builtin

import (
	"context"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// The types of terraform_data without and with the store block, without the types of dynamic values.
var (
	plainImplied = sync.OnceValue(func() cty.Type { return dataBlock(false).ImpliedType() })
	storeImplied = sync.OnceValue(func() cty.Type { return dataBlock(true).ImpliedType() })
)

// UpgradeState decodes stored terraform_data. The schema has only one version.
func (p *Provider) UpgradeState(_ context.Context, req provider.UpgradeRequest) (cty.Value, diag.List) {
	switch {
	case p.closed.Load():
		return cty.NilVal, p.check()
	case req.Type == remoteStateType:
		return decode(req.JSON, remoteStateBlock().ImpliedType())
	case req.Type != dataType:
		return cty.NilVal, unknownType(0, req.Type)
	case req.JSON == nil:
		return cty.NilVal, diag.Errorf(diag.CodeProviderCall, nil, "Unreadable object", "The stored attributes are in the form of a state format before version 4, which the type terraform_data never had.")
	}
	if p.store {
		return decode(req.JSON, storeImplied())
	}
	return decode(req.JSON, plainImplied())
}

func decode(src []byte, ty cty.Type) (cty.Value, diag.List) {
	v, err := state.Decode(src, ty)
	if err != nil {
		return cty.NilVal, diag.Errorf(diag.CodeProviderCall, nil, "Unreadable object", "The stored attributes do not fit the type: %s.", err)
	}
	return v, nil
}
