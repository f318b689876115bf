// Package provider defines the interface between the engine and providers, with its requests and
// responses. Plugins, the built-in provider and test doubles implement it.
//
// Main types: Provider, Factory and Unimplemented. The one rule: values in requests and responses have
// no marks and conform to the implied type of the schema. Messages have Attr set if the provider
// returned a path.
package provider

import (
	"context"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A Provider is one instance of a provider. It starts unconfigured, which is sufficient for the schema,
// validation, upgrades and functions, and is configured at most once. Its methods are safe for
// concurrent use. After Close, they return an error and do not block.
type Provider interface {
	// Schema returns the schema of the provider. The caller must not modify it.
	Schema(ctx context.Context) (*schema.Provider, diag.List)

	// ValidateConfig checks a provider configuration and may return it with defaults filled in.
	ValidateConfig(ctx context.Context, config cty.Value) (cty.Value, diag.List)
	// Configure configures the provider with the result of ValidateConfig. It is called at most
	// once. config may contain unknown values.
	Configure(ctx context.Context, config cty.Value) diag.List

	// ValidateResource checks the configuration of a resource, which may contain unknown values.
	ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) diag.List
	// UpgradeState converts stored attributes to a value of the current schema.
	UpgradeState(ctx context.Context, req UpgradeRequest) (cty.Value, diag.List)
	// UpgradeIdentity converts the JSON of a stored identity to a value of the current identity
	// schema. version is the version of the identity schema with which it was stored.
	UpgradeIdentity(ctx context.Context, typ string, version int64, json []byte) (cty.Value, diag.List)
	// Read reads the current object of a managed resource.
	Read(ctx context.Context, req ReadRequest) (ReadResponse, diag.List)
	// Plan plans a change of a managed resource. It changes nothing.
	Plan(ctx context.Context, req PlanRequest) (PlanResponse, diag.List)
	// Apply carries out a planned change of a managed resource.
	Apply(ctx context.Context, req ApplyRequest) (ApplyResponse, diag.List)
	// Import finds the objects to import for an ID or identity. It changes nothing.
	Import(ctx context.Context, req ImportRequest) ([]Imported, diag.List)
	// Move converts an object of another resource type. It changes nothing.
	Move(ctx context.Context, req MoveRequest) (MoveResponse, diag.List)

	// ReadData reads a data source. meta is the value of provider_meta, or cty.NilVal.
	ReadData(ctx context.Context, typ string, config, meta cty.Value) (cty.Value, diag.List)

	// OpenEphemeral opens an ephemeral resource.
	OpenEphemeral(ctx context.Context, typ string, config cty.Value) (Opened, diag.List)
	// RenewEphemeral renews an open ephemeral resource. private is that of the last response.
	RenewEphemeral(ctx context.Context, typ string, private []byte) (Renewal, diag.List)
	// CloseEphemeral closes an ephemeral resource. private is that of the last response.
	CloseEphemeral(ctx context.Context, typ string, private []byte) diag.List

	// List lists existing objects of a managed type. It calls each for every object, one after the
	// other, until each returns false. each may be called before an error is returned.
	List(ctx context.Context, req ListRequest, each func(Listed) bool) diag.List
	// GenerateConfig returns a configuration with which a managed object has the given state.
	// Schema().Capabilities.GenerateConfig reports whether the provider implements it.
	GenerateConfig(ctx context.Context, typ string, state cty.Value) (cty.Value, diag.List)

	// Functions returns the functions of a configured provider, by name. They may differ from those
	// in the schema.
	Functions(ctx context.Context) (map[string]*schema.Function, diag.List)
	// CallFunction calls a function. Arguments contain unknown values only if their parameters
	// allow them. An error about one argument is an *ArgError.
	CallFunction(ctx context.Context, name string, args []cty.Value) (cty.Value, error)

	// Stop asks the provider to end its running calls soon. It does not wait for them.
	Stop(ctx context.Context) error
	// Close stops the provider and its process, if it has one. It may be called more than once.
	Close() error
}

// CodeInterrupted is the code of errors about calls that were canceled. The provider may or may not have
// carried out the call.
const CodeInterrupted = diag.CodeProviderInterrupted

// CodeUnasked is the code of errors about calls that did not reach the provider, because it had ended.
// The call may be repeated with another process.
const CodeUnasked = diag.CodeProviderUnasked

// CodeSlow is the code of errors about providers that did not start in time. Starting such a provider
// again would probably take as long.
const CodeSlow = diag.CodeProviderSlow

// A Factory starts a new, unconfigured instance of a provider. It may be called concurrently.
type Factory func(ctx context.Context) (Provider, diag.List)

// An ArgError is an error about one argument of a function call.
type ArgError struct {
	Arg int // index of the argument, from 0
	Msg string
}

// Error returns the message without the argument.
func (e *ArgError) Error() string { return e.Msg }

// # Requests and responses
//
// Type is the name of the resource type. Values of objects have the implied type of its schema.
// Private is opaque data of the provider: the caller stores it with the object, passes it to the
// next call about the object, and never shows it. Meta is the value of provider_meta. Meta and
// identities are cty.NilVal if there are none.

// UpgradeRequest is the request to convert stored attributes to the current schema version. Either JSON
// or Flat is set.
type UpgradeRequest struct {
	Type    string
	Version int64             // schema version of the stored attributes
	JSON    []byte            // attributes as a JSON object, or nil
	Flat    map[string]string // attributes in the form of state versions before 4, or nil
}

// ReadRequest is the request to read the current object.
type ReadRequest struct {
	Type     string
	Prior    cty.Value
	Private  []byte
	Meta     cty.Value // provider_meta; cty.NilVal if there is none
	Identity cty.Value // cty.NilVal if there is none
}

// ReadResponse is the current object. A null State means that the object no longer exists.
type ReadResponse struct {
	State    cty.Value
	Private  []byte
	Identity cty.Value
}

// PlanRequest is the request to plan a change of an object. A null Prior means a create, a null Proposed a
// destroy.
type PlanRequest struct {
	Type          string
	Prior         cty.Value
	Proposed      cty.Value // configuration merged with computed values of Prior; see schema.Block.ProposedNew
	Config        cty.Value
	Private       []byte
	Meta          cty.Value
	PriorIdentity cty.Value
}

// PlanResponse is the planned object. Planned contains unknown values for attributes that become known
// during the apply.
type PlanResponse struct {
	Planned         cty.Value
	Private         []byte
	RequiresReplace []cty.Path // paths of changed arguments that force a replacement
	Identity        cty.Value
	Legacy          bool // the provider uses the loose type system of the old SDK, so that fewer checks apply
}

// ApplyRequest is the request to carry out a planned change. A null Planned destroys the object.
type ApplyRequest struct {
	Type            string
	Prior           cty.Value
	Planned         cty.Value
	Config          cty.Value
	Private         []byte
	Meta            cty.Value
	PlannedIdentity cty.Value
}

// ApplyResponse is the object after the call. With errors, it is the object as far as the provider has
// changed it.
type ApplyResponse struct {
	State    cty.Value
	Private  []byte
	Identity cty.Value
	Legacy   bool
}

// ImportRequest is the request to import an existing object, by ID or by Identity. ID is "" or Identity is
// cty.NilVal.
type ImportRequest struct {
	Type     string
	ID       string
	Identity cty.Value
}

// Imported is one object that an import has found.
type Imported struct {
	Type     string
	State    cty.Value
	Private  []byte
	Identity cty.Value
}

// ListRequest selects the objects that a provider lists.
type ListRequest struct {
	Type    string    // the managed type, which is also the type of the list resource
	Config  cty.Value // configuration of the list resource
	Objects bool      // the result contains the objects themselves
	Limit   int64     // maximum number of objects; 0 means no limit
}

// A Listed is an existing object.
type Listed struct {
	Name     string    // for people; it need not be unique
	Identity cty.Value // cty.NilVal if the provider returned none
	Object   cty.Value // cty.NilVal if the provider did not return it
}

// MoveRequest is the request to convert an object of another resource type, possibly of another
// provider, to TargetType.
type MoveRequest struct {
	SourceProvider        addr.Provider
	SourceType            string
	SourceVersion         int64  // schema version of SourceJSON
	SourceJSON            []byte // attributes as a JSON object
	SourcePrivate         []byte
	SourceIdentityJSON    []byte // nil if there is none
	SourceIdentityVersion int64
	TargetType            string
}

// MoveResponse is the object as one of the target type.
type MoveResponse struct {
	State    cty.Value
	Private  []byte
	Identity cty.Value
}

// Opened is an open ephemeral resource.
type Opened struct {
	Result  cty.Value
	Private []byte
	Renew   time.Time // time at which it must be renewed; the zero time means never
}

// Renewal is the response to a renewal. Renew is as in Opened.
type Renewal struct {
	Private []byte
	Renew   time.Time
}
