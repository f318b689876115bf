// Package builtin implements the provider that is built into the program: the resource type
// terraform_data, the data source terraform_remote_state and the functions encode_tfvars,
// decode_tfvars and encode_expr.
//
// Main types: Provider, made by New, and ReadState, which reads states for
// terraform_remote_state. The one rule: calls take the same path as those of a plugin and
// do not depend on the engine, so each must be cheap: about a microsecond.
package builtin

import (
	"context"
	"sync/atomic"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// The names of the provider's types.
const (
	dataType        = "terraform_data"
	remoteStateType = "terraform_remote_state"
)

// A ReadState reads the latest state of a workspace from a backend. A nil State means that
// there is none. Messages about an argument have Attr set to its path in Config.
type ReadState func(ctx context.Context, req ReadStateRequest) (*state.State, diag.List)

// A ReadStateRequest identifies a state.
type ReadStateRequest struct {
	Backend   string
	Config    cty.Value // an object, or null of any type
	Workspace string    // "" means the default workspace
	Address   string    // address of the data source; "" if it is unknown
	Check     bool      // only check Backend and Config: nothing is read and the State is nil
}

// A Provider is an instance of the built-in provider. It may be used concurrently.
type Provider struct {
	read   ReadState
	store  bool // terraform_data has the store block
	closed atomic.Bool
}

var _ provider.Provider = (*Provider)(nil)

// New returns an instance. If read is nil, terraform_remote_state fails.
func New(read ReadState) *Provider { return &Provider{read: read} }

// Factory returns a factory of instances that read states with read. If store is set, terraform_data
// has the store block. It is only set if the configuration or a state uses the block, because OpenTofu
// cannot show a state with an attribute that it does not know.
func Factory(read ReadState, store bool) provider.Factory {
	return func(context.Context) (provider.Provider, diag.List) {
		return &Provider{read: read, store: store}, nil
	}
}

func (p *Provider) check() diag.List {
	if p.closed.Load() {
		return diag.Errorf(diag.CodeProviderCall, nil, "Provider is closed", "The built-in provider was asked for something after it had been closed. This is a bug in this program.")
	}
	return nil
}

// Schema returns the schema, which is the same for all instances with or without the store block.
func (p *Provider) Schema(context.Context) (*schema.Provider, diag.List) {
	return Schema(p.store), p.check()
}

// ValidateConfig returns the configuration unchanged; the provider has no arguments.
func (p *Provider) ValidateConfig(_ context.Context, config cty.Value) (cty.Value, diag.List) {
	return config, p.check()
}

// Configure does nothing.
func (p *Provider) Configure(context.Context, cty.Value) diag.List { return p.check() }

// ValidateResource checks the configuration of terraform_remote_state. For terraform_data,
// the schema is sufficient.
func (p *Provider) ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) diag.List {
	switch {
	case p.closed.Load():
		return p.check()
	case mode == addr.Managed && typ == dataType:
		return nil
	case mode == addr.Data && typ == remoteStateType:
		return p.validateRemoteState(ctx, config)
	}
	return unknownType(mode, typ)
}

func unknownType(mode addr.Mode, typ string) diag.List {
	kind := "resource type"
	switch mode {
	case addr.Data:
		kind = "data source"
	case addr.Ephemeral:
		kind = "ephemeral resource type"
	case addr.List:
		kind = "list resource"
	}
	return diag.Errorf(diag.CodeProviderUnknownType, nil, "Unknown type", "The built-in provider has no %s named %q.", kind, typ)
}

// UpgradeIdentity fails: no type of the provider has an identity.
func (p *Provider) UpgradeIdentity(_ context.Context, typ string, _ int64, _ []byte) (cty.Value, diag.List) {
	return cty.NilVal, diag.Errorf(diag.CodeProviderNoIdentity, nil, "Type without identity", "The type %q of the built-in provider has no identity.", typ)
}

// ReadData reads terraform_remote_state.
func (p *Provider) ReadData(ctx context.Context, typ string, config, _ cty.Value) (cty.Value, diag.List) {
	if p.closed.Load() {
		return cty.NilVal, p.check()
	}
	if typ != remoteStateType {
		return cty.NilVal, unknownType(addr.Data, typ)
	}
	return p.readRemoteState(ctx, config)
}

// OpenEphemeral fails: the provider has no ephemeral resources.
func (p *Provider) OpenEphemeral(_ context.Context, typ string, _ cty.Value) (provider.Opened, diag.List) {
	return provider.Opened{}, unknownType(addr.Ephemeral, typ)
}

// RenewEphemeral fails: the provider has no ephemeral resources.
func (p *Provider) RenewEphemeral(_ context.Context, typ string, _ []byte) (provider.Renewal, diag.List) {
	return provider.Renewal{}, unknownType(addr.Ephemeral, typ)
}

// CloseEphemeral fails: the provider has no ephemeral resources.
func (p *Provider) CloseEphemeral(_ context.Context, typ string, _ []byte) diag.List {
	return unknownType(addr.Ephemeral, typ)
}

// List fails: the provider has no list resources.
func (p *Provider) List(_ context.Context, req provider.ListRequest, _ func(provider.Listed) bool) diag.List {
	return unknownType(addr.List, req.Type)
}

// GenerateConfig fails: the capabilities of the provider do not contain it.
func (p *Provider) GenerateConfig(ctx context.Context, typ string, state cty.Value) (cty.Value, diag.List) {
	return provider.Unimplemented{}.GenerateConfig(ctx, typ, state)
}

// Stop does nothing: no call takes long enough to be stopped.
func (p *Provider) Stop(context.Context) error { return nil }

// Close makes all later calls fail.
func (p *Provider) Close() error {
	p.closed.Store(true)
	return nil
}
