package provider

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// CodeUnimplemented is the code of errors about methods that a provider does not define.
const CodeUnimplemented = diag.CodeProviderUnimplemented

// Unimplemented implements every method of Provider. Embed it in a provider and define the methods that
// the provider supports. ValidateConfig, Configure, ValidateResource, Functions, Stop and Close succeed
// without doing anything. All others return an error with the code CodeUnimplemented.
type Unimplemented struct{}

var _ Provider = Unimplemented{}

func unimplemented(method string) diag.List {
	return diag.Errorf(CodeUnimplemented, nil, "Not implemented by this provider", "The provider has no method %s, which was asked for.", method)
}

// Schema returns an error, because every provider needs a schema.
func (Unimplemented) Schema(context.Context) (*schema.Provider, diag.List) {
	return nil, unimplemented("Schema")
}

// ValidateConfig returns the configuration unchanged.
func (Unimplemented) ValidateConfig(_ context.Context, config cty.Value) (cty.Value, diag.List) {
	return config, nil
}

// Configure does nothing.
func (Unimplemented) Configure(context.Context, cty.Value) diag.List { return nil }

// ValidateResource returns no errors.
func (Unimplemented) ValidateResource(context.Context, addr.Mode, string, cty.Value) diag.List {
	return nil
}

// UpgradeState returns an error.
func (Unimplemented) UpgradeState(context.Context, UpgradeRequest) (cty.Value, diag.List) {
	return cty.DynamicVal, unimplemented("UpgradeState")
}

// UpgradeIdentity returns an error.
func (Unimplemented) UpgradeIdentity(context.Context, string, int64, []byte) (cty.Value, diag.List) {
	return cty.NilVal, unimplemented("UpgradeIdentity")
}

// Read returns the unchanged object and an error.
func (Unimplemented) Read(_ context.Context, req ReadRequest) (ReadResponse, diag.List) {
	return ReadResponse{State: req.Prior, Private: req.Private, Identity: req.Identity}, unimplemented("Read")
}

// Plan returns the unchanged object and an error.
func (Unimplemented) Plan(_ context.Context, req PlanRequest) (PlanResponse, diag.List) {
	return PlanResponse{Planned: req.Prior, Private: req.Private, Identity: req.PriorIdentity}, unimplemented("Plan")
}

// Apply returns the unchanged object and an error.
func (Unimplemented) Apply(_ context.Context, req ApplyRequest) (ApplyResponse, diag.List) {
	return ApplyResponse{State: req.Prior, Private: req.Private, Identity: req.PlannedIdentity}, unimplemented("Apply")
}

// Import returns an error.
func (Unimplemented) Import(context.Context, ImportRequest) ([]Imported, diag.List) {
	return nil, unimplemented("Import")
}

// Move returns an error.
func (Unimplemented) Move(context.Context, MoveRequest) (MoveResponse, diag.List) {
	return MoveResponse{State: cty.DynamicVal}, unimplemented("Move")
}

// ReadData returns an error.
func (Unimplemented) ReadData(context.Context, string, cty.Value, cty.Value) (cty.Value, diag.List) {
	return cty.DynamicVal, unimplemented("ReadData")
}

// OpenEphemeral returns an error.
func (Unimplemented) OpenEphemeral(context.Context, string, cty.Value) (Opened, diag.List) {
	return Opened{Result: cty.DynamicVal}, unimplemented("OpenEphemeral")
}

// RenewEphemeral returns an error.
func (Unimplemented) RenewEphemeral(context.Context, string, []byte) (Renewal, diag.List) {
	return Renewal{}, unimplemented("RenewEphemeral")
}

// CloseEphemeral returns an error.
func (Unimplemented) CloseEphemeral(context.Context, string, []byte) diag.List {
	return unimplemented("CloseEphemeral")
}

// List implements Provider. It returns an error.
func (Unimplemented) List(context.Context, ListRequest, func(Listed) bool) diag.List {
	return unimplemented("List")
}

// GenerateConfig implements Provider. It returns an error.
func (Unimplemented) GenerateConfig(context.Context, string, cty.Value) (cty.Value, diag.List) {
	return cty.DynamicVal, unimplemented("GenerateConfig")
}

// Functions returns no functions.
func (Unimplemented) Functions(context.Context) (map[string]*schema.Function, diag.List) {
	return nil, nil
}

// CallFunction returns an error.
func (Unimplemented) CallFunction(_ context.Context, name string, _ []cty.Value) (cty.Value, error) {
	return cty.DynamicVal, fmt.Errorf("the provider has no function %s", name)
}

// Stop does nothing.
func (Unimplemented) Stop(context.Context) error { return nil }

// Close does nothing.
func (Unimplemented) Close() error { return nil }
