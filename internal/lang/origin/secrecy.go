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

// # What must not be shown
//
// A value is secret if the configuration says so (a sensitive variable or output,
// the function sensitive), if state does, or if a provider's schema calls the
// argument sensitive or write-only. Schemas are asked for where they are at hand.
// Where one is not, and in connection and provisioner blocks, which have none,
// an argument or a key of a map counts as secret if its name says that it holds
// one (secretWords).
//
// A provider may repeat in one attribute what it was given in another: the output
// of terraform_data is its input. So what state has of an instance is secret,
// too, where it repeats something secret of that instance (tainted).

// evidence is what one stop of a way tells of the part that is followed. Fields that are
// not set say nothing.
type evidence struct {
	declared bool // the configuration calls it sensitive, or it feeds a variable that is
	// value is that of an expression, whose marks count on the way along path and below.
	value cty.Value
	path  []step
	// argument is the path of an argument in a block with that guard. Where no schema decides,
	// so do names in the content of the argument and in the expression that gives it.
	guard    guard
	argument []step
	content  cty.Value
	expr     hcl.Expression
}

// secret decides whether the part must not be shown. It is the one place that does: what a
// replay met before, and in which order, has no influence.
func (e evidence) secret() bool {
	return e.declared ||
		e.value != cty.NilVal && secretAt(e.value, e.path) ||
		e.guard.secret(e.argument) ||
		e.content != cty.NilVal && e.guard.holds(e.content) ||
		e.expr != nil && holdsItem(e.expr)
}

// A secrecy is what was decided about the part that a replay follows. A part that is secret at
// one stop stays so at all later ones, since sensitivity is often declared where a value is
// received and not where it is written.
type secrecy struct {
	secret bool
	names  naming
	inputs bool // the part is all inputs of the unit, some of which may be secret
}

// weigh decides by more evidence, and returns what is decided so far.
func (s *secrecy) weigh(e evidence) bool {
	s.secret = s.secret || e.secret()
	return s.secret
}

// A naming tells whether names decide what is secret.
type naming uint8

const (
	schemasDecide naming = iota // a schema does, or nothing that has names is followed
	blockNames                  // names on the way do: the last block has no schema
	namesDecide                 // names do, on the way and in the value: nothing has a schema
)

// follows is called with the guard of each block that the way leads into.
func (s *secrecy) follows(g guard) {
	switch {
	case s.names == namesDecide:
	case g.byName:
		s.names = blockNames
	default:
		s.names = schemasDecide
	}
}

// secrecyOf is what the address of a part of a unit decides. An input is secret if its variable
// is. Names decide if the module is not known, and in all other parts, which have no schema
// that calls anything sensitive.
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

// withoutInputs marks in the value of all inputs those of sensitive variables.
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

// A guard tells which arguments of a block are secret. The zero guard is that of
// a block whose arguments are not.
type guard struct {
	block  *schema.Block // nil where there is no schema
	byName bool          // whether names decide where there is no schema
	load   func() guard  // makes the guard when it is needed; nil: this is it
}

// loaded is the guard itself: schemas are asked for no sooner than that.
func (g guard) loaded() guard {
	if g.load != nil {
		return g.load()
	}
	return g
}

// secretWords are what names of arguments have in common that hold secrets.
var secretWords = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential", "private_key", "privatekey",
	"access_key", "accesskey", "api_key", "apikey", "account_key", "auth_key", "shared_key", "connection_string",
}

// secretName reports whether a name says that it holds a secret.
func secretName(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// secret reports whether the part of the block at a path is secret, or has
// something in it that is.
func (g guard) secret(path []step) bool {
	switch g = g.loaded(); {
	case g.block != nil:
		return secretInBlock(g.block, path)
	case g.byName:
		return slices.ContainsFunc(path, func(s step) bool { return s.key.Type() == cty.String && secretName(s.name()) })
	}
	return false
}

// holds reports whether a value has a key that says that it holds a secret.
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

// into is the guard of a nested block.
func (g guard) into(name string) guard {
	if g = g.loaded(); g.block == nil {
		return g
	}
	if nb := g.block.Blocks[name]; nb != nil {
		return guard{block: nb.Block}
	}
	return guard{byName: true} // an attribute that is written as blocks
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

// resourceGuard is that of the arguments of a resource.
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

// providerGuard is that of the arguments of a provider configuration.
func (r *reader) providerGuard(m *eval.Module, cfg *config.Provider) guard {
	return guard{load: func() guard {
		if p := r.schemaOf(m.Node.Config.Source(cfg.Name)); p != nil {
			return guard{block: p.Config}
		}
		return guard{byName: true}
	}}
}

// schemaOf is the schema of a provider, or nil if it is not at hand.
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

// known is what state has of an instance, marked where it is secret.
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

// tainted marks what repeats a secret of the value itself or of the
// configuration that it was made from.
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
	if err != nil { // the function returns none
		return v
	}
	return out
}

// secrets are the strings and other simple values that are secret.
type secrets struct {
	texts  []string
	others []cty.Value
	index  *secretIndex // of texts and others; nil: not made yet
}

// add gathers what is secret in a value; all of it if it lies in something secret.
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

// shortest is how long a secret is at least that is looked for within texts.
const shortest = 4

// repeats reports whether a simple value is or contains a secret.
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

// A secretIndex finds secrets in a time that hardly grows with how many there are.
type secretIndex struct {
	whole  map[string]bool
	within []string // those that are looked for in texts, sorted; none begins with another
	others map[int][]cty.Value
}

func newSecretIndex(s *secrets) *secretIndex {
	x := &secretIndex{whole: make(map[string]bool, len(s.texts)), others: map[int][]cty.Value{}}
	for _, t := range s.texts {
		x.whole[t] = true
	}
	for _, t := range slices.Sorted(maps.Keys(x.whole)) {
		if n := len(x.within); len(t) < shortest || n > 0 && strings.HasPrefix(t, x.within[n-1]) {
			continue // a text that has it in it has the other one, too
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

// holds reports whether a text is a secret or has one in it. A secret that begins at a place
// of the text is the last one in order that is not after what begins there, since whatever
// is between them would begin with it.
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

// holdsItem reports whether an expression writes out, in what it gives to functions
// such as jsonencode, an item whose name says that it is a secret.
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
					found = found || !diags.HasErrors() && key.IsKnown() && !key.IsNull() && key.Type() == cty.String && secretName(key.AsString())
				}
				return nil
			})
		}
		return nil
	})
	return found
}
