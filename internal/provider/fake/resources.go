package fake

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// UpgradeState calls the script's Upgrade.
func (p *Provider) UpgradeState(ctx context.Context, req provider.UpgradeRequest) (cty.Value, diag.List) {
	b := p.block(addr.Managed, req.Type)
	if ds := p.begin(ctx, "UpgradeState", req.Type, b, cty.NilVal); ds != nil {
		return cty.DynamicVal, ds
	}
	if f := p.script.Managed[req.Type].Upgrade; f != nil {
		return f(req)
	}
	v, err := ctyjson.Unmarshal(req.JSON, b.ImpliedType())
	if err != nil {
		return cty.UnknownVal(b.ImpliedType()), diag.Errorf(diag.CodeProviderCall, nil, "Unreadable state", "The stored attributes of %s cannot be read: %s.", req.Type, err)
	}
	return v, nil
}

// UpgradeIdentity decodes the stored JSON.
func (p *Provider) UpgradeIdentity(ctx context.Context, typ string, _ int64, json []byte) (cty.Value, diag.List) {
	if ds := p.begin(ctx, "UpgradeIdentity", typ, p.block(addr.Managed, typ), cty.NilVal); ds != nil {
		return cty.NilVal, ds
	}
	id := p.script.Managed[typ].Schema.Identity
	if id == nil {
		return cty.NilVal, missing("UpgradeIdentity", typ)
	}
	v, err := ctyjson.Unmarshal(json, id.ImpliedType())
	if err != nil {
		return cty.NilVal, diag.Errorf(diag.CodeProviderCall, nil, "Unreadable identity", "The stored identity of %s cannot be read: %s.", typ, err)
	}
	return v, nil
}

// Read calls the script's Read.
func (p *Provider) Read(ctx context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	out := provider.ReadResponse{State: req.Prior, Private: req.Private, Identity: req.Identity}
	if ds := p.begin(ctx, "Read", req.Type, p.block(addr.Managed, req.Type), req.Prior); ds != nil {
		return out, ds
	}
	if f := p.script.Managed[req.Type].Read; f != nil {
		return f(req)
	}
	return out, nil
}

// Plan calls the script's Plan.
func (p *Provider) Plan(ctx context.Context, req provider.PlanRequest) (provider.PlanResponse, diag.List) {
	b := p.block(addr.Managed, req.Type)
	if ds := p.begin(ctx, "Plan", req.Type, b, req.Proposed, req.Prior, req.Config); ds != nil {
		return provider.PlanResponse{Planned: req.Prior}, ds
	}
	t := p.script.Managed[req.Type]
	if t.Plan != nil {
		return t.Plan(req)
	}
	return plain(b, t.Replace, req), nil
}

// plain returns the plan of a type without a script.
func plain(b *schema.Block, replace []string, req provider.PlanRequest) provider.PlanResponse {
	out := provider.PlanResponse{Planned: b.StripWriteOnly(req.Proposed), Private: req.Private, Identity: req.PriorIdentity}
	switch {
	case req.Proposed.IsNull():
		return out
	case req.Prior.IsNull():
		out.Planned = b.SetUnknowns(req.Proposed)
		return out
	}
	for _, name := range replace {
		if !req.Prior.GetAttr(name).RawEquals(req.Proposed.GetAttr(name)) {
			out.RequiresReplace = append(out.RequiresReplace, cty.GetAttrPath(name))
		}
	}
	return out
}

// Apply calls the script's Apply.
func (p *Provider) Apply(ctx context.Context, req provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
	if ds := p.begin(ctx, "Apply", req.Type, p.block(addr.Managed, req.Type), req.Planned, req.Prior, req.Config); ds != nil {
		return provider.ApplyResponse{State: req.Prior, Private: req.Private}, ds
	}
	if f := p.script.Managed[req.Type].Apply; f != nil {
		return f(req)
	}
	return provider.ApplyResponse{State: Fill(req.Type, req.Planned), Private: req.Private, Identity: req.PlannedIdentity}, nil
}

// Import calls the script's Import.
func (p *Provider) Import(ctx context.Context, req provider.ImportRequest) ([]provider.Imported, diag.List) {
	b := p.block(addr.Managed, req.Type)
	if ds := p.begin(ctx, "Import", req.Type, b, cty.NilVal); ds != nil {
		return nil, ds
	}
	if f := p.script.Managed[req.Type].Import; f != nil {
		return f(req)
	}
	if b.Attributes["id"] == nil {
		return nil, missing("Import", req.Type)
	}
	v := b.Empty().AsValueMap()
	v["id"] = cty.StringVal(req.ID)
	return []provider.Imported{{Type: req.Type, State: cty.ObjectVal(v), Identity: req.Identity}}, nil
}

// Move calls the script's Move.
func (p *Provider) Move(ctx context.Context, req provider.MoveRequest) (provider.MoveResponse, diag.List) {
	if ds := p.begin(ctx, "Move", req.TargetType, p.block(addr.Managed, req.TargetType), cty.NilVal); ds != nil {
		return provider.MoveResponse{State: cty.DynamicVal}, ds
	}
	if f := p.script.Managed[req.TargetType].Move; f != nil {
		return f(req)
	}
	return provider.MoveResponse{State: cty.DynamicVal}, missing("Move", req.TargetType)
}

// ReadData calls the script's Read of the data source.
func (p *Provider) ReadData(ctx context.Context, typ string, config, _ cty.Value) (cty.Value, diag.List) {
	b := p.block(addr.Data, typ)
	if ds := p.begin(ctx, "ReadData", typ, b, config); ds != nil {
		return cty.DynamicVal, ds
	}
	if f := p.script.Data[typ].Read; f != nil {
		return f(config)
	}
	return Fill(typ, b.SetUnknowns(config)), nil
}

// OpenEphemeral calls the script's Open.
func (p *Provider) OpenEphemeral(ctx context.Context, typ string, config cty.Value) (provider.Opened, diag.List) {
	b := p.block(addr.Ephemeral, typ)
	if ds := p.begin(ctx, "OpenEphemeral", typ, b, config); ds != nil {
		return provider.Opened{Result: cty.DynamicVal}, ds
	}
	if f := p.script.Ephemeral[typ].Open; f != nil {
		return f(config)
	}
	return provider.Opened{Result: Fill(typ, b.SetUnknowns(config))}, nil
}

// List implements provider.Provider. Scripts have no list resources.
func (p *Provider) List(ctx context.Context, req provider.ListRequest, each func(provider.Listed) bool) diag.List {
	return provider.Unimplemented{}.List(ctx, req, each)
}

// GenerateConfig implements provider.Provider. Scripts do not generate configuration.
func (p *Provider) GenerateConfig(ctx context.Context, typ string, state cty.Value) (cty.Value, diag.List) {
	return provider.Unimplemented{}.GenerateConfig(ctx, typ, state)
}

// RenewEphemeral calls the script's Renew.
func (p *Provider) RenewEphemeral(ctx context.Context, typ string, private []byte) (provider.Renewal, diag.List) {
	if ds := p.begin(ctx, "RenewEphemeral", typ, p.block(addr.Ephemeral, typ), cty.NilVal); ds != nil {
		return provider.Renewal{}, ds
	}
	if f := p.script.Ephemeral[typ].Renew; f != nil {
		return f(private)
	}
	return provider.Renewal{Private: private}, nil
}

// CloseEphemeral calls the script's Close.
func (p *Provider) CloseEphemeral(ctx context.Context, typ string, private []byte) diag.List {
	if ds := p.begin(ctx, "CloseEphemeral", typ, p.block(addr.Ephemeral, typ), cty.NilVal); ds != nil {
		return ds
	}
	if f := p.script.Ephemeral[typ].Close; f != nil {
		return f(private)
	}
	return nil
}

// Functions returns the script's functions.
func (p *Provider) Functions(ctx context.Context) (map[string]*schema.Function, diag.List) {
	return p.schema.Functions, p.begin(ctx, "Functions", "", p.schema.Config, cty.NilVal)
}

// CallFunction calls a function of the script.
func (p *Provider) CallFunction(ctx context.Context, name string, args []cty.Value) (cty.Value, error) {
	if ds := p.begin(ctx, "CallFunction", name, p.schema.Config, cty.NilVal); ds != nil {
		return cty.DynamicVal, ds.Err()
	}
	f := p.script.Functions[name]
	if f == nil {
		return cty.DynamicVal, missing("CallFunction", name).Err()
	}
	for i, v := range args {
		if v.ContainsMarked() {
			return cty.DynamicVal, &provider.ArgError{Arg: i, Msg: "the argument carries marks, which the caller must take off"}
		}
	}
	return f.Call(args)
}
