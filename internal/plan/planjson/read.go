package planjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// # Plans of services
//
// A service that plans returns the result as JSON: the changes of objects and outputs, and the
// schemas of the providers. Sensitive values are omitted. ReadPlan converts it to a plan that
// can be shown, but not applied.
//
// The text comes from another system and is not trusted: a value that does not conform to its
// schema is an error. The caller then shows the lines of the log instead.

type planDocument struct {
	Resources []changeDocument       `json:"resource_changes"`
	Drift     []changeDocument       `json:"resource_drift"`
	Outputs   map[string]valueChange `json:"output_changes"`
	Relevant  []struct {
		Resource  string
		Attribute []json.RawMessage
	} `json:"relevant_attributes"`
	Schemas map[string]*providerSchema `json:"provider_schemas"`
}

type changeDocument struct {
	Address  string
	Previous string `json:"previous_address"`
	Provider string `json:"provider_name"`
	Deposed  string
	Reason   string `json:"action_reason"`
	Change   valueChange
}

type valueChange struct {
	Actions         []string
	Before          any
	After           any
	Unknown         any                 `json:"after_unknown"`
	BeforeSensitive any                 `json:"before_sensitive"`
	AfterSensitive  any                 `json:"after_sensitive"`
	Replace         [][]json.RawMessage `json:"replace_paths"`
	Importing       *struct{ ID string }
	Generated       string `json:"generated_config"`
}

// A ServicePlan is a plan that a service has made.
type ServicePlan struct {
	Plan    *plan.Plan // changes, drift, outputs and relevant attributes, to be shown
	schemas map[string]*providerSchema
	known   map[string]*schema.Resource
}

// Resource returns the schema of a resource type, or nil if the text does not contain it.
func (f *ServicePlan) Resource(p addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	return f.known[schemaKey(p.String(), mode, typ)]
}

func schemaKey(provider string, mode addr.Mode, typ string) string {
	return provider + " " + mode.String() + " " + typ
}

// ReadPlan reads the plan of a service.
func ReadPlan(text []byte, mode plan.Mode) (*ServicePlan, error) {
	var doc planDocument
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	f := &ServicePlan{Plan: &plan.Plan{Mode: mode}, schemas: doc.Schemas, known: make(map[string]*schema.Resource)}
	var err error
	if f.Plan.Changes, err = f.changes(doc.Resources); err != nil {
		return nil, err
	}
	if f.Plan.Drift, err = f.changes(doc.Drift); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Outputs)) {
		o := doc.Outputs[name]
		op, err := operation(o.Actions)
		if err != nil {
			return nil, err
		}
		out := &plan.OutputChange{Name: name, Op: op, BeforeSensitive: o.BeforeSensitive == true, AfterSensitive: o.AfterSensitive == true}
		if out.Before, err = reading(o.Before, nil, cty.DynamicPseudoType); err == nil {
			out.After, err = reading(o.After, o.Unknown, cty.DynamicPseudoType)
		}
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		f.Plan.Outputs = append(f.Plan.Outputs, out)
	}
	for _, r := range doc.Relevant {
		a, err := addr.ParseInstance(r.Resource)
		if err != nil {
			return nil, err
		}
		f.Plan.Relevant = append(f.Plan.Relevant, plan.RelevantAttr{Resource: a, Path: pathIn(r.Attribute, cty.DynamicPseudoType)})
	}
	return f, nil
}

func (f *ServicePlan) changes(list []changeDocument) ([]*plan.Change, error) {
	var out []*plan.Change
	for _, d := range list {
		c, err := f.change(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Address, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func (f *ServicePlan) change(d changeDocument) (*plan.Change, error) {
	c := &plan.Change{Deposed: addr.DeposedKey(d.Deposed), Reason: plan.Reason(d.Reason)}
	var err error
	if c.Addr, err = addr.ParseInstance(d.Address); err != nil {
		return nil, err
	}
	c.Prev = c.Addr
	if d.Previous != "" {
		if c.Prev, err = addr.ParseInstance(d.Previous); err != nil {
			return nil, err
		}
	}
	if c.Provider.Provider, err = addr.ParseProvider(d.Provider); err != nil {
		return nil, err
	}
	if c.Op, err = operation(d.Change.Actions); err != nil {
		return nil, err
	}
	ty := cty.DynamicPseudoType
	s, err := f.find(d.Provider, c.Addr)
	if err != nil {
		return nil, err
	}
	if s != nil {
		ty = s.Block.ImpliedType()
	}
	if c.Before, err = reading(d.Change.Before, nil, ty); err != nil {
		return nil, err
	}
	if c.After, err = reading(d.Change.After, d.Change.Unknown, ty); err != nil {
		return nil, err
	}
	for _, v := range []cty.Value{c.Before, c.After} {
		if v.IsKnown() && !v.IsNull() && !v.Type().IsObjectType() {
			return nil, errors.New("an object was expected")
		}
	}
	c.BeforeSensitive = marked(d.Change.BeforeSensitive, c.Before.Type(), nil, nil)
	c.AfterSensitive = marked(d.Change.AfterSensitive, c.After.Type(), nil, nil)
	for _, p := range d.Change.Replace {
		c.ReplacePaths = append(c.ReplacePaths, pathIn(p, ty))
	}
	if i := d.Change.Importing; i != nil {
		c.Import = &plan.Import{ID: i.ID, GeneratedConfig: d.Change.Generated}
	}
	return c, nil
}

// find returns the schema of a resource type, which is decoded once.
func (f *ServicePlan) find(provider string, a addr.Instance) (*schema.Resource, error) {
	key := schemaKey(provider, a.Resource.Mode, a.Resource.Type)
	if s, ok := f.known[key]; ok {
		return s, nil
	}
	var s *schema.Resource
	if p := f.schemas[provider]; p != nil {
		types := p.Resources
		if a.Resource.Mode == addr.Data {
			types = p.Data
		}
		if r := types[a.Resource.Type]; r != nil && r.Block != nil {
			b, err := r.Block.read()
			if err != nil {
				return nil, err
			}
			s = &schema.Resource{Version: r.Version, Block: b}
			if err := b.Validate(); err != nil {
				return nil, err
			}
		}
	}
	f.known[key] = s
	return s, nil
}

func (b *blockSchema) read() (*schema.Block, error) {
	out := &schema.Block{Blocks: make(map[string]*schema.NestedBlock)}
	var err error
	if out.Attributes, err = readAttributes(b.Attributes); err != nil {
		return nil, err
	}
	for name, nb := range b.Blocks {
		if nb == nil || nb.Block == nil {
			return nil, fmt.Errorf("the block %q has no schema", name)
		}
		inner, err := nb.Block.read()
		if err != nil {
			return nil, err
		}
		one := &schema.NestedBlock{Block: inner, MinItems: nb.MinItems, MaxItems: nb.MaxItems}
		if one.Nesting, err = nestingOf(nb.Nesting); err != nil {
			return nil, err
		}
		out.Blocks[name] = one
	}
	return out, nil
}

func readAttributes(list map[string]*attributeSchema) (map[string]*schema.Attribute, error) {
	out := make(map[string]*schema.Attribute, len(list))
	for name, a := range list {
		if a == nil {
			return nil, fmt.Errorf("the argument %q has no schema", name)
		}
		one := &schema.Attribute{Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive, WriteOnly: a.WriteOnly}
		switch {
		case a.Nested != nil:
			attrs, err := readAttributes(a.Nested.Attributes)
			if err != nil {
				return nil, err
			}
			n, err := nestingOf(a.Nested.Nesting)
			if err != nil || n == schema.Group {
				return nil, fmt.Errorf("the argument %q has a nesting that is not known", name)
			}
			one.Nested = &schema.Object{Attributes: attrs, Nesting: n}
			one.Type = one.Nested.ImpliedType()
		default:
			ty, err := ctyjson.UnmarshalType(a.Type)
			if err != nil {
				return nil, fmt.Errorf("the argument %q: %w", name, err)
			}
			one.Type = ty
		}
		out[name] = one
	}
	return out, nil
}

func nestingOf(name string) (schema.Nesting, error) {
	for n, word := range nestingNames {
		if word == name {
			return n, nil
		}
	}
	return schema.NestingInvalid, fmt.Errorf("the nesting %q is not known", name)
}

// operation returns the operation whose Actions are names.
func operation(names []string) (plan.Op, error) {
	for o := plan.NoOp; o <= plan.ForgetThenCreate; o++ {
		if slices.Equal(Actions(o), names) {
			return o, nil
		}
	}
	return plan.NoOp, fmt.Errorf("the actions %q are not known", names)
}

// reading decodes a value of type ty. unknown contains true for each unknown part, which is
// missing in v.
func reading(v, unknown any, ty cty.Type) (cty.Value, error) {
	if unknown == true {
		return cty.UnknownVal(ty), nil
	}
	within, _ := unknown.(map[string]any)
	if v == nil && len(within) == 0 {
		return cty.NullVal(ty), nil
	}
	switch v := v.(type) {
	case bool:
		return fitting(cty.BoolVal(v), ty)
	case json.Number:
		n, err := cty.ParseNumberVal(v.String())
		if err != nil || value.Bounded(n) != nil {
			return cty.NilVal, errors.New("a number cannot be read")
		}
		return fitting(n, ty)
	case string:
		return fitting(cty.StringVal(v), ty)
	case []any:
		return readList(v, unknown, ty)
	case map[string]any:
		return readObject(v, within, ty)
	case nil:
		return readObject(nil, within, ty)
	}
	return cty.NilVal, errors.New("a value of an unknown kind")
}

func fitting(v cty.Value, ty cty.Type) (cty.Value, error) {
	switch {
	case ty == cty.DynamicPseudoType || ty.Equals(v.Type()):
		return v, nil
	case ty == cty.Number && v.Type() == cty.String: // numbers that JSON cannot represent are strings
		if n, err := cty.ParseNumberVal(v.AsString()); err == nil && value.Bounded(n) == nil {
			return n, nil
		}
	}
	return cty.NilVal, errors.New("a value does not have the type of its schema")
}

func readList(v []any, unknown any, ty cty.Type) (cty.Value, error) {
	parts, _ := unknown.([]any)
	many := ty.IsListType() || ty.IsSetType()
	if !many && !ty.IsTupleType() && ty != cty.DynamicPseudoType || ty.IsTupleType() && ty.Length() != len(v) {
		return cty.NilVal, errors.New("a value does not have the type of its schema")
	}
	out := make([]cty.Value, len(v))
	same := true
	for i, e := range v {
		of := cty.DynamicPseudoType
		switch {
		case many:
			of = ty.ElementType()
		case ty.IsTupleType():
			of = ty.TupleElementType(i)
		}
		var u any
		if i < len(parts) {
			u = parts[i]
		}
		var err error
		if out[i], err = reading(e, u, of); err != nil {
			return cty.NilVal, err
		}
		same = same && out[i].Type().Equals(out[0].Type())
	}
	switch {
	case !same && ty.IsSetType():
		return cty.NilVal, errors.New("the elements of a set are of several types")
	case !many || !same:
		return cty.TupleVal(out), nil
	case len(out) == 0 && ty.IsSetType():
		return cty.SetValEmpty(ty.ElementType()), nil
	case len(out) == 0:
		return cty.ListValEmpty(ty.ElementType()), nil
	case ty.IsSetType():
		return cty.SetVal(out), nil
	}
	return cty.ListVal(out), nil
}

func readObject(v, unknown map[string]any, ty cty.Type) (cty.Value, error) {
	if !ty.IsObjectType() && !ty.IsMapType() && ty != cty.DynamicPseudoType {
		return cty.NilVal, errors.New("a value does not have the type of its schema")
	}
	names := make(map[string]bool)
	for name := range v {
		names[name] = true
	}
	for name := range unknown {
		names[name] = true
	}
	if ty.IsObjectType() {
		for name := range names {
			if !ty.HasAttribute(name) {
				return cty.NilVal, errors.New("a value has an argument that its schema does not have")
			}
		}
		for name := range ty.AttributeTypes() {
			names[name] = true
		}
	}
	out := make(map[string]cty.Value, len(names))
	var first cty.Value
	same := true
	for _, name := range slices.Sorted(maps.Keys(names)) {
		of := cty.DynamicPseudoType
		switch {
		case ty.IsObjectType():
			of = ty.AttributeType(name)
		case ty.IsMapType():
			of = ty.ElementType()
		}
		one, err := reading(v[name], unknown[name], of)
		if err != nil {
			return cty.NilVal, err
		}
		out[name] = one
		if first == cty.NilVal {
			first = one
		}
		same = same && one.Type().Equals(first.Type())
	}
	switch {
	case !ty.IsMapType() || !same:
		return cty.ObjectVal(out), nil
	case len(out) == 0:
		return cty.MapValEmpty(ty.ElementType()), nil
	}
	return cty.MapVal(out), nil
}

// step returns the path step to a part of a value, and the type of the part.
func step(name string, ty cty.Type) (cty.PathStep, cty.Type) {
	switch {
	case ty.IsMapType():
		return cty.IndexStep{Key: cty.StringVal(name)}, ty.ElementType()
	case ty.IsObjectType() && ty.HasAttribute(name):
		return cty.GetAttrStep{Name: name}, ty.AttributeType(name)
	}
	return cty.GetAttrStep{Name: name}, cty.DynamicPseudoType
}

// marked returns the paths that a tree marks as sensitive.
func marked(tree any, ty cty.Type, at cty.Path, out []cty.Path) []cty.Path {
	if ty.IsSetType() && tree != false { // elements of a set have no path, so the whole set is sensitive
		if holdsTrue(tree) {
			out = append(out, slices.Clone(at))
		}
		return out
	}
	switch tree := tree.(type) {
	case bool:
		if tree {
			out = append(out, slices.Clone(at))
		}
	case []any:
		for i, e := range tree {
			of := cty.DynamicPseudoType
			switch {
			case ty.IsListType():
				of = ty.ElementType()
			case ty.IsTupleType() && i < ty.Length():
				of = ty.TupleElementType(i)
			}
			out = marked(e, of, append(at[:len(at):len(at)], cty.IndexStep{Key: cty.NumberIntVal(int64(i))}), out)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			s, of := step(name, ty)
			out = marked(tree[name], of, append(at[:len(at):len(at)], s), out)
		}
	}
	return out
}

// holdsTrue reports whether a tree contains true.
func holdsTrue(tree any) bool {
	switch tree := tree.(type) {
	case bool:
		return tree
	case []any:
		return slices.ContainsFunc(tree, holdsTrue)
	case map[string]any:
		for _, e := range tree {
			if holdsTrue(e) {
				return true
			}
		}
	}
	return false
}

// pathIn decodes a path up to the first step that it cannot decode.
func pathIn(list []json.RawMessage, ty cty.Type) cty.Path {
	var out cty.Path
	for _, raw := range list {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			var s cty.PathStep
			s, ty = step(name, ty)
			out = append(out, s)
			continue
		}
		n, err := cty.ParseNumberVal(string(raw))
		if err != nil || value.Bounded(n) != nil {
			return out
		}
		of := cty.DynamicPseudoType
		if ty.IsListType() {
			of = ty.ElementType()
		}
		out, ty = append(out, cty.IndexStep{Key: n}), of
	}
	return out
}
