package testprovider

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/zclconf/go-cty/cty"
)

// identityOf is the identity of an object: its id, once it is known.
func (s *server) identityOf(typ string, obj cty.Value) *pb6.IdentityData {
	if typ != "test_object" || obj.IsNull() || !obj.GetAttr("id").IsKnown() || obj.GetAttr("id").IsNull() {
		return nil
	}
	return &pb6.IdentityData{IdentityData: encodeValue(cty.ObjectVal(map[string]cty.Value{
		"id": obj.GetAttr("id"), "region": cty.NullVal(cty.String),
	}), s.identity.ImpliedType())}
}

func (s *server) ReadResource(ctx context.Context, req *pb6.ReadRequest) (*pb6.ReadResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.ReadResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	ty := b.ImpliedType()
	v, err := decodeValue(req.CurrentState, ty)
	if err != nil {
		return nil, err
	}
	m := misbehavior(text(v, "misbehave")+","+s.settings().misbehave, "read")
	if err := m.before(); err != nil {
		return nil, err
	}
	if req.TypeName == "test_record" {
		defer s.recorded("read", text(v, "name"))()
	}
	s.sleepRead(ctx)
	if v, err = s.worldRead(req.TypeName, v, ty); err != nil {
		return nil, err
	}
	out := &pb6.ReadResponse{NewState: m.value(v, ty), Private: req.Private, Diagnostics: m.diagnostics(), Deferred: m.deferred()}
	if out.NewIdentity = req.CurrentIdentity; out.NewIdentity == nil {
		out.NewIdentity = s.identityOf(req.TypeName, v)
	}
	return out, nil
}

// sleepRead waits the provider's delay, not the object's.
func (s *server) sleepRead(ctx context.Context) { s.sleep(ctx, cty.NullVal(cty.EmptyObject)) }

func (s *server) PlanResourceChange(ctx context.Context, req *pb6.PlanRequest) (*pb6.PlanResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.PlanResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	ty := b.ImpliedType()
	prior, err := decodeValue(req.PriorState, ty)
	if err != nil {
		return nil, err
	}
	proposed, err := decodeValue(req.ProposedNewState, ty)
	if err != nil {
		return nil, err
	}
	s.sleepRead(ctx)
	if proposed.IsNull() {
		m := misbehavior(text(prior, "misbehave")+","+s.settings().misbehave, "plandestroy")
		if err := m.before(); err != nil {
			return nil, err
		}
		return &pb6.PlanResponse{PlannedState: encodeValue(proposed, ty), Diagnostics: m.diagnostics(), PlannedPrivate: req.PriorPrivate}, nil
	}
	m := misbehavior(text(proposed, "misbehave")+","+s.settings().misbehave, "plan")
	if err := m.before(); err != nil {
		return nil, err
	}
	out := &pb6.PlanResponse{
		Diagnostics: m.diagnostics(), Deferred: m.deferred(), LegacyTypeSystem: m == mLegacy,
		PlannedPrivate: []byte(`{"planned":true}`),
	}
	planned := proposed
	if req.TypeName == "test_object" {
		planned = planObject(b, prior, proposed)
		if replaces(prior, proposed) {
			out.RequiresReplace = []*pb6.Path{pathOf("force_new")}
		}
	} else {
		planned = keepOr(planned, prior, "id", cty.UnknownVal(cty.String))
	}
	out.PlannedState = m.value(planned, ty)
	s.dump("plan", req.TypeName, text(proposed, "name"), req.PriorState, req.Config, req.ProposedNewState, out.PlannedState)
	out.PlannedIdentity = s.identityOf(req.TypeName, prior)
	return out, nil
}

func replaces(prior, proposed cty.Value) bool {
	return !prior.IsNull() && !prior.GetAttr("force_new").RawEquals(proposed.GetAttr("force_new"))
}

// keepOr gives a computed attribute its prior value, or v if there is none.
func keepOr(planned, prior cty.Value, name string, v cty.Value) cty.Value {
	if !prior.IsNull() && !prior.GetAttr(name).IsNull() {
		v = prior.GetAttr(name)
	}
	return with(planned, name, v)
}

// planObject plans a test_object: out follows name, wo_length is counted anew
// when wo_version changes, everything else computed is set once.
func planObject(b *schema.Block, prior, proposed cty.Value) cty.Value {
	proposed = b.StripWriteOnly(proposed) // as the protocol asks of a plan
	p := keepOr(proposed, prior, "id", cty.UnknownVal(cty.String))
	if p.GetAttr("serial").IsNull() {
		p = keepOr(p, prior, "serial", cty.UnknownVal(cty.Number))
	}
	if prior.IsNull() || !prior.GetAttr("name").RawEquals(proposed.GetAttr("name")) {
		p = with(p, "out", cty.UnknownVal(cty.String))
	}
	if prior.IsNull() || !prior.GetAttr("wo_version").RawEquals(proposed.GetAttr("wo_version")) {
		p = with(p, "wo_length", cty.UnknownVal(cty.Number))
	}
	return eachNested(b, p, func(e cty.Value, attr string) cty.Value {
		if e.GetAttr(attr).IsNull() {
			return with(e, attr, cty.UnknownVal(e.GetAttr(attr).Type()))
		}
		return e
	})
}

// eachNested changes the objects that have a computed attribute: items, tags and meta.
func eachNested(b *schema.Block, obj cty.Value, change func(e cty.Value, attr string) cty.Value) cty.Value {
	for name, attr := range map[string]string{"item": "id", "tag": "id", "meta": "size"} {
		if b.Blocks[name] == nil && b.Attributes[name] == nil {
			continue
		}
		v := obj.GetAttr(name)
		if v.IsNull() || !v.IsKnown() || v.LengthInt() == 0 {
			continue
		}
		var out []cty.Value
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			if !e.IsNull() && e.IsKnown() {
				e = change(e, attr)
			}
			out = append(out, e)
		}
		if v.Type().IsSetType() {
			obj = with(obj, name, cty.SetVal(out))
		} else {
			obj = with(obj, name, cty.ListVal(out))
		}
	}
	return obj
}

func (s *server) ApplyResourceChange(ctx context.Context, req *pb6.ApplyRequest) (*pb6.ApplyResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.ApplyResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	ty := b.ImpliedType()
	prior, err := decodeValue(req.PriorState, ty)
	if err != nil {
		return nil, err
	}
	planned, err := decodeValue(req.PlannedState, ty)
	if err != nil {
		return nil, err
	}
	config, err := decodeValue(req.Config, ty)
	if err != nil {
		return nil, err
	}
	op, obj := "update", planned
	switch {
	case planned.IsNull():
		op, obj = "destroy", prior
	case prior.IsNull():
		op = "create"
	}
	if req.TypeName == "test_record" {
		defer s.recorded(op, text(obj, "name"))()
	}
	m := misbehavior(text(obj, "misbehave")+","+s.settings().misbehave, op, "apply")
	if err := m.before(); err != nil {
		return nil, err
	}
	out := &pb6.ApplyResponse{Diagnostics: m.diagnostics(), LegacyTypeSystem: m == mLegacy, Private: []byte(`{"applied":"` + op + `"}`)}
	if !s.sleep(ctx, obj) {
		out.NewState, out.Diagnostics = encodeValue(prior, ty), problem("Stopped", "The test provider was stopped.")
		return out, nil
	}
	result := planned
	if op != "destroy" {
		result = s.realize(req.TypeName, b, planned, config)
	}
	if m == mError {
		result = prior
	}
	if err := s.worldWrite(req.TypeName, prior, result, ty); err != nil {
		return nil, err
	}
	if m == mError {
		out.NewState = encodeValue(prior, ty)
		return out, nil
	}
	out.NewState = m.value(result, ty)
	s.dump("apply", req.TypeName, text(obj, "name"), req.PriorState, req.Config, req.PlannedState, out.NewState)
	out.NewIdentity = s.identityOf(req.TypeName, result)
	return out, nil
}

// realize gives the unknown parts of a planned object their values.
func (s *server) realize(typ string, b *schema.Block, planned, config cty.Value) cty.Value {
	name := text(planned, "name")
	set := func(attr string, v cty.Value) {
		if !planned.GetAttr(attr).IsKnown() {
			planned = with(planned, attr, v)
		}
	}
	set("id", cty.StringVal(s.settings().prefix+"id-"+name))
	if typ != "test_object" {
		return planned
	}
	set("serial", cty.NumberIntVal(int64(len(name))))
	set("out", cty.StringVal(s.settings().prefix+"out-"+name))
	set("wo_length", cty.NumberIntVal(int64(len(text(config, "wo")))))
	planned = eachNested(b, planned, func(e cty.Value, attr string) cty.Value {
		switch {
		case e.GetAttr(attr).IsKnown():
			return e
		case attr == "size":
			return with(e, attr, cty.NumberIntVal(int64(len(text(e, "key")))))
		}
		return with(e, attr, cty.StringVal("id-"+text(e, "key")))
	})
	return planned
}

func (s *server) ImportResourceState(_ context.Context, req *pb6.ImportRequest) (*pb6.ImportResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.ImportResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	id := req.Id
	if req.Identity != nil {
		v, err := decodeValue(req.Identity.IdentityData, s.identity.ImpliedType())
		if err != nil {
			return nil, err
		}
		id = text(v, "id")
	}
	m := misbehavior(s.settings().misbehave, "import")
	if err := m.before(); err != nil {
		return nil, err
	}
	out := &pb6.ImportResponse{Diagnostics: m.diagnostics(), Deferred: m.deferred()}
	switch id {
	case "missing":
		out.Diagnostics = problem("No such object", fmt.Sprintf("There is no object with the id %q.", id))
		return out, nil
	case "none":
		return out, nil
	case "strange":
		out.ImportedResources = []*pb6.ImportedResource{{TypeName: "test_strange"}}
		return out, nil
	}
	v := with(with(b.Empty(), "id", cty.StringVal(id)), "name", cty.StringVal(id))
	out.ImportedResources = []*pb6.ImportedResource{{
		TypeName: req.TypeName, State: m.value(v, b.ImpliedType()), Private: []byte(`{"imported":true}`), Identity: s.identityOf(req.TypeName, v),
	}}
	return out, nil
}

func (s *server) GenerateResourceConfig(_ context.Context, req *pb6.GenerateRequest) (*pb6.GenerateResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.GenerateResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	v, err := decodeValue(req.State, b.ImpliedType())
	if err != nil {
		return nil, err
	}
	for name, a := range b.Attributes {
		if !a.Optional && !a.Required {
			v = with(v, name, cty.NullVal(a.Type))
		}
	}
	return &pb6.GenerateResponse{Config: encodeValue(v, b.ImpliedType())}, nil
}
