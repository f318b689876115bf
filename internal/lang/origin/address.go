package origin

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
)

// # Addresses
//
// A finder parses the whole address before the replay starts, and returns a begin function, which the
// replay calls. Therefore, all errors in addresses are reported in this file, and no other errors are.

// A finder resolves addresses.
type finder struct {
	in *reader
}

// A begin adds the first steps of an explanation and returns the cursor where the replay continues. A
// cursor without a frame means that the explanation is complete.
type begin func(*replay) cursor

// find parses an address and resolves it.
func (r finder) find(address string) (begin, diag.List) {
	traversal, diags := hclsyntax.ParseTraversalAbs([]byte(address), "<address>", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, bad("The address %q cannot be read: %s", address, diags[0].Detail)
	}
	path, ok := steps(traversal)
	if !ok {
		return nil, bad("The address %q stands for many values; name one of them by its key or index.", address)
	}
	if r.in.e.Unit != nil {
		if b, done, ds := r.unitPart(traversal); done {
			return b, ds
		}
	}
	if r.in.e.Eval == nil && len(path) > 1 && path[0].name() == "var" {
		return r.unreadVariable(path[1:])
	}
	if r.in.e.Eval == nil {
		return nil, bad("The module of this unit cannot be read, so what it holds is not known. An address of a part of the unit begins with one of %s.", strings.Join(unitRoots, ", "))
	}
	m := r.in.e.Eval.Root
	for len(path) >= 2 && path[0].name() == "module" {
		call := m.Call(path[1].name())
		if call == nil {
			return nil, bad("There is no module call %q in %s.%s", path[1].name(), where(m), lang.Suggest(path[1].name(), m.Node.Config.Calls))
		}
		b, child, rest, ds := r.intoCall(call, path[2:])
		if b != nil || ds.HasErrors() {
			return b, ds
		}
		m, path = child, rest
	}
	return r.within(m, path)
}

// unitRoots contains some of the first names in addresses of a unit, for messages.
var unitRoots = []string{"inputs", "local", "import", "include", "dependency", "feature", "values", "remote_state", "terraform", "generate"}

// unitPart resolves the address of a part of the unit. done is false if the address is that of a part
// of the module. A local value or a terraform block may exist in both: the unit has precedence.
func (r finder) unitPart(address hcl.Traversal) (b begin, done bool, ds diag.List) {
	way, ok, ds := r.in.e.Unit.Part(address)
	if !ok {
		return nil, false, nil
	}
	if root := address.RootName(); ds.HasErrors() && r.in.e.Eval != nil && len(address) > 1 && (root == "local" || root == "terraform") {
		path, _ := steps(address)
		cfg := r.in.e.Eval.Root.Node.Config
		if root == "local" && cfg.Locals[path[1].name()] != nil || root == "terraform" && slices.Contains(terraformParts, path[1].name()) {
			return nil, false, nil
		}
	}
	if ds.HasErrors() {
		return nil, true, ds
	}
	return func(r *replay) cursor {
		r.secrecy = r.in.secrecyOf(address)
		return r.take(way)
	}, true, nil
}

// unreadVariable explains a variable of a module that cannot be read, by the unit's input with its name.
// Other sources could override the input, which the first step mentions.
func (r finder) unreadVariable(path []step) (begin, diag.List) {
	label := "var" + pathText(path)
	address := traversal(join([]step{nameStep("inputs")}, path))
	way, ok, ds := r.in.e.Unit.Part(address)
	if !ok || ds.HasErrors() {
		why := ""
		if len(ds.Errors()) > 0 {
			why = " " + ds.Errors()[0].Detail
		}
		return nil, bad("The module of this unit cannot be read, so whether anything but an input gives %s is not known.%s", label, why)
	}
	return func(r *replay) cursor {
		r.add(&Step{Kind: ModuleInput, Text: label + " is the variable of a module that cannot be read: the unit gives it this input, unless a variable file, the environment or a flag wins over that"})
		r.secrecy = r.in.secrecyOf(address)
		return r.take(way)
	}, nil
}

// intoCall resolves the part of an address after a module call. It returns a begin if the address is
// that of the call or of one of its arguments. Otherwise it returns the instance of the called module,
// and the rest of the path inside it.
func (r finder) intoCall(call *eval.Call, path []step) (b begin, child *eval.Module, rest []step, ds diag.List) {
	m, cfg := call.Module(), call.Config()
	label := named(m, "module."+call.Name())
	f := &frame{mod: m, scope: call.AnyScope()}
	f.repeat, f.forEach = repetition(cfg.Repeat)
	own := ownBlock{"module", cfg.At, cfg.Merged, label}
	if len(path) > 0 && !path[0].brackets && own.defines(m, path[0].name()) {
		return own.begin(moduleFrame(m), path, nil), nil, nil, nil
	}
	argument := func(path []step) bool {
		return len(path) > 0 && cfg.Body != nil && m.Node.Config.Setting(cfg.Body, path[0].name()) != nil
	}
	if call.Node == nil { // module.NAME.var.x is the argument x of the call
		switch {
		case len(path) > 1 && path[0].name() == "var" && argument(path[1:]):
			path = path[1:]
		case len(path) > 2 && path[0].brackets && path[1].name() == "var" && argument(path[2:]):
			path = slices.Delete(slices.Clone(path), 1, 2)
		}
	}
	switch {
	case call.Node == nil && argument(path):
		return inBody(f, cfg.Body, path, label), nil, nil, nil
	case call.Node == nil && len(path) > 1 && path[0].brackets && argument(path[1:]):
		if k, fits := keyOf(path, f.forEach); fits {
			f.key = k
		}
		return inBody(f, cfg.Body, path[1:], label+pathText(path[:1])), nil, nil, nil
	case call.Node == nil && len(path) > 0:
		return nil, nil, nil, bad("The module %s is not installed, so what it holds is not known.", label)
	case call.Node == nil:
		return wholeBlock(whole{text: label, origin: m.Node.Config.Origin(cfg.At, cfg.Merged), f: f, body: cfg.Body}), nil, nil, nil
	case f.repeat == nil:
		child, rest = r.in.child(call, path)
	case len(path) > 0 && path[0].brackets:
		if child, rest = r.in.child(call, path); child == nil {
			return nil, nil, nil, bad("%s has no instance %s.%s", label, pathText(path[:1]), r.in.childrenOf(call))
		}
		f, label = inputFrame(child), string(child.Addr)
	default:
		child, rest = call.AnyChild(), path
	}
	if child == nil {
		return nil, nil, nil, bad("The instances of %s are not known.", label)
	}
	switch {
	case len(rest) == 0:
		return wholeBlock(whole{text: label, origin: m.Node.Config.Origin(cfg.At, cfg.Merged), f: f, body: cfg.Body, secret: func(name string) bool {
			v := call.Node.Config.Variables[name]
			return v != nil && v.Sensitive
		}}), nil, nil, nil
	case f.repeats(rest):
		return repetitionOf(f, rest), nil, nil, nil
	}
	return nil, child, rest, nil
}

// inBody begins at an argument of a block. what is the address of the block.
func inBody(f *frame, body hcl.Body, path []step, what string) begin {
	return func(r *replay) cursor { return r.blocks().inBody(f, body, path, what, nil) }
}

// repetitionOf begins at each.value, each.key or count.index.
func repetitionOf(f *frame, path []step) begin {
	return func(r *replay) cursor { return r.repeated(cursor{f: f}, path) }
}

// wholeBlock explains a whole block.
func wholeBlock(w whole) begin {
	return func(r *replay) cursor {
		r.blocks().wholeOf(w)
		return cursor{}
	}
}

// within resolves the rest of an address in a module.
func (r finder) within(m *eval.Module, path []step) (begin, diag.List) {
	cfg := m.Node.Config
	root := path[0].name()
	second, rest := "", []step(nil)
	if len(path) > 1 {
		second, rest = path[1].name(), path[2:]
	}
	end := cursor{f: moduleFrame(m)} // placeholder for objects that exist; the replay does not follow it
	switch root {
	case "local":
		if cfg.Locals[second] == nil {
			return nil, missing(m, "local value", second, cfg.Locals)
		}
		return func(r *replay) cursor { return r.local(m, second, rest, end) }, nil
	case "var":
		if cfg.Variables[second] == nil {
			return nil, missing(m, "input variable", second, cfg.Variables)
		}
		return func(r *replay) cursor { return r.variable(m, second, rest, end) }, nil
	case "output":
		if cfg.Outputs[second] == nil {
			return nil, missing(m, "output", second, cfg.Outputs)
		}
		return func(r *replay) cursor { return r.output(m, second, rest, end) }, nil
	case "provider":
		return r.provider(m, path[1:])
	case "terraform":
		return r.terraform(m, path)
	}
	if a, tail, ok := resourceAddr(path); ok {
		if res := m.Resource(a); res != nil {
			return r.resource(res, tail)
		}
	}
	if m.Parent() != nil && cfg.Outputs[root] != nil {
		return func(r *replay) cursor { return r.output(m, root, path[1:], end) }, nil
	}
	if m.Parent() != nil && cfg.Variables[root] != nil {
		return func(r *replay) cursor { return r.variable(m, root, path[1:], end) }, nil
	}
	return nil, r.nothing(m, path)
}

// resource resolves the rest of an address after the name of a resource.
func (r finder) resource(res *eval.Resource, path []step) (begin, diag.List) {
	var k addr.Key
	repeat, forEach := repetition(res.Config().Repeat)
	if repeat != nil && k == (addr.Key{}) && len(path) > 0 && path[0].brackets {
		key, ok := keyOf(path, forEach)
		if !ok {
			return nil, bad("%s is not an instance key of %s.", pathText(path[:1]), res.Addr())
		}
		if in, fine := res.Instances(r.in.t); fine && in.Get(key) == nil {
			return nil, bad("%s has no instance with the key %s.%s", res.Addr(), key, instancesOf(in))
		}
		k, path = key, path[1:]
	}
	if len(path) > 0 && path[0].brackets {
		return nil, bad("%s has no instances with keys: its block has neither count nor for_each.", res.Addr())
	}
	f := r.in.resourceFrame(res, k)
	if len(path) == 0 {
		state := r.in.self(res, k)
		return wholeBlock(whole{text: res.Addr().String() + k.String(), origin: res.Mod.Node.Config.Origin(res.Config().At, res.Config().Merged), f: f, body: res.Config().Body, secret: func(name string) bool {
			return secretAt(state, []step{nameStep(name)})
		}}), nil
	}
	if f.repeats(path) {
		return repetitionOf(f, path), nil
	}
	if ds := r.noSuchAttribute(res, path[0].name()); ds.HasErrors() {
		return nil, ds
	}
	return func(r *replay) cursor { return r.argument(res, k, path) }, nil
}

// noSuchAttribute returns an error if the schema of a resource type does not contain a name and the
// language does not define it either. It returns nil if the schema is not available.
func (r finder) noSuchAttribute(res *eval.Resource, name string) diag.List {
	cfg := res.Config()
	if config.Defines(blockType(cfg.Addr.Mode), name) {
		return nil
	}
	p := r.in.schemaOf(res.Provider())
	if p == nil {
		return nil
	}
	s := p.Resource(cfg.Addr.Mode, cfg.Addr.Type)
	if s == nil || s.Block == nil || s.Block.Attributes[name] != nil || s.Block.Blocks[name] != nil {
		return nil
	}
	o := res.Mod.Node.Config.Origin(cfg.At, cfg.Merged) // reads the file again
	if o.Setting(name) != nil || slices.ContainsFunc(o.Blocks(), func(n config.NestedOrigin) bool { return n.Type == name }) {
		return nil
	}
	names := map[string]bool{}
	for n := range s.Block.Attributes {
		names[n] = true
	}
	for n := range s.Block.Blocks {
		names[n] = true
	}
	return bad("%s has no argument, attribute or block %q.%s", res.Addr(), name, lang.Suggest(name, names))
}

func instancesOf(in *eval.Instances) string {
	keys := make([]addr.Key, 0, len(in.All))
	for _, d := range in.All {
		keys = append(keys, d.Key())
	}
	return someKeys(keys)
}

func (r *reader) childrenOf(call *eval.Call) string {
	ch, ok := call.Children(r.t)
	if !ok || ch.Unknown {
		return ""
	}
	var keys []addr.Key
	for _, m := range ch.All {
		steps := m.Addr.Steps()
		keys = append(keys, steps[len(steps)-1].Key)
	}
	return someKeys(keys)
}

// someKeys returns a sentence that lists up to five keys.
func someKeys(keys []addr.Key) string {
	if len(keys) == 0 {
		return " It has none."
	}
	var out []string
	for i, k := range keys {
		if i == 5 {
			out = append(out, "…")
			break
		}
		out = append(out, k.String())
	}
	return " It has " + strings.Join(out, ", ") + "."
}

// provider resolves provider.NAME[.ALIAS][KEY].ARGUMENT.
func (r finder) provider(m *eval.Module, path []step) (begin, diag.List) {
	if len(path) == 0 {
		return nil, bad("An address of a provider configuration needs its name, as in provider.NAME or provider.NAME.ALIAS.")
	}
	cfg := m.Node.Config.Providers[path[0].name()]
	rest := path[1:]
	if len(rest) > 0 {
		if aliased := m.Node.Config.Providers[path[0].name()+"."+rest[0].name()]; aliased != nil {
			cfg, rest = aliased, rest[1:]
		}
	}
	if cfg == nil {
		return nil, bad("There is no provider configuration %q in %s.%s", path[0].name(), where(m), lang.Suggest(path[0].name(), m.Node.Config.Providers))
	}
	what := named(m, "provider."+cfg.Key())
	f := &frame{mod: m, scope: m, repeat: cfg.ForEach, forEach: true, guard: r.in.providerGuard(m, cfg)}
	for _, p := range m.ProviderInstances(r.in.t) {
		if p.Block() != cfg {
			continue
		}
		if cfg.ForEach == nil || len(rest) > 0 && rest[0].brackets && p.Addr.Key == addr.Str(rest[0].name()) {
			f.scope, f.key = p.Scope(), p.Addr.Key
			break
		}
	}
	if f.key != (addr.Key{}) {
		what += f.key.String()
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0:
		return wholeBlock(whole{text: what, origin: m.Node.Config.Origin(cfg.At, cfg.Merged), f: f, body: cfg.Body}), nil
	case f.repeats(rest):
		return repetitionOf(f, rest), nil
	}
	if own := (ownBlock{"provider", cfg.At, cfg.Merged, what}); own.defines(m, rest[0].name()) {
		return own.begin(moduleFrame(m), rest, nil), nil
	}
	return inBody(f, cfg.Body, rest, what), nil
}

func bad(format string, args ...any) diag.List {
	return diag.Errorf(diag.CodeOriginAddress, nil, "Nothing to explain", format, args...)
}

func where(m *eval.Module) string {
	if m.Addr == "" {
		return "the root module"
	}
	return string(m.Addr)
}

func missing[V any](m *eval.Module, kind, name string, among map[string]V) diag.List {
	if name == "" {
		return bad("The address needs the name of the %s.", kind)
	}
	return bad("There is no %s %q in %s.%s", kind, name, where(m), lang.Suggest(name, among))
}

// nothing returns the error for an address that does not exist, with a suggestion.
func (r finder) nothing(m *eval.Module, path []step) diag.List {
	a, _, ok := resourceAddr(path)
	if cfg := m.Node.Config; m.Parent() != nil && (len(path) == 1 || !ok) {
		names := map[string]bool{}
		for name := range cfg.Outputs {
			names[name] = true
		}
		for name := range cfg.Variables {
			names[name] = true
		}
		return bad("There is no output and no input variable %q in %s.%s", path[0].name(), where(m), lang.Suggest(path[0].name(), names))
	}
	if !ok {
		return bad("%q is not an address. An address is one of TYPE.NAME, data.TYPE.NAME, module.NAME, var.NAME, local.NAME, output.NAME and provider.NAME, with module.NAME. in front for what a module holds, followed by the names of arguments.", pathText(path)[1:])
	}
	names := map[string]bool{}
	for have := range m.Node.Config.Resources {
		names[have.String()] = true
	}
	near := lang.Suggest(a.String(), names)
	if near == "" && a.Mode == addr.Managed {
		near = lang.Suggest(a.Type, map[string]bool{"var": true, "local": true, "output": true, "module": true, "data": true, "provider": true, "terraform": true})
	}
	return bad("There is no %s in %s.%s", a, where(m), near)
}
