// Package intercept implements the methods of a provider once, for providers that wrap another
// provider: Calls converts each method call to a Call and passes that to a Handler.
//
// Main types: Calls, which a provider embeds; Handler, which the provider implements; and
// one type per method, such as Plan. The one rule: a handler that only carries out each call on
// the wrapped provider does not change any result.
package intercept

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A Handler handles the calls of a provider. It may be called concurrently.
type Handler interface {
	// Handle carries out a call, or sets its answer without a provider. The caller gets the
	// messages that Handle returns.
	Handle(ctx context.Context, c Call) diag.List
}

// Calls implements all methods of provider.Provider except Stop and Close. Each passes a Call to
// Handler. A provider embeds Calls and defines Stop and Close itself.
type Calls struct{ Handler Handler }

// A Call is one call of a provider. It is a pointer to the type with the name of the method, such
// as *Plan. After a type switch, Request and Answer are accessible. A Call must not be used
// concurrently.
type Call interface {
	// Method returns the name of the method, such as "Plan".
	Method() string
	// Do carries out the call on p, sets Answer, and returns the messages of p. It may be
	// called again, on another provider.
	Do(ctx context.Context, p provider.Provider) diag.List
}

// call is a call with a request of type Q and an answer of type R. Each method has its own type
// Q, so that a type switch distinguishes the methods.
type call[Q, R any] struct {
	Request Q
	// Answer is the result for the caller. Before Do, it is the result of a call that fails
	// before it reaches a provider: the unchanged object, or a placeholder.
	Answer R

	method string
	do     func(provider.Provider, context.Context, Q) (R, diag.List)
}

func (c *call[Q, R]) Method() string { return c.method }

func (c *call[Q, R]) Do(ctx context.Context, p provider.Provider) (ds diag.List) {
	c.Answer, ds = c.do(p, ctx, c.Request)
	return ds
}

// The types of the calls.
type (
	Schema           = call[SchemaRequest, *schema.Provider]
	ValidateConfig   = call[ValidateConfigRequest, cty.Value]
	Configure        = call[ConfigureRequest, None]
	ValidateResource = call[ValidateResourceRequest, None]
	UpgradeState     = call[provider.UpgradeRequest, cty.Value]
	UpgradeIdentity  = call[UpgradeIdentityRequest, cty.Value]
	Read             = call[provider.ReadRequest, provider.ReadResponse]
	Plan             = call[provider.PlanRequest, provider.PlanResponse]
	Apply            = call[provider.ApplyRequest, provider.ApplyResponse]
	Import           = call[provider.ImportRequest, []provider.Imported]
	Move             = call[provider.MoveRequest, provider.MoveResponse]
	ReadData         = call[ReadDataRequest, cty.Value]
	OpenEphemeral    = call[OpenEphemeralRequest, provider.Opened]
	RenewEphemeral   = call[RenewEphemeralRequest, provider.Renewal]
	CloseEphemeral   = call[CloseEphemeralRequest, None]
	List             = call[ListRequest, None]
	GenerateConfig   = call[GenerateConfigRequest, cty.Value]
	Functions        = call[FunctionsRequest, map[string]*schema.Function]
	CallFunction     = call[CallFunctionRequest, Returned]
)

// Requests of the methods that have no request type in package provider.
type (
	SchemaRequest         struct{}
	FunctionsRequest      struct{}
	ValidateConfigRequest struct{ Config cty.Value }
	ConfigureRequest      struct{ Config cty.Value }

	ValidateResourceRequest struct {
		Mode   addr.Mode
		Type   string
		Config cty.Value
	}
	UpgradeIdentityRequest struct {
		Type    string
		Version int64
		JSON    []byte
	}
	ReadDataRequest struct {
		Type         string
		Config, Meta cty.Value
	}
	OpenEphemeralRequest struct {
		Type   string
		Config cty.Value
	}
	RenewEphemeralRequest struct {
		Type    string
		Private []byte
	}
	CloseEphemeralRequest struct {
		Type    string
		Private []byte
	}
	ListRequest struct {
		provider.ListRequest
		Each func(provider.Listed) bool
	}
	GenerateConfigRequest struct {
		Type  string
		State cty.Value
	}
	CallFunctionRequest struct {
		Name string
		Args []cty.Value
	}
)

// None is the answer of a method that only returns messages.
type None struct{}

// Returned is the answer of CallFunction. If Err is nil and the handler returns error
// messages, the caller gets the messages as the error.
type Returned struct {
	Value cty.Value
	Err   error
}

// handle passes a call to the handler. failed is the answer of a call that fails before it
// reaches a provider.
func handle[Q, R any](ctx context.Context, h Handler, method string, req Q, failed R, do func(provider.Provider, context.Context, Q) (R, diag.List)) (R, diag.List) {
	c := &call[Q, R]{Request: req, Answer: failed, method: method, do: do}
	ds := h.Handle(ctx, c)
	return c.Answer, ds
}

func (c Calls) Schema(ctx context.Context) (*schema.Provider, diag.List) {
	return handle(ctx, c.Handler, "Schema", SchemaRequest{}, nil,
		func(p provider.Provider, ctx context.Context, _ SchemaRequest) (*schema.Provider, diag.List) {
			return p.Schema(ctx)
		})
}

func (c Calls) ValidateConfig(ctx context.Context, config cty.Value) (cty.Value, diag.List) {
	return handle(ctx, c.Handler, "ValidateConfig", ValidateConfigRequest{config}, config,
		func(p provider.Provider, ctx context.Context, req ValidateConfigRequest) (cty.Value, diag.List) {
			return p.ValidateConfig(ctx, req.Config)
		})
}

func (c Calls) Configure(ctx context.Context, config cty.Value) diag.List {
	_, ds := handle(ctx, c.Handler, "Configure", ConfigureRequest{config}, None{},
		func(p provider.Provider, ctx context.Context, req ConfigureRequest) (None, diag.List) {
			return None{}, p.Configure(ctx, req.Config)
		})
	return ds
}

func (c Calls) ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) diag.List {
	_, ds := handle(ctx, c.Handler, "ValidateResource", ValidateResourceRequest{mode, typ, config}, None{},
		func(p provider.Provider, ctx context.Context, req ValidateResourceRequest) (None, diag.List) {
			return None{}, p.ValidateResource(ctx, req.Mode, req.Type, req.Config)
		})
	return ds
}

func (c Calls) UpgradeState(ctx context.Context, req provider.UpgradeRequest) (cty.Value, diag.List) {
	return handle(ctx, c.Handler, "UpgradeState", req, cty.DynamicVal, provider.Provider.UpgradeState)
}

func (c Calls) UpgradeIdentity(ctx context.Context, typ string, version int64, json []byte) (cty.Value, diag.List) {
	return handle(ctx, c.Handler, "UpgradeIdentity", UpgradeIdentityRequest{typ, version, json}, cty.NilVal,
		func(p provider.Provider, ctx context.Context, req UpgradeIdentityRequest) (cty.Value, diag.List) {
			return p.UpgradeIdentity(ctx, req.Type, req.Version, req.JSON)
		})
}

func (c Calls) Read(ctx context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	failed := provider.ReadResponse{State: req.Prior, Private: req.Private, Identity: req.Identity}
	return handle(ctx, c.Handler, "Read", req, failed, provider.Provider.Read)
}

func (c Calls) Plan(ctx context.Context, req provider.PlanRequest) (provider.PlanResponse, diag.List) {
	failed := provider.PlanResponse{Planned: req.Prior, Private: req.Private, Identity: req.PriorIdentity}
	return handle(ctx, c.Handler, "Plan", req, failed, provider.Provider.Plan)
}

func (c Calls) Apply(ctx context.Context, req provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
	failed := provider.ApplyResponse{State: req.Prior, Private: req.Private, Identity: req.PlannedIdentity}
	return handle(ctx, c.Handler, "Apply", req, failed, provider.Provider.Apply)
}

func (c Calls) Import(ctx context.Context, req provider.ImportRequest) ([]provider.Imported, diag.List) {
	return handle(ctx, c.Handler, "Import", req, nil, provider.Provider.Import)
}

func (c Calls) Move(ctx context.Context, req provider.MoveRequest) (provider.MoveResponse, diag.List) {
	return handle(ctx, c.Handler, "Move", req, provider.MoveResponse{State: cty.DynamicVal}, provider.Provider.Move)
}

func (c Calls) ReadData(ctx context.Context, typ string, config, meta cty.Value) (cty.Value, diag.List) {
	return handle(ctx, c.Handler, "ReadData", ReadDataRequest{typ, config, meta}, cty.DynamicVal,
		func(p provider.Provider, ctx context.Context, req ReadDataRequest) (cty.Value, diag.List) {
			return p.ReadData(ctx, req.Type, req.Config, req.Meta)
		})
}

func (c Calls) OpenEphemeral(ctx context.Context, typ string, config cty.Value) (provider.Opened, diag.List) {
	return handle(ctx, c.Handler, "OpenEphemeral", OpenEphemeralRequest{typ, config}, provider.Opened{Result: cty.DynamicVal},
		func(p provider.Provider, ctx context.Context, req OpenEphemeralRequest) (provider.Opened, diag.List) {
			return p.OpenEphemeral(ctx, req.Type, req.Config)
		})
}

func (c Calls) RenewEphemeral(ctx context.Context, typ string, private []byte) (provider.Renewal, diag.List) {
	return handle(ctx, c.Handler, "RenewEphemeral", RenewEphemeralRequest{typ, private}, provider.Renewal{},
		func(p provider.Provider, ctx context.Context, req RenewEphemeralRequest) (provider.Renewal, diag.List) {
			return p.RenewEphemeral(ctx, req.Type, req.Private)
		})
}

func (c Calls) CloseEphemeral(ctx context.Context, typ string, private []byte) diag.List {
	_, ds := handle(ctx, c.Handler, "CloseEphemeral", CloseEphemeralRequest{typ, private}, None{},
		func(p provider.Provider, ctx context.Context, req CloseEphemeralRequest) (None, diag.List) {
			return None{}, p.CloseEphemeral(ctx, req.Type, req.Private)
		})
	return ds
}

func (c Calls) List(ctx context.Context, req provider.ListRequest, each func(provider.Listed) bool) diag.List {
	_, ds := handle(ctx, c.Handler, "List", ListRequest{req, each}, None{},
		func(p provider.Provider, ctx context.Context, req ListRequest) (None, diag.List) {
			return None{}, p.List(ctx, req.ListRequest, req.Each)
		})
	return ds
}

func (c Calls) GenerateConfig(ctx context.Context, typ string, state cty.Value) (cty.Value, diag.List) {
	return handle(ctx, c.Handler, "GenerateConfig", GenerateConfigRequest{typ, state}, cty.DynamicVal,
		func(p provider.Provider, ctx context.Context, req GenerateConfigRequest) (cty.Value, diag.List) {
			return p.GenerateConfig(ctx, req.Type, req.State)
		})
}

func (c Calls) Functions(ctx context.Context) (map[string]*schema.Function, diag.List) {
	return handle(ctx, c.Handler, "Functions", FunctionsRequest{}, nil,
		func(p provider.Provider, ctx context.Context, _ FunctionsRequest) (map[string]*schema.Function, diag.List) {
			return p.Functions(ctx)
		})
}

func (c Calls) CallFunction(ctx context.Context, name string, args []cty.Value) (cty.Value, error) {
	out, ds := handle(ctx, c.Handler, "CallFunction", CallFunctionRequest{name, args}, Returned{Value: cty.DynamicVal},
		func(p provider.Provider, ctx context.Context, req CallFunctionRequest) (out Returned, _ diag.List) {
			out.Value, out.Err = p.CallFunction(ctx, req.Name, req.Args)
			return out, nil
		})
	if out.Err == nil {
		out.Err = ds.Err()
	}
	return out.Value, out.Err
}
