package rpc

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb5"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"google.golang.org/protobuf/proto"
)

// decodeSchema decodes a schema from a plugin of the given protocol. The error for an
// invalid schema names the attribute or block.
func decodeSchema(protocol int, raw []byte) (*schema.Resource, error) {
	var s pb6.Schema
	newer := false
	if protocol == 5 {
		var old pb5.Schema
		if err := proto.Unmarshal(raw, &old); err != nil {
			return nil, err
		}
		newer = unknown(&old) || newer5(old.Block)
		s.Version, s.Block = old.Version, block5(old.Block)
	} else {
		if err := proto.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		newer = unknown(&s) || newer6(s.Block)
	}
	b, err := toBlock(s.Block)
	if err != nil {
		return nil, err
	}
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return &schema.Resource{Version: s.Version, Block: b, Newer: newer}, nil
}

// unknown reports whether any of the messages has fields that its type does not define.
func unknown[M proto.Message](all ...M) bool {
	return slices.ContainsFunc(all, func(m M) bool { return len(m.ProtoReflect().GetUnknown()) > 0 })
}

// newer5 reports whether a block has unknown fields, at any depth.
func newer5(b *pb5.Block) bool {
	return b != nil && (unknown(b) || unknown(b.Attributes...) || unknown(b.BlockTypes...) ||
		slices.ContainsFunc(b.BlockTypes, func(n *pb5.NestedBlock) bool { return newer5(n.GetBlock()) }))
}

// newer6 is newer5 for protocol 6.
func newer6(b *pb6.Block) bool {
	return b != nil && (unknown(b) || newerAttributes(b.Attributes) || unknown(b.BlockTypes...) ||
		slices.ContainsFunc(b.BlockTypes, func(n *pb6.NestedBlock) bool { return newer6(n.GetBlock()) }))
}

func newerAttributes(all []*pb6.Attribute) bool {
	return unknown(all...) || slices.ContainsFunc(all, func(a *pb6.Attribute) bool {
		return a.GetNestedType() != nil && (unknown(a.NestedType) || newerAttributes(a.NestedType.Attributes))
	})
}

// block5 converts a block of protocol 5 to protocol 6.
func block5(in *pb5.Block) *pb6.Block {
	if in == nil {
		return nil
	}
	out := &pb6.Block{
		Version: in.Version, Description: in.Description, DescriptionKind: in.DescriptionKind,
		Deprecated: in.Deprecated, DeprecationMessage: in.DeprecationMessage,
	}
	for _, a := range in.Attributes {
		out.Attributes = append(out.Attributes, &pb6.Attribute{
			Name: a.GetName(), Type: a.GetType(), Description: a.GetDescription(), DescriptionKind: a.GetDescriptionKind(),
			Required: a.GetRequired(), Optional: a.GetOptional(), Computed: a.GetComputed(), Sensitive: a.GetSensitive(),
			Deprecated: a.GetDeprecated(), DeprecationMessage: a.GetDeprecationMessage(), WriteOnly: a.GetWriteOnly(),
		})
	}
	for _, nb := range in.BlockTypes {
		out.BlockTypes = append(out.BlockTypes, &pb6.NestedBlock{
			TypeName: nb.GetTypeName(), Block: block5(nb.GetBlock()), Nesting: nb.GetNesting(),
			MinItems: nb.GetMinItems(), MaxItems: nb.GetMaxItems(),
		})
	}
	return out
}

func toBlock(in *pb6.Block) (*schema.Block, error) {
	b := &schema.Block{
		Description: in.GetDescription(),
		Markdown:    in.GetDescriptionKind() == pb6.TextKind_MARKDOWN,
		Deprecated:  deprecated(in.GetDeprecated(), in.GetDeprecationMessage()),
	}
	var err error
	if b.Attributes, err = toAttributes(in.GetAttributes()); err != nil {
		return nil, err
	}
	for _, nb := range in.GetBlockTypes() {
		name := nb.GetTypeName()
		if err := checkName(name); err != nil {
			return nil, err
		}
		inner, err := toBlock(nb.GetBlock())
		if err != nil {
			return nil, fmt.Errorf("in the block %s: %w", name, err)
		}
		if b.Blocks == nil {
			b.Blocks = make(map[string]*schema.NestedBlock, len(in.BlockTypes))
		}
		if b.Blocks[name] != nil {
			return nil, fmt.Errorf("the block %s is declared twice", name)
		}
		b.Blocks[name] = &schema.NestedBlock{Block: inner, Nesting: toNesting(nb.GetNesting()), MinItems: toInt(nb.GetMinItems()), MaxItems: toInt(nb.GetMaxItems())}
	}
	return b, nil
}

func toInt(n int64) int { return int(max(0, min(n, math.MaxInt32))) }

func deprecated(is bool, text string) string {
	if is && text == "" {
		return schema.NoMessage
	}
	if !is {
		return ""
	}
	return text
}

// checkName returns an error for an invalid attribute name.
func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, ".|\x00 ") || cty.NormalizeString(name) != name {
		return fmt.Errorf("%s is not a name for an attribute or block", quoteShort(name))
	}
	return nil
}

func toAttributes(in []*pb6.Attribute) (map[string]*schema.Attribute, error) {
	out := make(map[string]*schema.Attribute, len(in))
	for _, a := range in {
		name := a.GetName()
		if err := checkName(name); err != nil {
			return nil, err
		}
		if out[name] != nil {
			return nil, fmt.Errorf("the attribute %s is declared twice", name)
		}
		attr, err := toAttribute(a)
		if err != nil {
			return nil, fmt.Errorf("in the attribute %s: %w", name, err)
		}
		out[name] = attr
	}
	return out, nil
}

func toAttribute(in *pb6.Attribute) (*schema.Attribute, error) {
	a := &schema.Attribute{
		Required: in.Required, Optional: in.Optional, Computed: in.Computed,
		Sensitive: in.Sensitive, WriteOnly: in.WriteOnly,
		Deprecated:  deprecated(in.Deprecated, in.DeprecationMessage),
		Description: in.Description, Markdown: in.DescriptionKind == pb6.TextKind_MARKDOWN,
	}
	var err error
	if in.NestedType == nil {
		a.Type, err = toType(in.Type)
		return a, err
	}
	a.Nested = &schema.Object{Nesting: toNesting(in.NestedType.Nesting)}
	if a.Nested.Attributes, err = toAttributes(in.NestedType.Attributes); err != nil {
		return nil, err
	}
	a.Type = a.Nested.ImpliedType()
	return a, nil
}

func toNesting(n pb6.Nesting) schema.Nesting {
	switch n {
	case pb6.Nesting_SINGLE:
		return schema.Single
	case pb6.Nesting_LIST:
		return schema.List
	case pb6.Nesting_SET:
		return schema.Set
	case pb6.Nesting_MAP:
		return schema.Map
	case pb6.Nesting_GROUP:
		return schema.Group
	default:
		return schema.NestingInvalid
	}
}

// toType decodes a type constraint in JSON.
func toType(raw []byte) (ty cty.Type, err error) {
	switch string(raw) { // the most frequent types
	case `"string"`:
		return cty.String, nil
	case `"bool"`:
		return cty.Bool, nil
	case `"number"`:
		return cty.Number, nil
	}
	defer func() {
		if r := recover(); r != nil {
			ty, err = cty.NilType, fmt.Errorf("the type cannot be decoded: %v", r)
		}
	}()
	if ty, err = ctyjson.UnmarshalType(raw); err != nil {
		return cty.NilType, fmt.Errorf("the type cannot be decoded: %w", err)
	}
	return ty.WithoutOptionalAttributesDeep(), nil
}

// toIdentity converts the schema of an identity. Attributes that an import must set are
// required, attributes that it may set are optional, and all others are computed.
func toIdentity(in *pb6.IdentitySchema) (*schema.Object, error) {
	o := &schema.Object{Nesting: schema.Single, Attributes: make(map[string]*schema.Attribute)}
	for _, a := range in.GetIdentityAttributes() {
		if err := checkName(a.GetName()); err != nil {
			return nil, err
		}
		ty, err := toType(a.GetType())
		if err != nil {
			return nil, fmt.Errorf("in the identity attribute %s: %w", a.GetName(), err)
		}
		attr := &schema.Attribute{Type: ty, Description: a.GetDescription(), Required: a.GetRequiredForImport()}
		attr.Optional = !attr.Required && a.GetOptionalForImport()
		attr.Computed = !attr.Required && !attr.Optional
		o.Attributes[a.GetName()] = attr
	}
	return o, nil
}

func toFunctions(in map[string]*pb6.Function) (map[string]*schema.Function, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make(map[string]*schema.Function, len(in))
	for _, name := range slices.Sorted(maps.Keys(in)) {
		f, err := toFunction(in[name])
		if err != nil {
			return nil, fmt.Errorf("in the function %s: %w", quoteShort(name), err)
		}
		out[name] = f
	}
	return out, nil
}

func toFunction(in *pb6.Function) (*schema.Function, error) {
	f := &schema.Function{Summary: in.GetSummary(), Description: in.GetDescription(), Deprecated: in.GetDeprecationMessage()}
	for _, p := range in.GetParameters() {
		param, err := toParameter(p)
		if err != nil {
			return nil, err
		}
		f.Params = append(f.Params, param)
	}
	if in.GetVariadicParameter() != nil {
		param, err := toParameter(in.VariadicParameter)
		if err != nil {
			return nil, err
		}
		f.Variadic = &param
	}
	var err error
	if f.Return, err = toType(in.GetReturn().GetType()); err != nil {
		return nil, fmt.Errorf("in the result: %w", err)
	}
	return f, nil
}

func toParameter(in *pb6.Parameter) (schema.Parameter, error) {
	ty, err := toType(in.GetType())
	if err != nil {
		return schema.Parameter{}, fmt.Errorf("in the parameter %s: %w", quoteShort(in.GetName()), err)
	}
	return schema.Parameter{
		Name: in.GetName(), Type: ty, AllowNull: in.GetAllowNullValue(),
		AllowUnknown: in.GetAllowUnknownValues(), Description: in.GetDescription(),
	}, nil
}
