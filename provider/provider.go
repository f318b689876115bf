// Package provider is what the engine asks of a provider: the interface that
// plugins, the built-in provider and test doubles all implement, and its messages.
//
// Main types: Provider and Factory. The one rule: values that cross this
// interface carry no marks, conform to the implied type of the schema, and
// messages come back as diag.List with Attr set where the provider gave a path.
package provider

import (
	"context"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A Provider is one provider instance: unconfigured at first (schema,
// validation, functions), configured at most once. Every method may be called
// concurrently. After Close every method fails with a message, none hangs.
type Provider interface {
	Schema(ctx context.Context) (*schema.Provider, diag.List)

	// ValidateConfig checks a provider configuration and may return it with defaults filled in.
	ValidateConfig(ctx context.Context, config cty.Value) (cty.Value, diag.List)
	Configure(ctx context.Context, config cty.Value) diag.List

	ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) diag.List
	UpgradeState(ctx context.Context, req UpgradeRequest) (cty.Value, diag.List)
	// UpgradeIdentity turns stored identity JSON of an older version into a value.
	UpgradeIdentity(ctx context.Context, typ string, version int64, json []byte) (cty.Value, diag.List)
	Read(ctx context.Context, req ReadRequest) (ReadResponse, diag.List)
	Plan(ctx context.Context, req PlanRequest) (PlanResponse, diag.List)
	Apply(ctx context.Context, req ApplyRequest) (ApplyResponse, diag.List)
	Import(ctx context.Context, req ImportRequest) ([]Imported, diag.List)
	Move(ctx context.Context, req MoveRequest) (MoveResponse, diag.List)

	ReadData(ctx context.Context, typ string, config, meta cty.Value) (cty.Value, diag.List)

	OpenEphemeral(ctx context.Context, typ string, config cty.Value) (Opened, diag.List)
	RenewEphemeral(ctx context.Context, typ string, private []byte) (Renewal, diag.List)
	CloseEphemeral(ctx context.Context, typ string, private []byte) diag.List

	// Functions lists the functions of a configured provider (they may differ from the schema's).
	Functions(ctx context.Context) (map[string]*schema.Function, diag.List)
	// CallFunction calls a function. An argument contains no unknown values, unless its
	// parameter allows them. An *ArgError names the argument that is to blame.
	CallFunction(ctx context.Context, name string, args []cty.Value) (cty.Value, error)

	// Stop asks running calls to end soon; it returns at once.
	Stop(ctx context.Context) error
	// Close ends the provider and its process, if it has one. It is idempotent.
	Close() error
}

// CodeInterrupted is the code of messages about calls that the caller gave up: it is
// not known how far the provider came.
const CodeInterrupted = diag.CodeProviderInterrupted

// CodeUnasked is the code of messages about calls that did not reach the provider,
// since it had ended: another process of it may be asked.
const CodeUnasked = diag.CodeProviderUnasked

// CodeSlow is the code of messages about providers that did not start in time: it
// would take as long to find out again.
const CodeSlow = diag.CodeProviderSlow

// A Factory starts a new, unconfigured provider instance.
type Factory func(ctx context.Context) (Provider, diag.List)

// An ArgError blames one argument of a function call, counted from 0.
type ArgError struct {
	Arg int
	Msg string
}

func (e *ArgError) Error() string { return e.Msg }

// UpgradeRequest asks for stored attributes in the form of the current schema version.
type UpgradeRequest struct {
	Type    string
	Version int64             // schema version of what is stored
	JSON    []byte            // attributes as JSON, or nil
	Flat    map[string]string // attributes of state formats before 4, or nil
}

// ReadRequest asks for the current form of an object.
type ReadRequest struct {
	Type     string
	Prior    cty.Value
	Private  []byte
	Meta     cty.Value // provider_meta; cty.NilVal if there is none
	Identity cty.Value // cty.NilVal if there is none
}

// ReadResponse is the object as it is now; a null State means that it does not exist any more.
type ReadResponse struct {
	State    cty.Value
	Private  []byte
	Identity cty.Value
}

// PlanRequest asks what would become of an object. A null Prior plans a create,
// a null Proposed a destroy.
type PlanRequest struct {
	Type          string
	Prior         cty.Value
	Proposed      cty.Value // prior and configuration merged
	Config        cty.Value
	Private       []byte
	Meta          cty.Value
	PriorIdentity cty.Value
}

// PlanResponse is the planned object.
type PlanResponse struct {
	Planned         cty.Value
	Private         []byte
	RequiresReplace []cty.Path
	Identity        cty.Value
	Legacy          bool // the provider's type system is loose: checks on it are relaxed
}

// ApplyRequest asks to make the planned object real. A null Planned destroys.
type ApplyRequest struct {
	Type            string
	Prior           cty.Value
	Planned         cty.Value
	Config          cty.Value
	Private         []byte
	Meta            cty.Value
	PlannedIdentity cty.Value
}

// ApplyResponse is the object after the call; with errors it tells how far the provider came.
type ApplyResponse struct {
	State    cty.Value
	Private  []byte
	Identity cty.Value
	Legacy   bool
}

// ImportRequest names an existing object by ID or by Identity (the other is empty).
type ImportRequest struct {
	Type     string
	ID       string
	Identity cty.Value
}

// Imported is one object that an import found.
type Imported struct {
	Type     string
	State    cty.Value
	Private  []byte
	Identity cty.Value
}

// MoveRequest asks to take over an object of another type.
type MoveRequest struct {
	SourceProvider        addr.Provider
	SourceType            string
	SourceVersion         int64
	SourceJSON            []byte
	SourcePrivate         []byte
	SourceIdentityJSON    []byte
	SourceIdentityVersion int64
	TargetType            string
}

// MoveResponse is the object in the form of the target type.
type MoveResponse struct {
	State    cty.Value
	Private  []byte
	Identity cty.Value
}

// Opened is the result of opening an ephemeral resource.
type Opened struct {
	Result  cty.Value
	Private []byte
	Renew   time.Time // the zero time: never
}

// Renewal is the answer to a renewal.
type Renewal struct {
	Private []byte
	Renew   time.Time
}
