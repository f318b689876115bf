package testprovider

import (
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb5"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"google.golang.org/protobuf/proto"
)

// must panics on an error, which can only be a bug of the test provider.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func typeJSON(ty cty.Type) []byte { return must(ctyjson.MarshalType(ty)) }

// encodeSchema encodes a schema for the protocol.
func encodeSchema(protocol int, version int64, b *schema.Block) []byte {
	if protocol == 5 {
		return must(proto.Marshal(&pb5.Schema{Version: version, Block: encodeBlock5(b)}))
	}
	return must(proto.Marshal(&pb6.Schema{Version: version, Block: encodeBlock(b)}))
}

var nestings = map[schema.Nesting]pb6.Nesting{
	schema.Single: pb6.Nesting_SINGLE, schema.Group: pb6.Nesting_GROUP, schema.List: pb6.Nesting_LIST, schema.Set: pb6.Nesting_SET, schema.Map: pb6.Nesting_MAP,
}

func encodeBlock(b *schema.Block) *pb6.Block {
	out := &pb6.Block{Description: b.Description, Deprecated: b.Deprecated != "", Attributes: encodeAttributes(b.Attributes)}
	for name, nb := range b.Blocks {
		out.BlockTypes = append(out.BlockTypes, &pb6.NestedBlock{
			TypeName: name, Block: encodeBlock(nb.Block), Nesting: nestings[nb.Nesting], MinItems: int64(nb.MinItems), MaxItems: int64(nb.MaxItems),
		})
	}
	return out
}

func encodeAttributes(in attrs) []*pb6.Attribute {
	var out []*pb6.Attribute
	for name, a := range in {
		pa := &pb6.Attribute{
			Name: name, Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
			Deprecated: a.Deprecated != "", DeprecationMessage: a.Deprecated, Description: a.Description,
		}
		if a.Nested != nil {
			pa.NestedType = &pb6.Object{Nesting: nestings[a.Nested.Nesting], Attributes: encodeAttributes(a.Nested.Attributes)}
		} else {
			pa.Type = typeJSON(a.Type)
		}
		out = append(out, pa)
	}
	return out
}

func encodeBlock5(b *schema.Block) *pb5.Block {
	out := &pb5.Block{Description: b.Description, Deprecated: b.Deprecated != ""}
	for name, a := range b.Attributes {
		out.Attributes = append(out.Attributes, &pb5.Attribute{
			Name: name, Type: typeJSON(a.Type), Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
			Deprecated: a.Deprecated != "", DeprecationMessage: a.Deprecated, Description: a.Description,
		})
	}
	for name, nb := range b.Blocks {
		out.BlockTypes = append(out.BlockTypes, &pb5.NestedBlock{
			TypeName: name, Block: encodeBlock5(nb.Block), Nesting: nestings[nb.Nesting], MinItems: int64(nb.MinItems), MaxItems: int64(nb.MaxItems),
		})
	}
	return out
}

func encodeValue(v cty.Value, c *value.Codec) *pb6.Value { return must(rpc.Encode(c, v)) }

// null is the encoding of every null value.
var null = &pb6.Value{Msgpack: []byte{0xc0}}

// decodeValue decodes a value from the caller. A missing value is null.
func decodeValue(in *pb6.Value, c *value.Codec) (cty.Value, error) {
	if len(in.GetMsgpack())+len(in.GetJson()) == 0 {
		in = null
	}
	return rpc.Decode(c, in)
}

// problem returns diagnostics with one error, about an attribute if attr is set.
func problem(summary, detail string, attr ...string) []*pb6.Diagnostic {
	return []*pb6.Diagnostic{diagnostic(pb6.Diagnostic_ERROR, summary, detail, attr...)}
}

func diagnostic(s pb6.Diagnostic_Severity, summary, detail string, attr ...string) *pb6.Diagnostic {
	d := &pb6.Diagnostic{Severity: s, Summary: summary, Detail: detail}
	if len(attr) > 0 {
		d.Attribute = pathOf(attr...)
	}
	return d
}

func pathOf(names ...string) *pb6.Path {
	p := &pb6.Path{}
	for _, n := range names {
		p.Steps = append(p.Steps, &pb6.Path_Step{Selector: &pb6.Path_Step_AttributeName{AttributeName: n}})
	}
	return p
}

// text returns a string attribute of an object. It returns "" if it is null, unknown or
// missing.
func text(obj cty.Value, name string) string {
	if obj.IsNull() || !obj.IsKnown() || !obj.Type().HasAttribute(name) {
		return ""
	}
	v := obj.GetAttr(name)
	if v.IsNull() || !v.IsKnown() {
		return ""
	}
	return v.AsString()
}

// number returns a number attribute of an object. It returns 0 if it is null, unknown or
// missing.
func number(obj cty.Value, name string) int64 {
	if obj.IsNull() || !obj.IsKnown() || !obj.Type().HasAttribute(name) {
		return 0
	}
	v := obj.GetAttr(name)
	if v.IsNull() || !v.IsKnown() {
		return 0
	}
	n, _ := v.AsBigFloat().Int64()
	return n
}
