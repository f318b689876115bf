package testprovider

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// identityOf returns the identity of an object: its id, if that is known.
func (s *server) identityOf(typ string, obj cty.Value) *pb6.IdentityData {
	if typ != "test_object" || obj.IsNull() || !obj.GetAttr("id").IsKnown() || obj.GetAttr("id").IsNull() {
		return nil
	}
	return &pb6.IdentityData{IdentityData: encodeValue(cty.ObjectVal(map[string]cty.Value{
		"id": obj.GetAttr("id"), "region": cty.NullVal(cty.String),
	}), s.codec(s.identity))}
}

func (s *server) ReadResource(ctx context.Context, req *pb6.ReadRequest) (*pb6.ReadResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.ReadResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	of := s.codec(b)
	v, err := decodeValue(req.CurrentState, of)
	if err != nil {
		return nil, err
	}
	m := s.awaited(misbehavior(s.fault(v), "read"), req.ClientCapabilities)
	if err := m.before(); err != nil {
		return nil, err
	}
	if req.TypeName == "test_record" {
		defer s.recorded("read", text(v, "name"))()
	}
	s.sleepRead(ctx)
	if v, err = s.worldRead(req.TypeName, v, b.ImpliedType()); err != nil {
		return nil, err
	}
	out := &pb6.ReadResponse{NewState: m.value(v, of), Private: req.Private, Diagnostics: m.diagnostics(), Deferred: m.deferred()}
	if out.NewIdentity = req.CurrentIdentity; out.NewIdentity == nil {
		out.NewIdentity = s.identityOf(req.TypeName, v)
	}
	return out, nil
}

// sleepRead waits for the provider's delay, not for the object's.
func (s *server) sleepRead(ctx context.Context) { s.sleep(ctx, cty.NullVal(cty.EmptyObject)) }

func (s *server) PlanResourceChange(ctx context.Context, req *pb6.PlanRequest) (*pb6.PlanResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.PlanResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	of := s.codec(b)
	prior, err := decodeValue(req.PriorState, of)
	if err != nil {
		return nil, err
	}
	proposed, err := decodeValue(req.ProposedNewState, of)
	if err != nil {
		return nil, err
	}
	s.sleepRead(ctx)
	if proposed.IsNull() {
		m := misbehavior(s.fault(prior), "plandestroy")
		if err := m.before(); err != nil {
			return nil, err
		}
		return &pb6.PlanResponse{PlannedState: encodeValue(proposed, of), Diagnostics: m.diagnostics(), PlannedPrivate: req.PriorPrivate}, nil
	}
	m := s.awaited(misbehavior(s.fault(proposed), "plan"), req.ClientCapabilities)
	if err := m.before(); err != nil {
		return nil, err
	}
	out := &pb6.PlanResponse{
		Diagnostics: m.diagnostics(), Deferred: m.deferred(), LegacyTypeSystem: m == mLegacy,
		PlannedPrivate: []byte(`{"planned":true}`),
	}
	planned := proposed
	if s.resources[req.TypeName] != nil {
		planned = planThing(b, prior, proposed)
	} else if req.TypeName == "test_object" {
		planned = planObject(b, prior, proposed)
		if replaces(prior, proposed) {
			out.RequiresReplace = []*pb6.Path{pathOf("force_new")}
		}
	} else {
		d := draft{of: proposed}
		d.keepOr(prior, "id", cty.UnknownVal(cty.String))
		for _, name := range grouped[req.TypeName] {
			if d.get(name).IsNull() {
				d.keepOr(prior, name, cty.UnknownVal(b.Attributes[name].Type))
			}
		}
		planned = d.value()
	}
	out.PlannedState = m.value(planned, of)
	s.dump("plan", req.TypeName, text(proposed, "name"), req.PriorState, req.Config, req.ProposedNewState, out.PlannedState)
	out.PlannedIdentity = s.identityOf(req.TypeName, prior)
	return out, nil
}

// grouped maps a type to the attributes that the provider sets if the configuration does
// not, with an entry of another team.
var grouped = map[string][]string{"test_group": {"rules", "entries"}}

// others returns the value that the provider sets for an attribute in grouped.
func others(ty cty.Type) cty.Value {
	entry := map[string]cty.Value{}
	for name, aty := range ty.ElementType().AttributeTypes() {
		entry[name] = cty.NullVal(aty)
	}
	entry["key"] = cty.StringVal("another team")
	if ty.IsSetType() {
		return cty.SetVal([]cty.Value{cty.ObjectVal(entry)})
	}
	return cty.ListVal([]cty.Value{cty.ObjectVal(entry)})
}

func replaces(prior, proposed cty.Value) bool {
	return !prior.IsNull() && !prior.GetAttr("force_new").RawEquals(proposed.GetAttr("force_new"))
}

// A draft is an object whose attributes are changed one by one. The changed object is
// created once.
type draft struct {
	of    cty.Value
	attrs map[string]cty.Value // nil: no change
}

func (d *draft) get(name string) cty.Value {
	if d.attrs != nil {
		return d.attrs[name]
	}
	return d.of.GetAttr(name)
}

func (d *draft) set(name string, v cty.Value) {
	if d.attrs == nil {
		d.attrs = d.of.AsValueMap()
	}
	d.attrs[name] = v
}

func (d *draft) value() cty.Value {
	if d.attrs == nil {
		return d.of
	}
	return cty.ObjectVal(d.attrs)
}

// keepOr sets a computed attribute to its prior value, or to v if there is none.
func (d *draft) keepOr(prior cty.Value, name string, v cty.Value) {
	if !prior.IsNull() && !prior.GetAttr(name).IsNull() {
		v = prior.GetAttr(name)
	}
	d.set(name, v)
}

// planObject plans a test_object: out depends on name, wo_length is computed again when
// wo_version changes, and all other computed attributes are set once.
func planObject(b *schema.Block, prior, proposed cty.Value) cty.Value {
	proposed = b.StripWriteOnly(proposed) // as the protocol requires of a plan
	p := draft{of: proposed}
	p.keepOr(prior, "id", cty.UnknownVal(cty.String))
	if p.get("serial").IsNull() {
		p.keepOr(prior, "serial", cty.UnknownVal(cty.Number))
	}
	if prior.IsNull() || !prior.GetAttr("name").RawEquals(proposed.GetAttr("name")) {
		p.set("out", cty.UnknownVal(cty.String))
	}
	if prior.IsNull() || !prior.GetAttr("wo_version").RawEquals(proposed.GetAttr("wo_version")) {
		p.set("wo_length", cty.UnknownVal(cty.Number))
	}
	eachNested(b, &p, func(e cty.Value, attr string) cty.Value {
		if e.GetAttr(attr).IsNull() {
			return with(e, attr, cty.UnknownVal(e.GetAttr(attr).Type()))
		}
		return e
	})
	return p.value()
}

// eachNested changes the nested objects with a computed attribute: items, tags and meta.
func eachNested(b *schema.Block, obj *draft, change func(e cty.Value, attr string) cty.Value) {
	for name, attr := range map[string]string{"item": "id", "tag": "id", "meta": "size"} {
		if b.Blocks[name] == nil && b.Attributes[name] == nil {
			continue
		}
		v := obj.get(name)
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
			obj.set(name, cty.SetVal(out))
		} else {
			obj.set(name, cty.ListVal(out))
		}
	}
}

func (s *server) ApplyResourceChange(ctx context.Context, req *pb6.ApplyRequest) (*pb6.ApplyResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.ApplyResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	of := s.codec(b)
	prior, err := decodeValue(req.PriorState, of)
	if err != nil {
		return nil, err
	}
	planned, err := decodeValue(req.PlannedState, of)
	if err != nil {
		return nil, err
	}
	config, err := decodeValue(req.Config, of)
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
	m := misbehavior(s.fault(obj), op, "apply")
	if err := m.before(); err != nil {
		return nil, err
	}
	out := &pb6.ApplyResponse{Diagnostics: m.diagnostics(), LegacyTypeSystem: m == mLegacy, Private: []byte(`{"applied":"` + op + `"}`)}
	if !s.sleep(ctx, obj) {
		out.NewState, out.Diagnostics = encodeValue(prior, of), problem("Stopped", "The test provider was stopped.")
		return out, nil
	}
	result := planned
	if op != "destroy" {
		result = s.realize(req.TypeName, b, planned, config)
	}
	if m == mError {
		result = prior
	}
	if err := s.worldWrite(req.TypeName, prior, result, b.ImpliedType()); err != nil {
		return nil, err
	}
	if m == mError {
		out.NewState = encodeValue(prior, of)
		return out, nil
	}
	out.NewState = m.value(result, of)
	s.dump("apply", req.TypeName, text(obj, "name"), req.PriorState, req.Config, req.PlannedState, out.NewState)
	out.NewIdentity = s.identityOf(req.TypeName, result)
	return out, nil
}

// realize replaces the unknown parts of a planned object by values.
func (s *server) realize(typ string, b *schema.Block, planned, config cty.Value) cty.Value {
	if s.resources[typ] != nil {
		return realizeThing(b, planned)
	}
	name := text(planned, "name")
	d := draft{of: planned}
	set := func(attr string, v cty.Value) {
		if !planned.GetAttr(attr).IsKnown() {
			d.set(attr, v)
		}
	}
	set("id", cty.StringVal(s.settings().prefix+"id-"+name))
	for _, attr := range grouped[typ] {
		set(attr, others(b.Attributes[attr].Type))
	}
	if typ != "test_object" {
		return d.value()
	}
	set("serial", cty.NumberIntVal(int64(len(name))))
	set("out", cty.StringVal(s.settings().prefix+"out-"+name))
	set("wo_length", cty.NumberIntVal(int64(len(text(config, "wo")))))
	eachNested(b, &d, func(e cty.Value, attr string) cty.Value {
		switch {
		case e.GetAttr(attr).IsKnown():
			return e
		case attr == "size":
			return with(e, attr, cty.NumberIntVal(int64(len(text(e, "key")))))
		}
		return with(e, attr, cty.StringVal("id-"+text(e, "key")))
	})
	return d.value()
}

func (s *server) ImportResourceState(_ context.Context, req *pb6.ImportRequest) (*pb6.ImportResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.ImportResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	id := req.Id
	if req.Identity != nil {
		v, err := decodeValue(req.Identity.IdentityData, s.codec(s.identity))
		if err != nil {
			return nil, err
		}
		id = text(v, "id")
	}
	m := s.awaited(misbehavior(s.settings().misbehave, "import"), req.ClientCapabilities)
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
		TypeName: req.TypeName, State: m.value(v, s.codec(b)), Private: []byte(`{"imported":true}`), Identity: s.identityOf(req.TypeName, v),
	}}
	return out, nil
}

func (s *server) GenerateResourceConfig(_ context.Context, req *pb6.GenerateRequest) (*pb6.GenerateResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.GenerateResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	v, err := decodeValue(req.State, s.codec(b))
	if err != nil {
		return nil, err
	}
	for name, a := range b.Attributes {
		if !a.Optional && !a.Required {
			v = with(v, name, cty.NullVal(a.Type))
		}
	}
	return &pb6.GenerateResponse{Config: encodeValue(v, s.codec(b))}, nil
}
