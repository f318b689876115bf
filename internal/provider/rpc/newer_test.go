package rpc

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb5"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// TestNewerSchema decodes schemas with a field that this version of the protocol does not have: the
// field is ignored, and the schema is marked.
func TestNewerSchema(t *testing.T) {
	field := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	for _, newer := range []bool{false, true} {
		inner5, inner6 := &pb5.NestedBlock{TypeName: "b", Block: &pb5.Block{}, Nesting: pb6.Nesting_LIST}, &pb6.NestedBlock{TypeName: "b", Block: &pb6.Block{}, Nesting: pb6.Nesting_LIST}
		if newer {
			inner5.ProtoReflect().SetUnknown(field)
			inner6.ProtoReflect().SetUnknown(field)
		}
		for protocol, m := range map[int]proto.Message{
			5: &pb5.Schema{Version: 2, Block: &pb5.Block{BlockTypes: []*pb5.NestedBlock{inner5}}},
			6: &pb6.Schema{Version: 2, Block: &pb6.Block{BlockTypes: []*pb6.NestedBlock{inner6}}},
		} {
			raw, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeSchema(protocol, raw)
			if err != nil || got.Newer != newer || got.Version != 2 || got.Block.Blocks["b"] == nil {
				t.Errorf("protocol %d, newer %t: %+v %v", protocol, newer, got, err)
			}
		}
	}
}
