package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Terraform before 0.12 wrote state versions 1 to 3. In these versions resources depend on
// modules, attributes are flat maps of strings, and providers have no source address. They get
// the namespace "-" here.

type legacyState struct {
	TerraformVersion string         `json:"terraform_version"`
	Serial           uint64         `json:"serial"`
	Lineage          string         `json:"lineage"`
	Modules          []legacyModule `json:"modules"`
}

type legacyModule struct {
	Path      []string                   `json:"path"`
	Outputs   map[string]json.RawMessage `json:"outputs"`
	Resources map[string]*legacyResource `json:"resources"`
}

type legacyResource struct {
	Type     string            `json:"type"`
	Primary  *legacyInstance   `json:"primary"`
	Tainted  []*legacyInstance `json:"tainted"` // in version 1 and early version 2
	Deposed  []*legacyInstance `json:"deposed"`
	Provider string            `json:"provider"`
}

type legacyInstance struct {
	ID         string                     `json:"id"`
	Attributes map[string]string          `json:"attributes"`
	Meta       map[string]json.RawMessage `json:"meta"`
	Tainted    bool                       `json:"tainted"`
}

type legacyOutput struct {
	Sensitive bool            `json:"sensitive"`
	Value     json.RawMessage `json:"value"`
}

// legacy reads versions 1 to 3.
func (p *parser) legacy(version int) *state.State {
	var in legacyState
	if err := p.valid(); err != nil { // for messages with a position
		p.syntax(err)
		return nil
	}
	if err := json.Unmarshal(p.doc, &in); err != nil {
		p.errorf(diag.CodeStateInvalidFile, 0, "Invalid state file", "The state has version %d of the format, but not its form: %s.", version, reason(err))
		return nil
	}
	out := &state.State{Lineage: in.Lineage, Serial: in.Serial, TerraformVersion: in.TerraformVersion}
	out.Resources = make(map[addr.AbsResource]*state.Resource)
	for _, m := range in.Modules {
		if len(m.Path) == 0 || m.Path[0] != "root" {
			p.errorf(diag.CodeStateInvalidFile, 0, "Invalid state file", "A module of the state has no path that starts at the root.")
			continue
		}
		var path addr.ModuleInstance
		for _, name := range m.Path[1:] {
			path = path.Child(name, addr.Key{})
		}
		if parsed, err := addr.ParseModuleInstance(string(path)); err != nil || parsed != path {
			p.errorf(diag.CodeStateInvalidFile, 0, "Invalid address in state", "The module path %q is not valid.", m.Path)
			continue
		}
		if path == "" {
			out.Outputs = p.legacyOutputs(version, m.Outputs)
		}
		for _, name := range slices.Sorted(maps.Keys(m.Resources)) {
			if r := m.Resources[name]; r != nil {
				p.legacyResource(out, path, name, r)
			}
		}
	}
	return out
}

func (p *parser) legacyOutputs(version int, in map[string]json.RawMessage) map[string]*state.Output {
	var out map[string]*state.Output
	for _, name := range slices.Sorted(maps.Keys(in)) {
		o := legacyOutput{Value: in[name]}
		if version > 1 {
			o.Value = nil
			if err := json.Unmarshal(in[name], &o); err != nil {
				p.errorf(diag.CodeStateInvalidFile, 0, "Invalid output in state", "The output %q does not have the form of version %d of the format.", name, version)
				continue
			}
		}
		if len(o.Value) == 0 {
			o.Value = []byte("null")
		}
		val, err := legacyValue(o.Value)
		if err != nil {
			p.errorf(diag.CodeStateInvalidFile, 0, "Invalid output in state", "The output %q has no valid value.", name)
			continue
		}
		if out == nil {
			out = make(map[string]*state.Output)
		}
		out[name] = &state.Output{Value: val, Sensitive: o.Sensitive}
	}
	return out
}

// legacyValue decodes a list or map whose elements have one type, as in the language of that
// time. Nested values have the types that they imply.
func legacyValue(raw []byte) (cty.Value, error) {
	if rawjson.Deeper(raw, 100) {
		return cty.NilVal, errors.New("it is nested too deeply")
	}
	ty, err := ctyjson.ImpliedType(raw)
	if err != nil {
		return cty.NilVal, err
	}
	v, err := state.Decode(raw, ty)
	switch {
	case err != nil || v.IsNull() || !v.CanIterateElements() || v.LengthInt() == 0:
		return v, err
	case ty.IsTupleType() && cty.CanListVal(v.AsValueSlice()):
		return cty.ListVal(v.AsValueSlice()), nil
	case ty.IsObjectType() && cty.CanMapVal(v.AsValueMap()):
		return cty.MapVal(v.AsValueMap()), nil
	}
	return v, nil
}

func (p *parser) legacyResource(out *state.State, module addr.ModuleInstance, name string, in *legacyResource) {
	a, err := legacyAddress(module, name)
	if err != nil {
		p.errorf(diag.CodeStateInvalidFile, 0, "Invalid address in state", "%q is not the name of a resource: %s.", name, reason(err))
		return
	}
	provider, err := legacyProvider(a, in.Provider)
	if err != nil {
		p.errorf(diag.CodeStateInvalidFile, 0, "Invalid provider in state", "The resource %s has an invalid provider address: %s.", a, reason(err))
		return
	}
	i := &state.Instance{}
	var deposed []*state.Object
	if in.Primary != nil {
		i.Current = p.legacyObject(a, in.Primary)
	}
	for n, t := range in.Tainted {
		if t == nil {
			continue
		}
		o := p.legacyObject(a, t)
		o.Tainted = true
		if i.Current == nil && n == len(in.Tainted)-1 {
			i.Current = o
			continue
		}
		deposed = append(deposed, o)
	}
	for _, d := range in.Deposed {
		if d != nil {
			deposed = append(deposed, p.legacyObject(a, d))
		}
	}
	for n, o := range deposed {
		if i.Deposed == nil {
			i.Deposed = make(map[addr.DeposedKey]*state.Object)
		}
		i.Deposed[addr.DeposedKey(fmt.Sprintf("%08x", n+1))] = o
	}
	r := out.Resources[a.Abs()]
	if r == nil {
		r = &state.Resource{Addr: a.Abs(), Provider: provider, Instances: make(map[addr.Key]*state.Instance)}
		out.Resources[a.Abs()] = r
	}
	if i.Current == nil && i.Deposed == nil {
		return
	}
	if r.Instances[a.Key] != nil {
		p.errorf(diag.CodeStateInvalidFile, 0, "Duplicate resource instance in state", "The instance %s is in the state more than once.", a)
		return
	}
	r.Instances[a.Key] = i
}

// legacyAddress parses "type.name" and "type.name.0", also after "data.".
func legacyAddress(module addr.ModuleInstance, name string) (addr.Instance, error) {
	a := addr.Instance{Module: module}
	rest, isData := strings.CutPrefix(name, "data.")
	if isData {
		a.Resource.Mode = addr.Data
	}
	parts := strings.Split(rest, ".")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return a, fmt.Errorf("it must have a type and a name, with a dot between them")
	}
	a.Resource.Type, a.Resource.Name = parts[0], parts[1]
	if len(parts) == 3 {
		n, err := strconv.ParseUint(parts[2], 10, 53)
		if err != nil {
			return a, fmt.Errorf("its index must be a whole number")
		}
		a.Key = addr.Int(int(n))
	}
	return a, nil
}

// legacyProvider parses "provider.aws.alias", optionally after a module path, "aws.alias" for
// the same module, and "" for the provider that the type implies.
func legacyProvider(a addr.Instance, text string) (addr.ProviderConfig, error) {
	relative := false
	switch {
	case text == "":
		text, _, _ = strings.Cut(a.Resource.Type, "_")
		text = "provider." + text
		relative = true
	case !strings.HasPrefix(text, "provider.") && !strings.HasPrefix(text, "module."):
		text = "provider." + text
		relative = true
	}
	c, err := parseProvider(text)
	if err != nil {
		return c, err
	}
	if relative {
		c.Module = a.Module.Static()
	}
	if c.Provider.Namespace == "-" && c.Provider.Type == addr.BuiltIn.Type {
		c.Provider = addr.BuiltIn
	}
	return c, nil
}

func (p *parser) legacyObject(a addr.Instance, in *legacyInstance) *state.Object {
	o := &state.Object{Tainted: in.Tainted, Flat: in.Attributes}
	if o.Flat == nil {
		o.Flat = make(map[string]string, 1)
	}
	if in.ID != "" && o.Flat["id"] == "" {
		o.Flat["id"] = in.ID
	}
	if raw, ok := in.Meta["schema_version"]; ok {
		delete(in.Meta, "schema_version")
		n, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64)
		if err != nil || n < 0 {
			p.errorf(diag.CodeStateInvalidFile, 0, "Invalid object in state", "The schema version of %s is not a whole number.", a)
			return o
		}
		o.SchemaVersion = n
	}
	if len(in.Meta) > 0 {
		if private, err := json.Marshal(in.Meta); err == nil {
			o.Private = private
		}
	}
	return o
}
