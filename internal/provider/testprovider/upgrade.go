package testprovider

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// UpgradeResourceState upgrades stored attributes. Version 0 of test_object had title
// instead of name, and version 1 had a bool instead of the number. Attributes that do not
// exist any more are dropped.
func (s *server) UpgradeResourceState(_ context.Context, req *pb6.UpgradeRequest) (*pb6.UpgradeResponse, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.UpgradeResponse{Diagnostics: unknownType(req.TypeName)}, nil
	}
	fields := map[string]json.RawMessage{}
	if len(req.Raw.GetJson()) > 0 {
		if err := json.Unmarshal(req.Raw.Json, &fields); err != nil {
			return &pb6.UpgradeResponse{Diagnostics: problem("Unreadable state", err.Error())}, nil
		}
	}
	for k, v := range req.Raw.GetFlatmap() {
		if a := b.Attributes[k]; a != nil && a.Type.IsPrimitiveType() {
			fields[k] = must(json.Marshal(v))
		}
	}
	if req.TypeName == "test_object" {
		if req.Version < 1 && fields["title"] != nil {
			fields["name"] = fields["title"]
		}
		if on, err := strconv.ParseBool(string(fields["number"])); req.Version < 2 && err == nil {
			fields["number"] = json.RawMessage("0")
			if on {
				fields["number"] = json.RawMessage("1")
			}
		}
		if req.Version > objectVersion {
			return &pb6.UpgradeResponse{Diagnostics: problem("State is too new", "The state has a schema version that this provider does not know.")}, nil
		}
	}
	v, err := fromFields(b, fields)
	if err != nil {
		return &pb6.UpgradeResponse{Diagnostics: problem("Unreadable state", err.Error())}, nil
	}
	m := misbehavior(s.fault(v), "upgrade")
	if err := m.before(); err != nil {
		return nil, err
	}
	return &pb6.UpgradeResponse{UpgradedState: m.value(v, s.codec(b)), Diagnostics: m.diagnostics()}, nil
}

// fromFields returns an object from JSON fields. Missing attributes are null, and unknown
// ones are dropped.
func fromFields(b *schema.Block, fields map[string]json.RawMessage) (cty.Value, error) {
	loose := map[string]cty.Value{}
	for name, ty := range b.ImpliedType().AttributeTypes() {
		raw, ok := fields[name]
		if !ok || string(raw) == "null" {
			continue
		}
		v, err := ctyjson.Unmarshal(raw, ty)
		if err != nil && ty.IsPrimitiveType() {
			var text string
			if json.Unmarshal(raw, &text) == nil {
				v, err = cty.StringVal(text), nil
			}
		}
		if err != nil {
			return cty.NilVal, err
		}
		loose[name] = v
	}
	for name, a := range b.Attributes {
		if _, ok := loose[name]; !ok && a.Required {
			loose[name] = cty.NullVal(a.Type)
		}
	}
	return b.Coerce(cty.ObjectVal(loose))
}

// UpgradeResourceIdentity upgrades a stored identity. Version 0 had key instead of id.
func (s *server) UpgradeResourceIdentity(_ context.Context, req *pb6.UpgradeRequest) (*pb6.UpgradeIdentityResponse, error) {
	fields := map[string]string{}
	if err := json.Unmarshal(req.Raw.GetJson(), &fields); err != nil {
		return &pb6.UpgradeIdentityResponse{Diagnostics: problem("Unreadable identity", err.Error())}, nil
	}
	id := fields["id"]
	if req.Version < 1 {
		id = fields["key"]
	}
	v := cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(id), "region": cty.NullVal(cty.String)})
	return &pb6.UpgradeIdentityResponse{UpgradedIdentity: &pb6.IdentityData{IdentityData: encodeValue(v, s.codec(s.identity))}}, nil
}

// MoveResourceState converts a test_record of this provider, or a null_resource of any
// provider, to a test_object.
func (s *server) MoveResourceState(_ context.Context, req *pb6.MoveRequest) (*pb6.MoveResponse, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(req.SourceState.GetJson(), &fields); err != nil {
		return &pb6.MoveResponse{Diagnostics: problem("Unreadable state", err.Error())}, nil
	}
	known := req.SourceTypeName == "test_record" && req.SourceProviderAddress == Addr.String() || req.SourceTypeName == "null_resource"
	if req.TargetTypeName != "test_object" || !known {
		return &pb6.MoveResponse{Diagnostics: problem("Cannot move", "A "+req.SourceTypeName+" cannot become a "+req.TargetTypeName+".")}, nil
	}
	kept := map[string]json.RawMessage{}
	for _, name := range []string{"id", "name"} {
		if v, ok := fields[name]; ok {
			kept[name] = v
		}
	}
	v, err := fromFields(s.object, kept)
	if err != nil {
		return nil, err
	}
	m := misbehavior(s.settings().misbehave, "move")
	if err := m.before(); err != nil {
		return nil, err
	}
	return &pb6.MoveResponse{
		TargetState: m.value(v, s.codec(s.object)), TargetPrivate: req.SourcePrivate, Diagnostics: m.diagnostics(),
		TargetIdentity: s.identityOf("test_object", v),
	}, nil
}
