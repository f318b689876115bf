package rpc

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// UpgradeState converts stored attributes to the current schema.
func (c *Client) UpgradeState(ctx context.Context, req provider.UpgradeRequest) (cty.Value, diag.List) {
	w := call{"read the stored state of", req.Type}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	ty := r.Block.ImpliedType()
	resp, err := c.rpc.UpgradeResourceState(ctx, &pb6.UpgradeRequest{
		TypeName: req.Type, Version: req.Version, Raw: &pb6.RawState{Json: req.JSON, Flatmap: req.Flat},
	})
	if err != nil {
		return cty.UnknownVal(ty), c.failed(ctx, w, err)
	}
	var d dec
	v := d.value("state", resp.UpgradedState, s.codec(r.Block), cty.UnknownVal(ty))
	return v, c.answer(w, resp.Diagnostics, &d)
}

// UpgradeIdentity converts a stored identity to the current schema.
func (c *Client) UpgradeIdentity(ctx context.Context, typ string, version int64, json []byte) (cty.Value, diag.List) {
	w := call{"read the stored identity of", typ}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return cty.NilVal, ds
	}
	if r.Identity == nil {
		return cty.NilVal, c.refused(w, fmt.Errorf("the type has no identity"))
	}
	resp, err := c.rpc.UpgradeResourceIdentity(ctx, &pb6.UpgradeRequest{TypeName: typ, Version: version, Raw: &pb6.RawState{Json: json}})
	if err != nil {
		return cty.NilVal, c.failed(ctx, w, err)
	}
	var d dec
	v := d.value("identity", resp.UpgradedIdentity.GetIdentityData(), s.codec(r.Identity), cty.NilVal)
	return v, c.answer(w, resp.Diagnostics, &d)
}

// Read reads the current state of an object.
func (c *Client) Read(ctx context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	w := call{"read", req.Type}
	out := provider.ReadResponse{State: req.Prior, Private: req.Private, Identity: req.Identity}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return out, ds
	}
	of := s.codec(r.Block)
	var e enc
	msg := &pb6.ReadRequest{
		TypeName: req.Type, CurrentState: e.value("state", req.Prior, of), Private: req.Private,
		ProviderMeta: e.meta(req.Meta, s), CurrentIdentity: e.identity(req.Identity, s, r), ClientCapabilities: deferrable(ctx),
	}
	if e.err != nil {
		return out, c.refused(w, e.err)
	}
	resp, err := c.rpc.ReadResource(ctx, msg)
	if err != nil {
		return out, c.failed(ctx, w, err)
	}
	if off, ds := c.deferred(ctx, w, resp.Deferred); off {
		return out, ds
	}
	var d dec
	out.State = d.object("state", resp.NewState, of, req.Prior, sent{msg.CurrentState, req.Prior})
	out.Identity = d.identity(resp.NewIdentity, s, r)
	out.Private = resp.Private
	return out, c.answer(w, resp.Diagnostics, &d)
}

// Plan plans a change of an object.
func (c *Client) Plan(ctx context.Context, req provider.PlanRequest) (provider.PlanResponse, diag.List) {
	w := call{"plan", req.Type}
	out := provider.PlanResponse{Planned: req.Prior, Private: req.Private, Identity: req.PriorIdentity}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return out, ds
	}
	of := s.codec(r.Block)
	var e enc
	msg := &pb6.PlanRequest{
		TypeName: req.Type, PriorState: e.value("prior state", req.Prior, of), Config: e.value("configuration", req.Config, of),
		ProposedNewState: e.value("proposed state", req.Proposed, of), PriorPrivate: req.Private, ProviderMeta: e.meta(req.Meta, s), PriorIdentity: e.identity(req.PriorIdentity, s, r),
		ClientCapabilities: deferrable(ctx),
	}
	if e.err != nil {
		return out, c.refused(w, e.err)
	}
	resp, err := c.rpc.PlanResourceChange(ctx, msg)
	if err != nil {
		return out, c.failed(ctx, w, err)
	}
	if off, ds := c.deferred(ctx, w, resp.Deferred); off {
		return out, ds
	}
	var d dec
	out.Planned = d.object("planned state", resp.PlannedState, of, req.Prior, sent{msg.PriorState, req.Prior}, sent{msg.ProposedNewState, req.Proposed})
	out.Identity = d.identity(resp.PlannedIdentity, s, r)
	out.Private, out.Legacy = resp.PlannedPrivate, resp.LegacyTypeSystem
	for _, p := range resp.RequiresReplace {
		if path := toPath(p); len(path) > 0 {
			out.RequiresReplace = append(out.RequiresReplace, path)
		}
	}
	return out, c.answer(w, resp.Diagnostics, &d)
}

// Apply applies the planned change of an object.
func (c *Client) Apply(ctx context.Context, req provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
	w := call{applyVerb(req), req.Type}
	out := provider.ApplyResponse{State: req.Prior, Private: req.Private, Identity: req.PlannedIdentity}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return out, ds
	}
	of := s.codec(r.Block)
	var e enc
	msg := &pb6.ApplyRequest{
		TypeName: req.Type, PriorState: e.value("prior state", req.Prior, of), PlannedState: e.value("planned state", req.Planned, of),
		Config: e.value("configuration", req.Config, of), PlannedPrivate: req.Private, ProviderMeta: e.meta(req.Meta, s),
		PlannedIdentity: e.identity(req.PlannedIdentity, s, r),
	}
	if e.err != nil {
		return out, c.refused(w, e.err)
	}
	resp, err := c.rpc.ApplyResourceChange(ctx, msg)
	if err != nil {
		return out, c.failed(ctx, w, err)
	}
	var d dec
	out.State = d.object("state", resp.NewState, of, req.Prior, sent{msg.PlannedState, req.Planned})
	out.Identity = d.identity(resp.NewIdentity, s, r)
	out.Private, out.Legacy = resp.Private, resp.LegacyTypeSystem
	return out, c.answer(w, resp.Diagnostics, &d)
}

func applyVerb(req provider.ApplyRequest) string {
	switch {
	case req.Planned.IsNull():
		return "destroy"
	case req.Prior.IsNull():
		return "create"
	default:
		return "update"
	}
}

// Import returns existing objects for an ID or identity.
func (c *Client) Import(ctx context.Context, req provider.ImportRequest) ([]provider.Imported, diag.List) {
	w := call{"import", req.Type}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return nil, ds
	}
	var e enc
	msg := &pb6.ImportRequest{TypeName: req.Type, Id: req.ID, Identity: e.identity(req.Identity, s, r), ClientCapabilities: deferrable(ctx)}
	if e.err != nil {
		return nil, c.refused(w, e.err)
	}
	resp, err := c.rpc.ImportResourceState(ctx, msg)
	if err != nil {
		return nil, c.failed(ctx, w, err)
	}
	if off, ds := c.deferred(ctx, w, resp.Deferred); off {
		return nil, ds
	}
	var d dec
	var out []provider.Imported
	for _, obj := range resp.ImportedResources {
		typ := obj.GetTypeName()
		or, err := s.resource(addr.Managed, typ)
		if err != nil {
			return nil, append(c.messages(w, resp.Diagnostics), c.nonsense(w, "it answered with an object of type %s: %s", quoteShort(typ), err)...)
		}
		ty := or.Block.ImpliedType()
		out = append(out, provider.Imported{
			Type: typ, State: d.value("imported object", obj.GetState(), s.codec(or.Block), cty.NullVal(ty)),
			Private: obj.GetPrivate(), Identity: d.identity(obj.GetIdentity(), s, or),
		})
	}
	return out, c.answer(w, resp.Diagnostics, &d)
}

// Move converts an object of another type.
func (c *Client) Move(ctx context.Context, req provider.MoveRequest) (provider.MoveResponse, diag.List) {
	w := call{fmt.Sprintf("make of an object of type %s one of type", req.SourceType), req.TargetType}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return provider.MoveResponse{State: cty.DynamicVal}, ds
	}
	ty := r.Block.ImpliedType()
	msg := &pb6.MoveRequest{
		SourceProviderAddress: req.SourceProvider.String(), SourceTypeName: req.SourceType, SourceSchemaVersion: req.SourceVersion,
		SourceState: &pb6.RawState{Json: req.SourceJSON}, TargetTypeName: req.TargetType, SourcePrivate: req.SourcePrivate,
		SourceIdentitySchemaVersion: req.SourceIdentityVersion,
	}
	if len(req.SourceIdentityJSON) > 0 {
		msg.SourceIdentity = &pb6.RawState{Json: req.SourceIdentityJSON}
	}
	resp, err := c.rpc.MoveResourceState(ctx, msg)
	if err != nil {
		return provider.MoveResponse{State: cty.UnknownVal(ty)}, c.failed(ctx, w, err)
	}
	var d dec
	out := provider.MoveResponse{
		State:   d.value("state", resp.TargetState, s.codec(r.Block), cty.UnknownVal(ty)),
		Private: resp.TargetPrivate, Identity: d.identity(resp.TargetIdentity, s, r),
	}
	return out, c.answer(w, resp.Diagnostics, &d)
}
