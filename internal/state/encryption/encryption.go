// Package encryption encrypts states, plans and journals as configured by an encryption block
// and TF_ENCRYPTION. OpenTofu can read and write the encrypted states.
//
// Main types: Config, which Parse returns, and Target, which encrypts and decrypts one kind of
// content (it has a sealing.Sealer for each). The one rule: content is always encrypted with
// the target's own method. It may be decrypted with that method or one of its fallbacks, and
// counts as plain text only if the configuration allows that.
package encryption

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A Config is the combined configuration of the block and the environment variable.
type Config struct {
	providers map[string]*definition // by "key_provider.T.N"
	methods   map[string]*definition // by "method.T.N"
	targets   map[string]*target     // by "state", "plan", "default" and the names of data sources
	services  backend.Services
}

// A definition is the block of a key provider or method.
type definition struct {
	typ, name string
	at        source.Range
	args      cty.Value
	refs      map[string]string // names of arguments that refer to a key provider, with the provider
	alias     string            // value of encrypted_metadata_alias
}

// A target lists the methods for one kind of content.
type target struct {
	at        source.Range
	methods   []string // the method, then its fallbacks
	enforced  bool
	seen      bool // a method was given
	fallbacks bool
}

var label = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]+$`) })

// Variable is the name of the environment variable with an encryption configuration.
const Variable = "TF_ENCRYPTION"

// Constant evaluates an expression without references, for callers without a module.
func Constant(x hcl.Expression) (cty.Value, diag.List) {
	v, diags := x.Value(nil)
	return v, diag.FromHCL(diags)
}

// Parse reads the encryption block of a root module, nil for none, and the value of
// TF_ENCRYPTION, "" for none. Arguments in the variable override those in the block. eval
// evaluates the block's expressions. The result is nil if both are absent.
func Parse(block hcl.Body, environment string, eval configure.Eval, s backend.Services) (*Config, diag.List) {
	if block == nil && strings.TrimSpace(environment) == "" {
		return nil, nil
	}
	if s.Shared == nil {
		s.Shared = new(backend.Shared)
	}
	c := &Config{providers: map[string]*definition{}, methods: map[string]*definition{}, targets: map[string]*target{}, services: s}
	var ds diag.List
	if block != nil {
		ds = c.read(block, eval)
	}
	if strings.TrimSpace(environment) != "" {
		body, more := environmentBody(environment)
		if ds = append(ds, more...); !more.HasErrors() {
			over := &Config{providers: map[string]*definition{}, methods: map[string]*definition{}, targets: map[string]*target{}}
			ds = append(ds, over.read(body, eval)...)
			c.overlay(over)
		}
	}
	if !ds.HasErrors() {
		ds = append(ds, c.check()...)
	}
	if !ds.HasErrors() {
		ds = append(ds, c.checkArguments()...)
	}
	return c, ds
}

// environmentBody parses TF_ENCRYPTION: native syntax, or JSON if it begins with "{".
func environmentBody(text string) (hcl.Body, diag.List) {
	const name = Variable
	var f *hcl.File
	var diags hcl.Diagnostics
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		f, diags = json.Parse([]byte(text), name)
	} else {
		f, diags = hclnative.ParseConfig([]byte(text), name)
	}
	if diags.HasErrors() {
		return nil, diag.FromHCL(diags)
	}
	return f.Body, nil
}

var bodySchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "key_provider", LabelNames: []string{"type", "name"}},
	{Type: "method", LabelNames: []string{"type", "name"}},
	{Type: "state"}, {Type: "plan"}, {Type: "remote_state_data_sources"},
}}

func (c *Config) read(body hcl.Body, eval configure.Eval) diag.List {
	content, diags := body.Content(bodySchema)
	ds := diag.FromHCL(diags)
	seen := map[string]source.Range{}
	for _, b := range content.Blocks {
		switch b.Type {
		case "key_provider":
			ds = append(ds, c.define(b, kinds(), c.providers, eval)...)
		case "method":
			ds = append(ds, c.define(b, methods(), c.methods, eval)...)
		case "state", "plan":
			if first, twice := seen[b.Type]; twice {
				ds = append(ds, duplicate(b.DefRange, first, "There is a block "+b.Type+" already")...)
				continue
			}
			seen[b.Type] = b.DefRange
			t, more := readTarget(b)
			ds = append(ds, more...)
			c.targets[b.Type] = t
		default:
			ds = append(ds, c.readSources(b)...)
		}
	}
	return ds
}

func duplicate(at, first source.Range, what string) diag.List {
	return diag.List{{Code: diag.CodeEncryptionDuplicate, Severity: diag.Error, Summary: "Duplicate encryption block", Detail: what + ".", At: &at, Notes: []diag.Note{{Text: "it is here", At: &first}}}}
}

// A kind is a type of key provider or method.
type kind struct {
	schema *schema.Block
	refs   []string // arguments that refer to a key provider
}

// define reads the block of a key provider or a method.
func (c *Config) define(b *hcl.Block, known map[string]kind, into map[string]*definition, eval configure.Eval) diag.List {
	typ, name := b.Labels[0], b.Labels[1]
	at := b.DefRange
	for _, l := range b.Labels {
		if !label().MatchString(l) {
			return diag.Errorf(diag.CodeEncryptionBlock, &at, "Invalid encryption block", "The label %q has characters other than letters, digits, \"_\" and \"-\".", l)
		}
	}
	k, ok := known[typ]
	if !ok {
		what := strings.ReplaceAll(b.Type, "_", " ")
		return diag.Errorf(diag.CodeEncryptionKey, &at, "Error fetching "+b.Type+" "+fmt.Sprintf("%q", typ), "%s with ID %s not found. There are: %s.", what, typ, strings.Join(sorted(known), ", "))
	}
	key := b.Type + "." + typ + "." + name
	if old := into[key]; old != nil {
		return duplicate(at, old.at, fmt.Sprintf("There is a block %s %q %q already", b.Type, typ, name))
	}
	d := &definition{typ: typ, name: name, at: at, refs: map[string]string{}}
	refs := &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "encrypted_metadata_alias"}}}
	for _, r := range k.refs {
		refs.Attributes = append(refs.Attributes, hcl.AttributeSchema{Name: r})
	}
	content, rest, diags := b.Body.PartialContent(refs)
	ds := diag.FromHCL(diags)
	for n, a := range content.Attributes {
		if n == "encrypted_metadata_alias" {
			v, more := eval(a.Expr)
			ds = append(ds, more...)
			if v, _ = v.UnmarkDeep(); !more.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
				d.alias = v.AsString()
			}
			continue
		}
		ref, more := reference(a.Expr, "key_provider")
		ds = append(ds, more...)
		d.refs[n] = ref
	}
	v, more := decode(k.schema, rest, eval)
	d.args = v
	into[key] = d
	return append(ds, more...)
}

// decode reads the arguments of a block. Secret arguments may be sensitive.
func decode(k *schema.Block, body hcl.Body, eval configure.Eval) (cty.Value, diag.List) {
	v, ds := configure.Block(k, body, func(x hcl.Expression) (cty.Value, diag.List) {
		v, ds := eval(x)
		v, _ = v.UnmarkDeep()
		return v, ds
	})
	return v, ds
}

// reference returns the name of a key provider or a method. It is a bare reference, or a string
// in JSON.
func reference(x hcl.Expression, root string) (string, diag.List) {
	at := x.Range()
	t, diags := hcl.AbsTraversalForExpr(x)
	if diags.HasErrors() {
		v, d := x.Value(nil)
		if !d.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			text := v.AsString()
			if inner, ok := strings.CutPrefix(text, "${"); ok { // JSON may also contain a template, as in OpenTofu
				text = strings.TrimSuffix(inner, "}")
			}
			t, diags = hclsyntax.ParseTraversalAbs([]byte(strings.TrimSpace(text)), at.Filename, at.Start)
		}
	}
	if !diags.HasErrors() && len(t) == 3 && t.RootName() == root {
		a, ok := t[1].(hcl.TraverseAttr)
		b, also := t[2].(hcl.TraverseAttr)
		if ok && also {
			return root + "." + a.Name + "." + b.Name, nil
		}
	}
	return "", diag.Errorf(diag.CodeEncryptionReference, &at, "Invalid reference in an encryption block", "A reference of the form %s.TYPE.NAME is needed here.", root)
}

func readTarget(b *hcl.Block) (*target, diag.List) {
	t := &target{at: b.DefRange}
	content, diags := b.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "method"}, {Name: "enforced"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "fallback"}},
	})
	ds := diag.FromHCL(diags)
	if a := content.Attributes["method"]; a != nil {
		ref, more := reference(a.Expr, "method")
		ds = append(ds, more...)
		t.methods, t.seen = []string{ref}, true
	} else if !diags.HasErrors() {
		ds = append(ds, diag.Errorf(diag.CodeLangMissingArgument, &t.at, "Missing required argument", "The argument \"method\" is required.")...)
	}
	if a := content.Attributes["enforced"]; a != nil {
		at := a.Expr.Range()
		v, d := a.Expr.Value(nil)
		v, err := convert.Convert(v, cty.Bool)
		if d.HasErrors() || err != nil || v.IsNull() || !v.IsKnown() {
			ds = append(ds, diag.Errorf(diag.CodeEncryptionBlock, &at, "Invalid encryption block", "The argument \"enforced\" must be true or false.")...)
		} else {
			t.enforced = v.True()
		}
	}
	for i, f := range content.Blocks {
		if i > 0 {
			ds = append(ds, duplicate(f.DefRange, content.Blocks[0].DefRange, "There is a block fallback already; one may stand in another")...)
			break
		}
		next, more := readTarget(f)
		ds = append(ds, more...)
		t.methods = append(t.methods, next.methods...)
		t.fallbacks = true
	}
	return t, ds
}

// readSources reads the targets for states of terraform_remote_state.
func (c *Config) readSources(b *hcl.Block) diag.List {
	content, diags := b.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "default"}, {Type: "remote_state_data_source", LabelNames: []string{"name"}}}})
	ds := diag.FromHCL(diags)
	for _, x := range content.Blocks {
		name := "default"
		if len(x.Labels) > 0 {
			name = "data " + x.Labels[0]
		}
		t, more := readTarget(x)
		ds = append(ds, more...)
		c.targets[name] = t
	}
	return ds
}

// overlay overrides this configuration by another one.
func (c *Config) overlay(over *Config) {
	for into, from := range map[*map[string]*definition]map[string]*definition{&c.providers: over.providers, &c.methods: over.methods} {
		for key, d := range from {
			old := (*into)[key]
			if old == nil {
				(*into)[key] = d
				continue
			}
			vals := old.args.AsValueMap()
			for n, v := range d.args.AsValueMap() {
				if !v.IsNull() {
					vals[n] = v
				}
			}
			if len(vals) > 0 {
				old.args = cty.ObjectVal(vals)
			}
			for n, r := range d.refs {
				old.refs[n] = r
			}
			if d.alias != "" {
				old.alias = d.alias
			}
		}
	}
	for name, t := range over.targets {
		old := c.targets[name]
		if old == nil {
			c.targets[name] = t
			continue
		}
		old.enforced = old.enforced || t.enforced
		if t.seen {
			rest := old.methods[min(1, len(old.methods)):]
			if t.fallbacks {
				rest = t.methods[1:]
			}
			old.methods = append(t.methods[:1:1], rest...)
		}
	}
}

// check checks the configuration.
func (c *Config) check() diag.List {
	var ds diag.List
	for _, key := range sorted(c.providers) {
		d := c.providers[key]
		for _, r := range d.refs {
			if c.providers[r] == nil {
				ds = append(ds, undeclared(d.at, "key provider", r)...)
			}
		}
		if c.cyclic(key, map[string]bool{}) {
			ds = append(ds, diag.Errorf(diag.CodeEncryptionCycle, &d.at, "Circular reference in encryption blocks", "The key provider %s refers to itself.", key)...)
		}
	}
	for _, key := range sorted(c.methods) {
		for _, r := range c.methods[key].refs {
			if c.providers[r] == nil {
				ds = append(ds, undeclared(c.methods[key].at, "key provider", r)...)
			}
		}
		ds = append(ds, c.checkMetadata(key)...)
		ds = append(ds, c.checkMethod(key)...)
	}
	plain := map[string]bool{}
	for _, name := range sorted(c.targets) {
		t := c.targets[name]
		for _, m := range t.methods {
			d := c.methods[m]
			switch {
			case d == nil:
				ds = append(ds, undeclared(t.at, "encryption method", m)...)
			case d.typ != unencrypted:
			case t.enforced:
				ds = append(ds, diag.Errorf(diag.CodeEncryptionEnforced, &t.at, "Unencrypted method is forbidden", "The target has enforced = true, so neither its method nor a fallback may be \"unencrypted\".")...)
			case !plain[m]:
				plain[m] = true
				ds = append(ds, diag.Warnf(diag.CodeEncryptionUnencrypted, &d.at, "Unencrypted method configured", "Method unencrypted is present in configuration. This is a security risk and should only be enabled during migrations.")...)
			}
		}
	}
	return ds
}

// checkMetadata reports two key providers of a method with the same metadata name. Key
// providers of different methods may share a name, since an encrypted file contains the
// metadata of one method.
func (c *Config) checkMetadata(method string) diag.List {
	used := map[string]bool{}
	c.use(c.methods[method].refs, used)
	var ds diag.List
	names := map[string]string{}
	for _, key := range sorted(used) {
		name := c.meta(key)
		if first, twice := names[name]; twice {
			ds = append(ds, diag.Errorf(diag.CodeEncryptionMetadataKey, &c.providers[key].at, "Duplicate metadata key", "%s and %s, which %s uses, keep their metadata under the same name, %q. Give one of them another encrypted_metadata_alias.", first, key, method, name)...)
		}
		names[name] = key
	}
	return ds
}

// use adds the key providers in refs, and those that they refer to, to used.
func (c *Config) use(refs map[string]string, used map[string]bool) {
	for _, r := range refs {
		if d := c.providers[r]; d != nil && !used[r] {
			used[r] = true
			c.use(d.refs, used)
		}
	}
}

// checkArguments checks the arguments of the key providers that the targets use.
func (c *Config) checkArguments() diag.List {
	used := map[string]bool{}
	for _, t := range c.targets {
		for _, m := range t.methods {
			c.use(c.methods[m].refs, used)
		}
	}
	var ds diag.List
	for _, name := range sorted(used) {
		if err := c.keyring(name).wrong; err != nil {
			d := c.providers[name]
			ds = append(ds, diag.Errorf(diag.CodeEncryptionConfiguration, &d.at, "Invalid encryption configuration", "%s: %s.", name, strings.TrimSuffix(diag.Reason(err), "."))...)
		}
	}
	return ds
}

func undeclared(at source.Range, what, ref string) diag.List {
	return diag.Errorf(diag.CodeEvalUndeclared, &at, "Reference to undeclared "+what, "There is no %s %s in the encryption configuration.", what, ref)
}

func (c *Config) cyclic(key string, on map[string]bool) bool {
	if on[key] {
		return true
	}
	on[key] = true
	defer delete(on, key)
	d := c.providers[key]
	if d == nil {
		return false
	}
	for _, r := range d.refs {
		if c.cyclic(r, on) {
			return true
		}
	}
	return false
}

// meta returns the name under which the metadata of a key provider is stored.
func (c *Config) meta(key string) string {
	if d := c.providers[key]; d.alias != "" {
		return d.alias
	}
	return key
}

// State returns the target of states; nil if they are not encrypted. c may be nil.
func (c *Config) State(ctx context.Context) *Target { return c.target(ctx, "state") }

// Plan returns the target of plan files; nil if they are not encrypted. c may be nil.
func (c *Config) Plan(ctx context.Context) *Target { return c.target(ctx, "plan") }

// RemoteState returns the target of the state that a data source reads, given the data source's
// address. It is nil if none is configured. c may be nil.
func (c *Config) RemoteState(ctx context.Context, address string) *Target {
	name := strings.Replace(address, "data.terraform_remote_state.", "", 1)
	name = strings.TrimPrefix(name, "module.")
	t := c.target(ctx, "data "+name)
	if t == nil {
		t = c.target(ctx, "default")
	}
	if t != nil {
		t.read = true
	}
	return t
}

func (c *Config) target(ctx context.Context, name string) *Target {
	if c == nil || c.targets[name] == nil {
		return nil
	}
	return &Target{c: c, ctx: context.WithoutCancel(ctx), methods: c.targets[name].methods}
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
