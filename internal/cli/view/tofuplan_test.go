package view

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// The following functions parse the output of OpenTofu's `show -json` and `providers schema
// -json` into the types of this module, so that TestPlan can compare the texts of both
// programs.

type jsonBlock struct {
	Attributes map[string]*jsonAttr `json:"attributes"`
	Blocks     map[string]*struct {
		Nesting string     `json:"nesting_mode"`
		Block   *jsonBlock `json:"block"`
	} `json:"block_types"`
}

type jsonAttr struct {
	Type      json.RawMessage `json:"type"`
	Sensitive bool            `json:"sensitive"`
	WriteOnly bool            `json:"write_only"`
	Nested    *struct {
		Nesting    string               `json:"nesting_mode"`
		Attributes map[string]*jsonAttr `json:"attributes"`
	} `json:"nested_type"`
}

var nestings = map[string]schema.Nesting{"single": schema.Single, "group": schema.Group, "list": schema.List, "set": schema.Set, "map": schema.Map}

func (b *jsonBlock) block(t *testing.T) *schema.Block {
	out := &schema.Block{Attributes: map[string]*schema.Attribute{}, Blocks: map[string]*schema.NestedBlock{}}
	for name, a := range b.Attributes {
		out.Attributes[name] = a.attr(t)
	}
	for name, nb := range b.Blocks {
		out.Blocks[name] = &schema.NestedBlock{Block: nb.Block.block(t), Nesting: nestings[nb.Nesting]}
	}
	return out
}

func (a *jsonAttr) attr(t *testing.T) *schema.Attribute {
	out := &schema.Attribute{Sensitive: a.Sensitive, WriteOnly: a.WriteOnly}
	if a.Nested != nil {
		o := &schema.Object{Attributes: map[string]*schema.Attribute{}, Nesting: nestings[a.Nested.Nesting]}
		for name, sub := range a.Nested.Attributes {
			o.Attributes[name] = sub.attr(t)
		}
		out.Nested, out.Type = o, o.ImpliedType()
		return out
	}
	ty, err := ctyjson.UnmarshalType(a.Type)
	if err != nil {
		t.Fatal(err)
	}
	out.Type = ty
	return out
}

type jsonSchemas map[string]struct {
	Resources map[string]struct{ Block *jsonBlock } `json:"resource_schemas"`
	Data      map[string]struct{ Block *jsonBlock } `json:"data_source_schemas"`
}

type fixedSchemas map[string]*schema.Resource

func (s fixedSchemas) Resource(_ addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	return s[mode.String()+"."+typ]
}

func readSchemas(t *testing.T, src []byte) fixedSchemas {
	var doc struct {
		Schemas jsonSchemas `json:"provider_schemas"`
	}
	if err := json.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	out := fixedSchemas{}
	for _, p := range doc.Schemas {
		for typ, r := range p.Resources {
			out["managed."+typ] = &schema.Resource{Block: r.Block.block(t)}
		}
		for typ, r := range p.Data {
			out["data."+typ] = &schema.Resource{Block: r.Block.block(t)}
		}
	}
	return out
}

type jsonChange struct {
	Actions         []string
	Before, After   json.RawMessage
	AfterUnknown    any     `json:"after_unknown"`
	BeforeSensitive any     `json:"before_sensitive"`
	AfterSensitive  any     `json:"after_sensitive"`
	ReplacePaths    [][]any `json:"replace_paths"`
	Importing       *struct{ ID string }
}

type jsonResourceChange struct {
	Address         string
	PreviousAddress string `json:"previous_address"`
	Deposed         string
	ActionReason    string `json:"action_reason"`
	Change          jsonChange
}

func readPlan(t *testing.T, src []byte, schemas fixedSchemas) *plan.Plan {
	var doc struct {
		Drift    []jsonResourceChange  `json:"resource_drift"`
		Changes  []jsonResourceChange  `json:"resource_changes"`
		Outputs  map[string]jsonChange `json:"output_changes"`
		Relevant []struct {
			Resource  string
			Attribute []any
		} `json:"relevant_attributes"`
		Errored bool
	}
	if err := json.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Errored: doc.Errored}
	for _, c := range doc.Changes {
		p.Changes = append(p.Changes, c.change(t, schemas))
	}
	slices.SortStableFunc(p.Changes, func(a, b *plan.Change) int { return a.Addr.Compare(b.Addr) })
	for _, c := range doc.Drift {
		p.Drift = append(p.Drift, c.change(t, schemas))
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Outputs)) {
		c := doc.Outputs[name]
		o := &plan.OutputChange{Name: name, Op: opOf(c.Actions)}
		o.Before, o.After = build(t, cty.DynamicPseudoType, c.Before, nil), build(t, cty.DynamicPseudoType, c.After, c.AfterUnknown)
		o.BeforeSensitive, o.AfterSensitive = c.BeforeSensitive == true, c.AfterSensitive == true
		p.Outputs = append(p.Outputs, o)
	}
	for _, r := range doc.Relevant {
		a, err := addr.ParseInstance(r.Resource)
		if err != nil {
			t.Fatal(err)
		}
		p.Relevant = append(p.Relevant, plan.RelevantAttr{Resource: a, Path: path(r.Attribute)})
	}
	return p
}

func opOf(actions []string) plan.Op {
	switch s := strings.Join(actions, "-"); s {
	case "delete-create":
		return plan.DeleteThenCreate
	case "create-delete":
		return plan.CreateThenDelete
	case "forget-create":
		return plan.ForgetThenCreate
	case "remove":
		return plan.Forget
	default:
		for o := plan.NoOp; o <= plan.Forget; o++ {
			if o.String() == s {
				return o
			}
		}
		panic(s)
	}
}

func (c *jsonResourceChange) change(t *testing.T, schemas fixedSchemas) *plan.Change {
	out := &plan.Change{Op: opOf(c.Change.Actions), Reason: plan.Reason(c.ActionReason), Deposed: addr.DeposedKey(c.Deposed)}
	var err error
	if out.Addr, err = addr.ParseInstance(c.Address); err != nil {
		t.Fatal(err)
	}
	out.Prev = out.Addr
	if c.PreviousAddress != "" {
		if out.Prev, err = addr.ParseInstance(c.PreviousAddress); err != nil {
			t.Fatal(err)
		}
	}
	ty := cty.DynamicPseudoType
	if s := schemas.Resource(addr.Provider{}, out.Addr.Resource.Mode, out.Addr.Resource.Type); s != nil {
		ty = s.Block.ImpliedType()
	}
	out.Before, out.After = build(t, ty, c.Change.Before, nil), build(t, ty, c.Change.After, c.Change.AfterUnknown)
	out.BeforeSensitive, out.AfterSensitive = sensitive(c.Change.BeforeSensitive), sensitive(c.Change.AfterSensitive)
	for _, p := range c.Change.ReplacePaths {
		out.ReplacePaths = append(out.ReplacePaths, path(p))
	}
	if c.Change.Importing != nil {
		out.Import = &plan.Import{ID: c.Change.Importing.ID}
	}
	return out
}

func path(steps []any) cty.Path {
	var out cty.Path
	for _, s := range steps {
		switch s := s.(type) {
		case string:
			out = append(out, cty.GetAttrStep{Name: s})
		case float64:
			out = append(out, cty.IndexStep{Key: cty.NumberFloatVal(s)})
		}
	}
	return out
}

// sensitive returns the paths that are true in before_sensitive or after_sensitive.
func sensitive(x any) []cty.Path {
	switch x := x.(type) {
	case bool:
		if x {
			return []cty.Path{nil}
		}
	case map[string]any:
		var out []cty.Path
		for name, e := range x {
			for _, p := range sensitive(e) {
				out = append(out, append(cty.Path{cty.GetAttrStep{Name: name}}, p...))
			}
		}
		return out
	case []any:
		var out []cty.Path
		for i, e := range x {
			for _, p := range sensitive(e) {
				out = append(out, append(cty.Path{cty.IndexStep{Key: cty.NumberIntVal(int64(i))}}, p...))
			}
		}
		return out
	}
	return nil
}

// build returns a value from JSON and the tree of unknown parts.
func build(t *testing.T, ty cty.Type, src json.RawMessage, unknown any) cty.Value {
	var x any
	if len(src) > 0 {
		d := json.NewDecoder(strings.NewReader(string(src)))
		d.UseNumber()
		if err := d.Decode(&x); err != nil {
			t.Fatal(err)
		}
	}
	return buildAny(ty, x, unknown)
}

func buildAny(ty cty.Type, x, unknown any) cty.Value {
	if unknown == true {
		return cty.UnknownVal(ty)
	}
	us, _ := unknown.([]any)
	um, _ := unknown.(map[string]any)
	at := func(i int) any {
		if i < len(us) {
			return us[i]
		}
		return nil
	}
	switch x := x.(type) {
	case string:
		return cty.StringVal(x)
	case bool:
		return cty.BoolVal(x)
	case json.Number:
		return cty.MustParseNumberVal(string(x))
	case []any:
		var vs []cty.Value
		for i, e := range x {
			ety := cty.DynamicPseudoType
			if ty.IsCollectionType() {
				ety = ty.ElementType()
			}
			vs = append(vs, buildAny(ety, e, at(i)))
		}
		switch {
		case ty.IsListType() && len(vs) == 0:
			return cty.ListValEmpty(ty.ElementType())
		case ty.IsListType():
			return cty.ListVal(vs)
		case ty.IsSetType() && len(vs) == 0:
			return cty.SetValEmpty(ty.ElementType())
		case ty.IsSetType():
			return cty.SetVal(vs)
		}
		return cty.TupleVal(vs)
	case map[string]any:
		vs := map[string]cty.Value{}
		names := map[string]bool{}
		for name := range x {
			names[name] = true
		}
		for name := range um {
			names[name] = true
		}
		if ty.IsObjectType() {
			for name, aty := range ty.AttributeTypes() {
				vs[name] = buildAny(aty, x[name], um[name])
			}
			return cty.ObjectVal(vs)
		}
		ety := cty.DynamicPseudoType
		if ty.IsMapType() {
			ety = ty.ElementType()
		}
		for name := range names {
			vs[name] = buildAny(ety, x[name], um[name])
		}
		switch {
		case ty.IsMapType() && len(vs) == 0:
			return cty.MapValEmpty(ety)
		case ty.IsMapType():
			return cty.MapVal(vs)
		}
		return cty.ObjectVal(vs)
	}
	return cty.NullVal(ty)
}
