package builtin

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// terraform_data (reference section 6.5): id is generated at creation. output is the input
// at the last apply. A change of triggers_replace replaces the object, and a change of
// input updates it. Output has the type of input, so the type differs between objects, and
// values are built from their attributes. store.go describes the store block.

var (
	unknownID = cty.UnknownVal(cty.String).RefineNotNull()
	nullValue = cty.NullVal(cty.DynamicPseudoType)
)

// object returns an object. store is cty.NilVal if the schema does not have the store block.
func object(id, input, output, triggers, store cty.Value) cty.Value {
	attrs := map[string]cty.Value{
		"id":               id,
		"input":            input,
		"output":           output,
		"triggers_replace": triggers,
	}
	if store != cty.NilVal {
		attrs["store"] = store
	}
	return cty.ObjectVal(attrs)
}

// Read returns the stored object, which only Terrace can change.
func (p *Provider) Read(_ context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	resp := provider.ReadResponse{State: req.Prior, Private: req.Private}
	if req.Type != dataType {
		return resp, unknownType(0, req.Type)
	}
	return resp, p.check()
}

// Plan plans terraform_data.
func (p *Provider) Plan(_ context.Context, req provider.PlanRequest) (provider.PlanResponse, diag.List) {
	resp := provider.PlanResponse{Planned: req.Proposed, Private: req.Private}
	if req.Type != dataType {
		return resp, unknownType(0, req.Type)
	}
	if p.closed.Load() || req.Proposed.IsNull() {
		return resp, p.check()
	}
	input, triggers := req.Proposed.GetAttr("input"), req.Proposed.GetAttr("triggers_replace")
	if req.Prior.IsNull() {
		resp.Planned = object(unknownID, input, output(input), triggers, p.newStore(req.Config))
		return resp, nil
	}
	store, replace := p.planStore(req.Prior, req.Config)
	if !same(req.Prior.GetAttr("triggers_replace"), triggers) {
		resp.RequiresReplace = append(resp.RequiresReplace, cty.GetAttrPath("triggers_replace"))
	}
	resp.RequiresReplace = append(resp.RequiresReplace, replace...)
	if len(resp.RequiresReplace) > 0 {
		resp.Planned = object(unknownID, input, output(input), triggers, p.newStore(req.Config))
		return resp, nil
	}
	newInput := !same(req.Prior.GetAttr("input"), input)
	if !newInput && (store == cty.NilVal || same(req.Prior.GetAttr("store"), store)) {
		resp.Planned = req.Prior // keeps id and output
		return resp, nil
	}
	out := req.Prior.GetAttr("output")
	if newInput {
		out = cty.UnknownVal(input.Type())
	}
	resp.Planned = object(req.Proposed.GetAttr("id"), input, out, triggers, store)
	return resp, nil
}

// output returns the planned output of a new object.
func output(input cty.Value) cty.Value {
	if input.IsKnown() && input.IsNull() {
		return input
	}
	return cty.UnknownVal(input.Type())
}

func same(a, b cty.Value) bool {
	if a.Type() == cty.String && b.Type() == cty.String && a.IsKnown() && b.IsKnown() && !a.IsNull() && !b.IsNull() {
		return a.AsString() == b.AsString()
	}
	return value.Same(a, b)
}

// Apply creates, updates or deletes terraform_data, which exists in state only.
func (p *Provider) Apply(_ context.Context, req provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
	resp := provider.ApplyResponse{State: req.Prior, Private: req.Private}
	if req.Type != dataType {
		return resp, unknownType(0, req.Type)
	}
	if p.closed.Load() {
		return resp, p.check()
	}
	resp.State, resp.Private = req.Planned, req.Private
	if req.Planned.IsNull() {
		return resp, nil
	}
	id, input, out := req.Planned.GetAttr("id"), req.Planned.GetAttr("input"), req.Planned.GetAttr("output")
	store := p.applyStore(req.Planned, req.Config)
	if id.IsKnown() && out.IsKnown() && store == cty.NilVal {
		return resp, nil
	}
	if !id.IsKnown() {
		id = cty.StringVal(uuid.NewString())
	}
	if !out.IsKnown() {
		out = input
	}
	resp.State = object(id, input, out, req.Planned.GetAttr("triggers_replace"), store)
	return resp, nil
}

// Import accepts any identifier except "".
func (p *Provider) Import(_ context.Context, req provider.ImportRequest) ([]provider.Imported, diag.List) {
	switch {
	case p.closed.Load():
		return nil, p.check()
	case req.Type != dataType:
		return nil, unknownType(0, req.Type)
	case req.ID == "":
		return nil, diag.Errorf(diag.CodeProviderImportNeedsId, nil, "Import needs an id", "An object of type terraform_data is imported by its id, which must not be empty.")
	}
	v := object(cty.StringVal(req.ID), nullValue, nullValue, nullValue, p.noStore())
	return []provider.Imported{{Type: dataType, State: v}}, nil
}

// Move converts objects of type null_resource: triggers becomes triggers_replace.
func (p *Provider) Move(_ context.Context, req provider.MoveRequest) (provider.MoveResponse, diag.List) {
	if p.closed.Load() {
		return provider.MoveResponse{}, p.check()
	}
	if req.TargetType != dataType || req.SourceType != "null_resource" || req.SourceProvider.Type != "null" {
		return provider.MoveResponse{}, diag.Errorf(diag.CodePlanMoves, nil, "Unsupported move",
			"The built-in provider cannot turn an object of type %q into one of type %q. A terraform_data object can be made of a null_resource only.", req.SourceType, req.TargetType)
	}
	var old struct {
		ID       *string         `json:"id"`
		Triggers json.RawMessage `json:"triggers"`
	}
	err := json.Unmarshal(req.SourceJSON, &old)
	id, triggers := cty.NullVal(cty.String), nullValue
	if err == nil && old.ID != nil {
		id = cty.StringVal(*old.ID)
	}
	if err == nil && len(old.Triggers) > 0 && string(old.Triggers) != "null" {
		var ty cty.Type
		if ty, err = ctyjson.ImpliedType(old.Triggers); err == nil {
			triggers, err = ctyjson.Unmarshal(old.Triggers, ty)
		}
	}
	if err != nil {
		return provider.MoveResponse{}, diag.Errorf(diag.CodeProviderMovedObject, nil, "Cannot read the object to be moved", "The stored attributes of the null_resource cannot be read: %s.", err)
	}
	return provider.MoveResponse{State: object(id, nullValue, nullValue, triggers, p.noStore()), Private: req.SourcePrivate}, nil
}
