package origin

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// # Secrets
//
// A value is secret if the configuration marks it (a sensitive variable or output, the function
// sensitive), if the state marks it, or if the schema of a provider marks the argument as sensitive or
// write-only. If no schema is available, and in connection and provisioner blocks, which have none, an
// argument or a key of a map is secret if its name suggests a secret (secretWords).
//
// A provider may return the value of one attribute in another attribute: the output of terraform_data is
// its input. Therefore, a value in the state is also secret if it equals a secret of the same instance
// (tainted).

// evidence contains the facts at one stop of a way that decide whether the followed part is secret. Zero
// fields have no influence.
type evidence struct {
	declared bool // the configuration marks the part as sensitive, or it flows into a sensitive variable
	// value is the value of an expression. Its marks along path, and inside the part at path, decide.
	value cty.Value
	path  []step
	// argument is the path of an argument in a block with the guard. If there is no schema, names
	// in content, the value of the argument, and in its expression decide too.
	guard    guard
	argument []step
	content  cty.Value
	expr     hcl.Expression
}

// secret reports whether the part must not be shown. All such decisions are made here. They do not depend
// on earlier stops or their order.
func (e evidence) secret() bool {
	return e.declared ||
		e.value != cty.NilVal && secretAt(e.value, e.path) ||
		e.guard.secret(e.argument) ||
		e.content != cty.NilVal && e.guard.holds(e.content) ||
		e.expr != nil && holdsItem(e.expr)
}

// A secrecy is the decision about the part that a replay follows. A part that is secret at one stop is
// secret at all later stops, because sensitivity is often declared where a value is received and not where
// it is written.
type secrecy struct {
	secret bool
	names  naming
	inputs bool // the part is all inputs of the unit, some of which may be secret
}

// weigh adds evidence and reports whether the part is secret so far.
func (s *secrecy) weigh(e evidence) bool {
	s.secret = s.secret || e.secret()
	return s.secret
}

// A naming selects whether names decide which values are secret.
type naming uint8

const (
	schemasDecide naming = iota // names do not decide: there is a schema, or no block or map is followed
	blockNames                  // names on the way decide, because the last block has no schema
	namesDecide                 // names on the way and in the value decide, because nothing has a schema
)

// follows updates names for a block that the way enters. g is the guard of the block.
func (s *secrecy) follows(g guard) {
	switch {
	case s.names == namesDecide:
	case g.byName:
		s.names = blockNames
	default:
		s.names = schemasDecide
	}
}

// secrecyOf returns the initial secrecy of a part of a unit. An input is secret if its variable is
// sensitive. For other parts, and if the module is not known, names decide, because there is no schema.
func (r *reader) secrecyOf(address hcl.Traversal) (s secrecy) {
	path, _ := steps(address)
	root := path[0].name()
	if root != "inputs" || r.e.Eval == nil {
		s.names = namesDecide
	}
	switch {
	case len(path) == 1:
		s.inputs = root == "inputs"
	case s.names == namesDecide:
		s.weigh(evidence{guard: guard{byName: true}, argument: path[1:]})
	case root == "inputs":
		v := r.e.Eval.Root.Node.Config.Variables[path[1].name()]
		s.weigh(evidence{declared: v != nil && v.Sensitive})
	}
	return s
}

// withoutInputs marks the inputs of sensitive variables, if v is the value of all inputs.
func (s secrecy) withoutInputs(r *reader, v cty.Value) cty.Value {
	if v == cty.NilVal || r.e.Unit == nil || v.Type().IsPrimitiveType() {
		return v
	}
	bare, _ := v.Unmark()
	if !s.inputs || !bare.IsKnown() || bare.IsNull() || !bare.Type().IsObjectType() {
		return v
	}
	for name := range bare.Type().AttributeTypes() {
		e := evidence{guard: guard{byName: true}, argument: []step{nameStep(name)}}
		if r.e.Eval != nil {
			d := r.e.Eval.Root.Node.Config.Variables[name]
			e = evidence{declared: d != nil && d.Sensitive}
		}
		if e.secret() {
			v = value.MarkPaths(v, value.Sensitive, cty.GetAttrPath(name))
		}
	}
	return v
}

// A guard decides which arguments of a block are secret. With the zero guard, none are.
type guard struct {
	block  *schema.Block // nil if there is no schema
	byName bool          // names decide if there is no schema
	load   func() guard  // creates the guard on first use; nil means that the other fields are set
}

// loaded returns the guard with its schema. Schemas are not requested before the first use, since this
// may start a provider.
func (g guard) loaded() guard {
	if g.load != nil {
		return g.load()
	}
	return g
}

// secretWords contains words that are common in the names of secret arguments.
var secretWords = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential", "private_key", "privatekey",
	"access_key", "accesskey", "api_key", "apikey", "account_key", "auth_key", "shared_key", "connection_string",
}

// SecretName reports whether a name suggests a secret.
func SecretName(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// secret reports whether the part of the block at a path is secret or contains a secret.
func (g guard) secret(path []step) bool {
	switch g = g.loaded(); {
	case g.block != nil:
		return secretInBlock(g.block, path)
	case g.byName:
		return slices.ContainsFunc(path, func(s step) bool { return s.key.Type() == cty.String && SecretName(s.name()) })
	}
	return false
}

// holds reports whether a value contains a key that suggests a secret. It returns false if there is a
// schema.
func (g guard) holds(v cty.Value) bool {
	if g = g.loaded(); g.block != nil || !g.byName {
		return false
	}
	found := false
	_ = cty.Walk(unmark(v), func(p cty.Path, v cty.Value) (bool, error) {
		if n := len(p); n > 0 && !v.IsNull() {
			found = found || secretStep(p[n-1])
		}
		return !found, nil
	})
	return found
}

// into returns the guard of a nested block.
func (g guard) into(name string) guard {
	if g = g.loaded(); g.block == nil {
		return g
	}
	if nb := g.block.Blocks[name]; nb != nil {
		return guard{block: nb.Block}
	}
	return guard{byName: true} // an attribute in the syntax of blocks
}

func secretInBlock(b *schema.Block, path []step) bool {
	if len(path) == 0 {
		return false
	}
	name, rest := path[0].name(), path[1:]
	if a := b.Attributes[name]; a != nil {
		return secretAttr(a, rest)
	}
	nb := b.Blocks[name]
	if nb == nil {
		return false
	}
	if len(rest) > 0 && (rest[0].brackets || nb.Nesting == schema.Map) {
		rest = rest[1:]
	}
	return secretInBlock(nb.Block, rest)
}

func secretAttr(a *schema.Attribute, path []step) bool {
	if a.Sensitive || a.WriteOnly {
		return true
	}
	if a.Nested == nil {
		return false
	}
	if len(path) > 0 && a.Nested.Nesting != schema.Single {
		path = path[1:]
	}
	if len(path) == 0 {
		for _, inner := range a.Nested.Attributes {
			if secretAttr(inner, nil) {
				return true
			}
		}
		return false
	}
	inner := a.Nested.Attributes[path[0].name()]
	return inner != nil && secretAttr(inner, path[1:])
}

// resourceGuard returns the guard of the arguments of a resource.
func (r *reader) resourceGuard(res *eval.Resource) guard {
	return guard{load: func() guard {
		if p := r.schemaOf(res.Provider()); p != nil {
			if s := p.Resource(res.Config().Addr.Mode, res.Config().Addr.Type); s != nil {
				return guard{block: s.Block}
			}
		}
		return guard{byName: true}
	}}
}

// providerGuard returns the guard of the arguments of a provider configuration.
func (r *reader) providerGuard(m *eval.Module, cfg *config.Provider) guard {
	return guard{load: func() guard {
		if p := r.schemaOf(m.Node.Config.Source(cfg.Name)); p != nil {
			return guard{block: p.Config}
		}
		return guard{byName: true}
	}}
}

// schemaOf returns the schema of a provider, or nil if it is not available. The provider is then recorded
// in unchecked.
func (r *reader) schemaOf(a addr.Provider) *schema.Provider {
	if r.e.Schema == nil {
		return nil
	}
	p := r.e.Schema(a)
	if p == nil && !slices.Contains(r.unchecked, a) {
		r.unchecked = append(r.unchecked, a)
	}
	return p
}

// known returns the value of an instance in the state, with secrets marked, or cty.NilVal.
func (e *Explainer) known(t *demand.Task, d *eval.Desired) cty.Value {
	if e.Known == nil || d == nil {
		return cty.NilVal
	}
	v := e.Known(d.Addr())
	if v == cty.NilVal {
		return v
	}
	cfg := d.Resource.Config()
	var config cty.Value
	if e.Schema != nil {
		if p := e.Schema(d.Resource.Provider()); p != nil {
			if s := p.Resource(cfg.Addr.Mode, cfg.Addr.Type); s != nil {
				config, _ = d.Config(t, s)
			}
		}
	}
	return tainted(v, config)
}

// tainted marks the parts of v that contain a secret of v itself, or of the configuration of the same
// instance.
func tainted(v, config cty.Value) cty.Value {
	s := &secrets{}
	s.add(v, false)
	if config != cty.NilVal {
		s.add(config, false)
		for _, p := range value.PathsWith(config, value.Sensitive) {
			v = value.MarkPaths(v, value.Sensitive, p)
		}
	}
	if len(s.texts) == 0 && len(s.others) == 0 {
		return v
	}
	out, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if s.repeats(v) {
			return v.Mark(value.Sensitive), nil
		}
		return v, nil
	})
	if err != nil { // cannot happen: the function returns no errors
		return v
	}
	return out
}

// secrets contains secret strings and other secret primitive values.
type secrets struct {
	texts  []string
	others []cty.Value
	index  *secretIndex // index of texts and others; nil until the first use
}

// add adds the secret parts of a value. If inside is set, the whole value is secret.
func (s *secrets) add(v cty.Value, inside bool) {
	inside = inside || value.Secret(v)
	s.index = nil
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown() || v.IsNull():
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			_, el := it.Element()
			s.add(el, inside)
		}
	case !inside:
	case v.Type() == cty.String:
		if text := v.AsString(); text != "" {
			s.texts = append(s.texts, text)
		}
	case v.Type().IsPrimitiveType():
		s.others = append(s.others, v)
	}
}

// shortest is the length, in bytes, below which a secret is not searched inside longer texts.
const shortest = 4

// repeats reports whether a primitive value is or contains a secret.
func (s *secrets) repeats(v cty.Value) bool {
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown() || v.IsNull() || !v.Type().IsPrimitiveType():
		return false
	}
	if s.index == nil {
		s.index = newSecretIndex(s)
	}
	if v.Type() == cty.String {
		return s.index.holds(v.AsString())
	}
	return slices.ContainsFunc(s.index.others[v.Hash()], func(o cty.Value) bool { return o.RawEquals(v) })
}

// A secretIndex finds secrets in texts. The time of a search hardly depends on the number of secrets.
type secretIndex struct {
	whole  map[string]bool
	within []string // secrets to find inside texts, sorted; none is a prefix of another
	others map[int][]cty.Value
}

func newSecretIndex(s *secrets) *secretIndex {
	x := &secretIndex{whole: make(map[string]bool, len(s.texts)), others: map[int][]cty.Value{}}
	for _, t := range s.texts {
		x.whole[t] = true
	}
	for _, t := range slices.Sorted(maps.Keys(x.whole)) {
		if n := len(x.within); len(t) < shortest || n > 0 && strings.HasPrefix(t, x.within[n-1]) {
			continue // a text that contains t also contains its prefix
		}
		x.within = append(x.within, t)
	}
	for _, o := range s.others {
		h := o.Hash()
		if !slices.ContainsFunc(x.others[h], o.RawEquals) {
			x.others[h] = append(x.others[h], o)
		}
	}
	return x
}

// holds reports whether a text is or contains a secret. For each position, a binary search suffices: if a
// secret begins there, it is the greatest secret that does not sort after the rest of the text. A secret
// between the two would have it as a prefix, and x.within contains none with a prefix in x.within.
func (x *secretIndex) holds(text string) bool {
	if x.whole[text] {
		return true
	}
	for i := 0; i+shortest <= len(text) && len(x.within) > 0; i++ {
		n, found := slices.BinarySearch(x.within, text[i:])
		if found || n > 0 && strings.HasPrefix(text[i:], x.within[n-1]) {
			return true
		}
	}
	return false
}

// holdsItem reports whether an expression encodes, with a function such as jsonencode, an object
// constructor with an item whose name suggests a secret.
func holdsItem(x hcl.Expression) bool {
	node, ok := unwrap(x).(hclsyntax.Node)
	if !ok {
		return false
	}
	found := false
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		call, ok := n.(*hclsyntax.FunctionCallExpr)
		if !ok || !strings.HasSuffix(call.Name, "encode") {
			return nil
		}
		for _, a := range call.Args {
			_ = hclsyntax.VisitAll(a.(hclsyntax.Node), func(n hclsyntax.Node) hcl.Diagnostics {
				obj, ok := n.(*hclsyntax.ObjectConsExpr)
				if !ok {
					return nil
				}
				for _, it := range obj.Items {
					key, diags := it.KeyExpr.Value(nil)
					found = found || !diags.HasErrors() && key.IsKnown() && !key.IsNull() && key.Type() == cty.String && SecretName(key.AsString())
				}
				return nil
			})
		}
		return nil
	})
	return found
}
