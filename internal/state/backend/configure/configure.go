// Package configure builds the configuration of a backend from all its sources: a block, the
// options of init, a value (remote_state of units, terraform_remote_state) and answers of the
// user.
//
// Main functions: Block, Options and Value. The one rule: the result has the type that the
// kind's schema implies, wholly known and without marks. Missing required arguments are only
// reported at the end (Missing), when all sources are combined.
package configure

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// Eval evaluates an expression before planning.
type Eval func(hcl.Expression) (cty.Value, diag.List)

// Block decodes the body of a block. All arguments are optional here.
func Block(k *schema.Block, body hcl.Body, eval Eval) (cty.Value, diag.List) {
	d := &decoder{eval: eval}
	v := d.block(k, body)
	return v, d.ds.Sort()
}

type decoder struct {
	eval Eval
	ds   diag.List
}

func bodySchema(k *schema.Block) *hcl.BodySchema {
	s := &hcl.BodySchema{}
	for _, name := range slices.Sorted(maps.Keys(k.Attributes)) {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: name})
	}
	for _, name := range slices.Sorted(maps.Keys(k.Blocks)) {
		b := hcl.BlockHeaderSchema{Type: name}
		if k.Blocks[name].Nesting == schema.Map {
			b.LabelNames = []string{"key"}
		}
		s.Blocks = append(s.Blocks, b)
	}
	return s
}

func (d *decoder) block(k *schema.Block, body hcl.Body) cty.Value {
	content, diags := body.Content(bodySchema(k))
	d.ds = append(d.ds, diag.FromHCL(diags)...)
	vals := make(map[string]cty.Value, len(k.Attributes)+len(k.Blocks))
	for name, a := range k.Attributes {
		vals[name] = cty.NullVal(a.Type)
		if given := content.Attributes[name]; given != nil {
			vals[name] = d.attribute(a.Type, name, given.Expr)
		}
	}
	for name, nb := range k.Blocks {
		vals[name] = d.blocks(name, nb, content.Blocks.OfType(name))
	}
	return cty.ObjectVal(vals)
}

func (d *decoder) attribute(want cty.Type, name string, x hcl.Expression) cty.Value {
	null := cty.NullVal(want)
	v, ds := d.eval(x)
	d.ds = append(d.ds, ds...)
	if ds.HasErrors() {
		return null
	}
	at := x.Range()
	v, ds = plain(v, name, &at)
	d.ds = append(d.ds, ds...)
	if ds.HasErrors() {
		return null
	}
	if b, ok := schemaOf(want); ok { // an attribute with nested attributes
		v, ds = b(v, name, &at)
		d.ds = append(d.ds, ds...)
		return v
	}
	out, err := convert.Convert(v, want)
	if err != nil {
		d.ds = append(d.ds, diag.Errorf(diag.CodeBackendRemoteState, &at, "Invalid backend configuration", "The argument %q must be a %s: %s.", name, want.FriendlyName(), err)...)
		return null
	}
	return out
}

// schemaOf returns a conversion for objects in which attributes may be missing.
func schemaOf(want cty.Type) (func(cty.Value, string, *source.Range) (cty.Value, diag.List), bool) {
	if !want.IsObjectType() {
		return nil, false
	}
	return func(v cty.Value, name string, at *source.Range) (cty.Value, diag.List) {
		out, err := object(v, name, want)
		if err != nil {
			return cty.NullVal(want), diag.Errorf(diag.CodeBackendRemoteState, at, "Invalid backend configuration", "%s.", sentence(err))
		}
		return out, nil
	}, true
}

// object converts an object argument to its type. Attributes may be missing.
func object(v cty.Value, name string, want cty.Type) (cty.Value, error) {
	if v.Type().IsObjectType() && !v.IsNull() {
		for n := range v.Type().AttributeTypes() {
			if !want.HasAttribute(n) {
				return cty.NilVal, fmt.Errorf("the argument %q has no attribute %q", name, n)
			}
		}
	}
	out, err := convert.Convert(v, lenient(want))
	if err != nil {
		return cty.NilVal, fmt.Errorf("the argument %q is not valid: %w", name, err)
	}
	return out, nil
}

// lenient returns a type whose object attributes are optional.
func lenient(want cty.Type) cty.Type {
	if !want.IsObjectType() {
		return want
	}
	return cty.ObjectWithOptionalAttrs(want.AttributeTypes(), slices.Collect(maps.Keys(want.AttributeTypes())))
}

// plain returns an error for values that must not be stored, and for unknown values.
func plain(v cty.Value, name string, at *source.Range) (cty.Value, diag.List) {
	switch {
	case value.ContainsMark(v, value.Ephemeral):
		return cty.NilVal, diag.Errorf(diag.CodeBackendEphemeralValue, at, "Backend config contains ephemeral values", "The value of the backend's argument %q depends on an ephemeral value. The data directory and saved plans contain the configuration of the backend in clear text. Set the argument with an environment variable of the backend instead.", name)
	case value.ContainsSecret(v):
		return cty.NilVal, diag.Errorf(diag.CodeBackendSensitiveValue, at, "Backend config contains sensitive values", "The value of the backend's argument %q depends on a sensitive value. The data directory and saved plans contain the configuration of the backend in clear text. Set the argument with an environment variable of the backend instead.", name)
	}
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() {
		ds := diag.Errorf(UnknownCode, at, "Unknown values within backend definition", "The argument %q of the backend is not known before anything is planned. Give a default or a value to the variables that it uses.", name)
		return cty.NilVal, ds
	}
	return v, nil
}

// UnknownCode is the code of the error that an argument is unknown before planning.
const UnknownCode = diag.CodeBackendUnknownValue

func (d *decoder) blocks(name string, nb *schema.NestedBlock, given hcl.Blocks) cty.Value {
	var vals []cty.Value
	keyed := map[string]cty.Value{}
	for _, b := range given {
		v := d.block(nb.Block, b.Body)
		vals = append(vals, v)
		if len(b.Labels) > 0 {
			keyed[b.Labels[0]] = v
		}
	}
	if len(given) == 0 {
		return nb.EmptyValue()
	}
	switch nb.Nesting {
	case schema.Single, schema.Group:
		if len(vals) > 1 {
			at := given[1].DefRange
			d.ds = append(d.ds, diag.Errorf(diag.CodeLangBlockCount, &at, "Duplicate block", "There can be only one %q block here.", name)...)
		}
		return vals[0]
	case schema.List:
		return cty.ListVal(vals)
	case schema.Set:
		return cty.SetVal(vals)
	default:
		return cty.MapVal(keyed)
	}
}

// Value converts a value to a configuration: an object or a map of arguments, with objects in
// place of blocks. Required arguments must be present.
func Value(kind string, k *schema.Block, v cty.Value) (cty.Value, error) {
	if v == cty.NilVal || v.IsNull() {
		v = cty.EmptyObjectVal
	}
	all := map[string]cty.Value{}
	if !v.CanIterateElements() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return cty.NilVal, fmt.Errorf("the configuration of the backend %q must be an object", kind)
	}
	for name, e := range v.AsValueMap() {
		if k.Attributes[name] == nil && k.Blocks[name] == nil {
			return cty.NilVal, fmt.Errorf("the backend %q has no argument named %q", kind, name)
		}
		all[name] = single(k.Blocks[name], e)
	}
	for name, a := range k.Attributes {
		if e, ok := all[name]; a.Required && (!ok || e.IsNull()) {
			return cty.NilVal, fmt.Errorf("the argument %q of the backend %q is required", name, kind)
		}
	}
	return Partial(k, cty.ObjectVal(all))
}

// single converts a single object to a list of blocks.
func single(nb *schema.NestedBlock, v cty.Value) cty.Value {
	if nb != nil && (nb.Nesting == schema.List || nb.Nesting == schema.Set) && (v.Type().IsObjectType() || v.Type().IsMapType()) && !v.IsNull() {
		return cty.TupleVal([]cty.Value{v})
	}
	return v
}

// Partial converts a value to the type of the schema. Required arguments may be missing.
func Partial(k *schema.Block, v cty.Value) (cty.Value, error) {
	all := map[string]cty.Value{}
	for name, a := range k.Attributes {
		all[name] = cty.NullVal(a.Type)
	}
	for name, e := range v.AsValueMap() {
		if a := k.Attributes[name]; a != nil && a.Type.IsObjectType() {
			given, err := object(e, name, a.Type)
			if err != nil {
				return cty.NilVal, err
			}
			e = given
		}
		all[name] = e
	}
	return optional(k).Coerce(cty.ObjectVal(all))
}

// optional returns the schema with all arguments optional.
func optional(k *schema.Block) *schema.Block {
	out := &schema.Block{Attributes: map[string]*schema.Attribute{}, Blocks: map[string]*schema.NestedBlock{}}
	for name, a := range k.Attributes {
		b := *a
		b.Required, b.Optional = false, true
		out.Attributes[name] = &b
	}
	for name, nb := range k.Blocks {
		out.Blocks[name] = &schema.NestedBlock{Block: optional(nb.Block), Nesting: nb.Nesting, MaxItems: nb.MaxItems}
	}
	return out
}

// Missing returns the required arguments that neither a configuration nor the environment
// contains, in order.
func Missing(k backend.Kind, v cty.Value, env sys.Env) []string {
	var out []string
	for name, a := range k.Schema.Attributes {
		stand, asked := k.Ask[name]
		inEnv := slices.ContainsFunc(stand, func(e string) bool { return env.Get(e) != "" })
		if (a.Required || asked) && !inEnv && v.GetAttr(name).IsNull() {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// With sets one argument from text that the user entered or an option contains. Blocks are
// written as an object each; OpenTofu and Terraform accept them in files only.
func With(k *schema.Block, v cty.Value, name, text string) (cty.Value, error) {
	a := k.Attributes[name]
	if nb := k.Blocks[name]; nb != nil {
		given, err := parse(cty.DynamicPseudoType, text)
		if err == nil {
			all := v.AsValueMap()
			all[name] = single(nb, given)
			v, err = Partial(k, cty.ObjectVal(all))
		}
		if err != nil {
			return v, fmt.Errorf("the value of the block %q is not valid: %w", name, err)
		}
		return v, nil
	}
	if a == nil {
		return v, fmt.Errorf("the backend configuration argument %q given on the command line is not expected for the selected backend type", name)
	}
	given, err := parse(a.Type, text)
	if err != nil {
		return v, fmt.Errorf("the value of the argument %q is not valid: %w", name, err)
	}
	all := v.AsValueMap()
	all[name] = given
	return cty.ObjectVal(all), nil
}

func parse(want cty.Type, text string) (cty.Value, error) {
	if want.IsPrimitiveType() {
		return convert.Convert(cty.StringVal(text), want)
	}
	if diag.TooDeep("", []byte(text)) != nil {
		return cty.NilVal, fmt.Errorf("it is nested too deeply")
	}
	x, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, fmt.Errorf("it is not an HCL expression") // the text may be a secret
	}
	v, diags := x.Value(nil)
	if diags.HasErrors() {
		return cty.NilVal, fmt.Errorf("it may hold nothing but constants")
	}
	out, err := convert.Convert(v, lenient(want))
	if err != nil {
		return cty.NilVal, fmt.Errorf("a %s is needed", want.FriendlyName())
	}
	return out, nil
}

// Overlay is the result of applying options -backend-config to a configuration.
type Overlay struct {
	Value cty.Value
	// Overridden reports whether there were any options, including an empty one that clears
	// earlier ones.
	Overridden bool
	// By describes for each argument the option that set it, for messages.
	By map[string]string
}

// Options applies the options -backend-config to a configuration in their order; later ones
// win. read reads a file by the name in the option. As in OpenTofu and Terraform, blocks may
// only occur in files, unless blocks is set: units have no such files.
func Options(k *schema.Block, v cty.Value, options []string, blocks bool, read func(name string) (*source.File, error)) (out Overlay, ds diag.List) {
	out = Overlay{Value: v, By: map[string]string{}}
	for i := len(options) - 1; i >= 0; i-- {
		if options[i] == "" {
			out.Overridden, options = true, options[i+1:]
			break
		}
	}
	for _, text := range options {
		out.Overridden = true
		if name, given, ok := strings.Cut(text, "="); ok {
			name = strings.TrimSpace(name)
			if k.Blocks[name] != nil && !blocks {
				ds = append(ds, diag.Errorf(diag.CodeBackendConfigArgument, nil, "Invalid backend configuration argument", "The backend configuration argument %q given on the command line is not expected: it is a block. Write the block into a file, and give that with -backend-config=FILE.", name)...)
				continue
			}
			next, err := With(k, out.Value, name, given)
			if err != nil {
				ds = append(ds, diag.Errorf(diag.CodeBackendConfigArgument, nil, "Invalid backend configuration argument", "%s.", sentence(err))...)
				continue
			}
			out.Value, out.By[name] = next, "with -backend-config="+name+"=…"
			continue
		}
		next, places, more := file(k, out.Value, text, read)
		if ds = append(ds, more...); more.HasErrors() {
			continue
		}
		out.Value = next
		for name, at := range places {
			out.By[name] = fmt.Sprintf("in %s, line %d, with -backend-config", at.Filename, at.Start.Line)
		}
	}
	return out, ds
}

func sentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

// file applies a file of assignments to a configuration. places are the source ranges of the
// assigned arguments.
func file(k *schema.Block, v cty.Value, name string, read func(string) (*source.File, error)) (out cty.Value, places map[string]source.Range, ds diag.List) {
	f, err := read(name)
	if err != nil {
		return v, nil, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "The file %q could not be read: %s.", name, err)
	}
	if ds := diag.TooDeep(name, f.Bytes); ds != nil {
		return v, nil, ds
	}
	var parsed *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(name, ".json") {
		parsed, diags = json.Parse(f.Bytes, name)
	} else {
		parsed, diags = hclnative.ParseConfig(f.Bytes, name)
	}
	if diags.HasErrors() {
		return v, nil, diag.FromValues(f.Bytes, diags)
	}
	places = map[string]source.Range{}
	over, ds := Block(k, noting{parsed.Body, places}, constant)
	if ds.HasErrors() {
		return v, nil, ds
	}
	all, set := v.AsValueMap(), over.AsValueMap()
	for n := range places {
		all[n] = set[n]
	}
	return cty.ObjectVal(all), places, ds
}

func constant(x hcl.Expression) (cty.Value, diag.List) {
	v, diags := x.Value(&hcl.EvalContext{Functions: map[string]function.Function{}})
	return v, diag.FromHCL(diags)
}

// noting records the source ranges of top-level settings in a body.
type noting struct {
	hcl.Body
	places map[string]source.Range
}

func (n noting) Content(s *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	c, diags := n.Body.Content(s)
	if c != nil {
		for name, a := range c.Attributes {
			n.places[name] = a.Range
		}
		for _, b := range c.Blocks {
			n.places[b.Type] = b.DefRange
		}
	}
	return c, diags
}

// Differing returns the arguments whose values differ between two configurations of one kind.
func Differing(k *schema.Block, one, other cty.Value) []string {
	var out []string
	names := slices.AppendSeq(slices.Collect(maps.Keys(k.Attributes)), maps.Keys(k.Blocks))
	for _, name := range names {
		if !one.GetAttr(name).RawEquals(other.GetAttr(name)) {
			out = append(out, name)
		}
	}
	return out
}

// Places returns the source ranges of the arguments and blocks in a body, by name.
func Places(k *schema.Block, body hcl.Body) map[string]*source.Range {
	out := map[string]*source.Range{}
	content, _, _ := body.PartialContent(bodySchema(k))
	if content == nil {
		return out
	}
	for name, a := range content.Attributes {
		out[name] = &a.Range
	}
	for _, b := range content.Blocks {
		if out[b.Type] == nil {
			out[b.Type] = &b.DefRange
		}
	}
	return out
}

// Locate adds to messages of a kind the source range of the argument or of the block. elsewhere
// comes from backend.Config: messages about these arguments get a sentence instead.
func Locate(ds diag.List, k *schema.Block, body hcl.Body, block *source.Range, elsewhere map[string]string) diag.List {
	places := Places(k, body)
	for _, m := range ds {
		if m.At != nil {
			continue
		}
		m.At = block
		blame, ok := m.Extra.(backend.Blame)
		if !ok {
			continue
		}
		if how := elsewhere[blame.Argument]; how != "" {
			m.Detail += backend.GivenElsewhere(blame.Argument, how)
			continue
		}
		if at := places[blame.Argument]; at != nil {
			m.At = at
		}
	}
	return ds
}
