package outliner

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Fingerprints of expressions
//
// The fingerprint of a known value is computed from the value. The fingerprint of an unknown value
// is computed from its definition: the expression, in which every known part is replaced by its
// value, and every reference by the fingerprint of its target. A reference ends at an object whose
// value only a provider knows; its fingerprint is that of the object's configuration. Two unknown
// values with equal fingerprints are therefore the same value. The text of an expression counts
// without comments and white space, and references, parentheses and object constructors are
// transparent, so that a value that only passes through another name keeps its fingerprint.

// maxDepth is the number of nested definitions after which a fingerprint no longer follows
// references. Real configurations stay far below it.
const maxDepth = 20_000

// A frame is the environment of an expression.
type frame struct {
	mod   *eval.Module // nil in a unit file
	scope lang.Scope
	unit  explanation.Scope // nil in a module

	// Of a repeated block: the argument that repeats it, its frame, and the key of the instance.
	repeat hcl.Expression
	in     *frame
	key    cty.Value // cty.NilVal if it is unknown

	loops []*loop // iterators of dynamic blocks, innermost last
	self  string  // address of the object that self refers to
}

// A loop is the iterator of a dynamic block.
type loop struct {
	name    string
	forEach hcl.Expression
	in      *frame
	key     cty.Value // cty.NilVal if it is unknown
}

// A printer computes fingerprints in one task.
type printer struct {
	t *demand.Task
	o *Options
	// What is computed once: definitions, instances, and everything else.
	parts     map[partKey]result
	instances map[*eval.Desired]result
	memo      map[any]result
	// bodies contains the arguments of instances: they are part of the outline, and of the
	// fingerprints of the values that refer to the instances.
	bodies map[*eval.Desired]printedBody
	after  map[any][]string // see added
	depth  int
	// The frames that were used last: most are used several times in a row.
	inModule, inDesired *frame
	desired             *eval.Desired // of inDesired
	// exact is true if the last fingerprint is that of a value.
	exact bool
	// why contains the reasons for which values are unknown, since reasons was called.
	why []string
}

type result struct {
	outline.Print
	exact bool
	why   []string
}

// A printedBody contains the parts of an instance, and the reasons for which they are unknown.
type printedBody struct {
	parts []outline.Part
	why   []string
}

func newPrinter(t *demand.Task, o *Options) *printer {
	return &printer{t: t, o: o, parts: map[partKey]result{}, instances: map[*eval.Desired]result{}, memo: map[any]result{}, bodies: map[*eval.Desired]printedBody{}, after: map[any][]string{}}
}

// reasons returns the reasons for which values are unknown, sorted, since the last call.
func (p *printer) reasons() []string {
	out := p.why
	p.why = nil
	if !slices.IsSorted(out) { // it may belong to a result in memo
		out = slices.Sorted(slices.Values(out))
	}
	return out
}

// made returns the fingerprint of a definition.
func (p *printer) made(d *digest) outline.Print {
	p.exact = false
	return d.sum()
}

// once computes the fingerprint of something that many expressions refer to.
func (p *printer) once(key any, f func() outline.Print) outline.Print { return once(p, p.memo, key, f) }

func once[K comparable](p *printer, memo map[K]result, key K, f func() outline.Print) outline.Print {
	if v, ok := memo[key]; ok {
		p.exact = v.exact
		p.becauseOf(v.why)
		return v.Print
	}
	memo[key] = result{Print: newDigest("cycle").sum()} // for a reference to itself, which is an error elsewhere
	outer := p.why
	p.why = nil
	v := f()
	why := p.why
	memo[key] = result{v, p.exact, why}
	p.why = outer
	p.becauseOf(why)
	return v
}

func (p *printer) becauseOf(all []string) {
	if len(p.why) == 0 {
		p.why = slices.Clip(all)
		return
	}
	for _, text := range all {
		p.because(text)
	}
}

func (p *printer) because(text string) {
	if !slices.Contains(p.why, text) {
		p.why = append(p.why, text)
	}
}

func (p *printer) eval(f *frame, x hcl.Expression) (cty.Value, diag.List) {
	if f.unit != nil {
		return f.unit.Eval(x, nil)
	}
	if f.scope == nil {
		v, diags := x.Value(nil)
		return v, diag.FromHCL(diags)
	}
	if n := p.o.Shared.node(x); n != nil {
		x = n.compiled
	}
	return lang.Eval(p.t, f.scope, x, cty.DynamicPseudoType)
}

func (p *printer) value(v cty.Value) outline.Print {
	p.exact = true
	return ofValue(v, p.o.Rename)
}

// expr returns the fingerprint of the part of an expression at a path.
func (p *printer) expr(f *frame, x hcl.Expression, path []step) outline.Print {
	v, ds := p.eval(f, x)
	if !ds.HasErrors() {
		if v, ok := part(v, path); ok {
			if v.IsWhollyKnown() {
				return p.value(v)
			}
			return p.unknown(f, x, path, v)
		}
	}
	return p.definition(f, x, path)
}

// unknown returns the fingerprint of the part of an expression at a path. v is its value, which is not wholly
// known.
func (p *printer) unknown(f *frame, x hcl.Expression, path []step, v cty.Value) outline.Print {
	if ids := outputsOf(f, x, v); len(ids) > 0 {
		return p.unitOutputs(ids)
	}
	return p.definition(f, x, path)
}

// A partKey identifies a part of an expression in a module, outside of instances and iterators.
type partKey struct {
	mod  *eval.Module
	x    hclsyntax.Expression
	path string
}

// definition returns the fingerprint of an unknown part of an expression.
func (p *printer) definition(f *frame, x hcl.Expression, path []step) outline.Print {
	native, ok := unwrap(x).(hclsyntax.Expression)
	if m, whole := f.scope.(*eval.Module); ok && whole && len(f.loops) == 0 && f.unit == nil && f.self == "" {
		return once(p, p.parts, partKey{m, native, pathText(path)}, func() outline.Print { return p.defined(f, native, path) })
	}
	return p.defined(f, x, path)
}

func (p *printer) defined(f *frame, x hcl.Expression, path []step) outline.Print {
	if p.depth++; p.depth > maxDepth {
		p.depth--
		return p.made(newDigest("deep"))
	}
	defer func() { p.depth-- }()
	switch x := unwrap(x).(type) {
	case *hclsyntax.ScopeTraversalExpr:
		if ref, ok := p.steps(x); ok {
			if len(path) > 0 {
				ref = slices.Concat(ref, path)
			}
			return p.reference(f, x, ref)
		}
	case *hclsyntax.RelativeTraversalExpr:
		if more, ok := steps(x.Traversal); ok {
			return p.expr(f, x.Source, slices.Concat(more, path))
		}
	case *hclsyntax.IndexExpr:
		key, ds := p.eval(f, x.Key)
		if !ds.HasErrors() && key.IsKnown() && !key.IsMarked() && !key.IsNull() && key.Type().IsPrimitiveType() {
			return p.expr(f, x.Collection, slices.Concat([]step{key}, path))
		}
	case *hclsyntax.ConditionalExpr:
		c, ds := p.eval(f, x.Condition)
		if c, _ = c.Unmark(); !ds.HasErrors() && c.IsKnown() && !c.IsNull() && c.Type() == cty.Bool {
			if c.True() {
				return p.expr(f, x.TrueResult, path)
			}
			return p.expr(f, x.FalseResult, path)
		}
		d := newDigest("if").text(pathText(path)).print(p.expr(f, x.Condition, nil))
		return p.made(d.print(p.expr(f, x.TrueResult, path)).print(p.expr(f, x.FalseResult, path)))
	case *hclsyntax.ObjectConsExpr:
		return p.object(f, x, path)
	case *hclsyntax.TupleConsExpr:
		if len(path) > 0 {
			if i, ok := keyIndex(path[0]); ok && i < len(x.Exprs) {
				return p.expr(f, x.Exprs[i], path[1:])
			}
		} else {
			d, exact := newDigest("list").number(len(x.Exprs)), true
			for _, el := range x.Exprs {
				d.print(p.expr(f, el, nil))
				exact = exact && p.exact
			}
			p.exact = exact
			return d.sum()
		}
	case *hclsyntax.TemplateExpr:
		d := newDigest("template").number(len(x.Parts))
		for _, el := range x.Parts {
			d.print(p.expr(f, el, nil))
		}
		return p.made(d)
	case *hclsyntax.BinaryOpExpr:
		return p.made(newDigest("binary").text(p.text(x)).print(p.expr(f, x.LHS, nil)).print(p.expr(f, x.RHS, nil)))
	case *hclsyntax.FunctionCallExpr:
		name := strings.TrimPrefix(x.Name, "core::")
		switch name {
		case "timestamp", "uuid", "bcrypt", "plantimestamp", "run_cmd", "sops_decrypt_file",
			"get_aws_account_id", "get_aws_account_alias", "get_aws_caller_identity_arn", "get_aws_caller_identity_user_id", "get_terraform_cli_args":
			p.because("the result of " + name + " is not known before a run")
		case "get_env":
			p.unset(f, x)
		}
		switch name {
		case "sensitive", "nonsensitive", "ephemeralasnull":
			if len(x.Args) == 1 {
				return p.expr(f, x.Args[0], path)
			}
		}
		d := newDigest("call").text(name).text(pathText(path)).number(len(x.Args))
		if x.ExpandFinal {
			d.text("...")
		}
		for _, a := range x.Args {
			d.print(p.expr(f, a, nil))
		}
		return p.made(d)
	}
	return p.generic(f, x, path)
}

// unset records that the value of a call of get_env is unknown because the variable is not set.
func (p *printer) unset(f *frame, x *hclsyntax.FunctionCallExpr) {
	if f.unit == nil || len(x.Args) != 1 {
		return
	}
	if v, ds := p.eval(f, x); ds.HasErrors() || v.IsKnown() {
		return
	}
	name, ds := p.eval(f, x.Args[0])
	if name, _ = name.Unmark(); !ds.HasErrors() && value.IsText(name) {
		p.because("the environment variable " + name.AsString() + " is not set")
	}
}

// object returns the fingerprint of an object constructor.
func (p *printer) object(f *frame, x *hclsyntax.ObjectConsExpr, path []step) outline.Print {
	type item struct {
		key   string
		value hcl.Expression
	}
	items := make([]item, 0, len(x.Items))
	for _, i := range x.Items {
		if k, ok := i.KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok && !k.ForceNonLiteral {
			if name := hcl.ExprAsKeyword(k.Wrapped); name != "" {
				items = append(items, item{name, i.ValueExpr})
				continue
			}
		}
		k, ds := p.eval(f, i.KeyExpr)
		if k, _ = k.Unmark(); ds.HasErrors() || !k.IsKnown() || k.IsNull() || !k.Type().IsPrimitiveType() {
			return p.generic(f, x, path)
		}
		text, err := convertString(k)
		if err != nil {
			return p.generic(f, x, path)
		}
		items = append(items, item{text, i.ValueExpr})
	}
	if len(path) > 0 {
		for _, i := range slices.Backward(items) {
			if i.key == keyText(path[0]) {
				return p.expr(f, i.value, path[1:])
			}
		}
		return p.generic(f, x, path)
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.key, b.key) })
	d, exact := newDigest("map").number(len(items)), true
	for _, i := range items {
		if p.o.Rename != nil {
			i.key = p.o.Rename(i.key)
		}
		d.text(i.key).print(p.expr(f, i.value, nil))
		exact = exact && p.exact
	}
	p.exact = exact
	return d.sum()
}

// generic returns the fingerprint of an expression from its text and its references.
func (p *printer) generic(f *frame, x hcl.Expression, path []step) outline.Print {
	if pairs, diags := hcl.ExprMap(x); !diags.HasErrors() && len(path) > 0 {
		for _, pair := range pairs {
			k, ds := p.eval(f, pair.Key)
			if k, _ = k.Unmark(); !ds.HasErrors() && k.IsKnown() && !k.IsNull() && k.Type() == cty.String && k.AsString() == keyText(path[0]) {
				return p.expr(f, pair.Value, path[1:])
			}
		}
	}
	d := newDigest("text").text(p.text(x)).text(pathText(path))
	if n := p.o.Shared.node(x); n != nil {
		for _, ref := range n.refs {
			d.print(p.expr(f, ref, nil))
		}
		return p.made(d)
	}
	for _, ref := range x.Variables() {
		d.print(p.expr(f, reference(ref), nil))
	}
	return p.made(d)
}

// unresolved returns the fingerprint of a reference that leads to no definition.
func (p *printer) unresolved(path []step) outline.Print {
	return p.made(newDigest("reference").text(pathText(path)))
}

// reference returns the fingerprint of an unknown value that a reference names.
func (p *printer) reference(f *frame, x hcl.Expression, path []step) outline.Print {
	root := keyText(path[0])
	for _, l := range slices.Backward(f.loops) {
		if l.name == root {
			return p.repeated(l.in, l.forEach, l.key, path[1:])
		}
	}
	if f.unit != nil {
		return p.inUnit(f, x, path)
	}
	if f.mod == nil || len(path) < 2 {
		return p.unresolved(path)
	}
	name, rest := keyText(path[1]), path[2:]
	switch root {
	case "local":
		l := f.mod.Node.Config.Locals[name]
		if l == nil || l.Value == nil {
			return p.unresolved(path)
		}
		at := p.moduleFrame(f.mod)
		p.o.Shared.add(l.Value.Expr)
		if len(rest) > 0 {
			return p.expr(at, l.Value.Expr, rest)
		}
		return p.once(l2{f.mod, l}, func() outline.Print { return p.expr(at, l.Value.Expr, nil) })
	case "var":
		return p.variable(f.mod, name, rest)
	case "module":
		return p.module(f.mod, name, rest)
	case "each", "count":
		if f.repeat == nil {
			return p.unresolved(path)
		}
		return p.repeated(f.in, f.repeat, f.key, path[1:])
	case "self":
		return p.made(newDigest("self").text(f.self).text(pathText(path[1:])))
	case "path", "terraform", "tofu":
		return p.unresolved(path)
	}
	return p.resource(f.mod, path)
}

// l2 identifies a definition in a module instance.
type l2 struct{ mod, of any }

// repeated returns the fingerprint of each.value and the like. path begins with key, value or index.
func (p *printer) repeated(f *frame, x hcl.Expression, key cty.Value, path []step) outline.Print {
	if len(path) > 0 && keyText(path[0]) == "value" && key != cty.NilVal {
		return p.expr(f, x, slices.Concat([]step{key}, path[1:]))
	}
	return p.made(newDigest("each").text(pathText(path)).print(p.expr(f, x, nil)))
}

// variable returns the fingerprint of an unknown variable.
func (p *printer) variable(m *eval.Module, name string, path []step) outline.Print {
	return p.once(l2{m, "var." + name + pathText(path)}, func() outline.Print { return p.variableOnce(m, name, path) })
}

func (p *printer) variableOnce(m *eval.Module, name string, path []step) outline.Print {
	v := m.Node.Config.Variables[name]
	if v == nil {
		return p.unresolved([]step{cty.StringVal(name)})
	}
	if m.Parent() == nil {
		if print, why, ok := p.o.input(name, path); ok {
			p.becauseOf(why)
			p.exact = false
			return print
		}
		if p.o.Given != nil {
			if f, x, more, ok := p.o.Given(name, path); ok {
				return p.expr(f.frame, x, more)
			}
		}
		p.because("the variable " + name + " has no value")
		return p.made(newDigest("variable").text(name).text(pathText(path)))
	}
	call := m.CalledBy().Config()
	s := p.o.Shared.body(m.Parent().Node.Config, call.Body).attrs[name]
	if s == nil {
		return p.unresolved([]step{cty.StringVal(name)})
	}
	x := p.expr(p.inputFrame(m), s.Expr, path)
	if v.Type == cty.DynamicPseudoType || len(path) > 0 {
		return x
	}
	return p.made(newDigest("convert").text(v.Type.FriendlyNameForConstraint()).print(x))
}

// module returns the fingerprint of an unknown output of a module call, or of all of its outputs.
func (p *printer) module(m *eval.Module, name string, path []step) outline.Print {
	call := m.Call(name)
	if call == nil {
		return p.unresolved([]step{cty.StringVal(name)})
	}
	if call.Node == nil {
		p.because(call.Addr() + " is not installed")
		return p.made(newDigest("not installed").text(pathText(path)).print(p.missing(call)))
	}
	ch, ok := call.Children(p.t)
	if !ok {
		return p.unresolved(path)
	}
	var child *eval.Module
	switch {
	case ch.Unknown && len(ch.All) == 1 && len(path) > 0:
		child, path = ch.All[0], path[1:]
	case ch.Form == eval.One && len(ch.All) == 1:
		child = ch.All[0]
	case len(path) > 0:
		k, err := addr.KeyFromValue(path[0])
		if err == nil {
			child = ch.Get(k)
		}
		path = path[1:]
	default:
		d := newDigest("modules").number(len(ch.All))
		for _, c := range ch.All {
			d.text(string(c.Addr)).print(p.outputs(c))
		}
		return p.made(p.times(d, m, call.Config().Repeat))
	}
	if child == nil {
		return p.unresolved(path)
	}
	if len(path) == 0 {
		return p.outputs(child)
	}
	x := p.output(child, keyText(path[0]), path[1:])
	if ch.Unknown {
		return p.made(p.times(newDigest("some").print(x), m, call.Config().Repeat))
	}
	return x
}

// times adds the argument that repeats a block.
func (p *printer) times(d *digest, m *eval.Module, r config.Repeat) *digest {
	if s := repetition(r); s != nil {
		d.print(p.expr(p.moduleFrame(m), s.Expr, nil))
	}
	return d
}

func (p *printer) outputs(m *eval.Module) outline.Print {
	return p.once(l2{m, "outputs"}, func() outline.Print {
		d := newDigest("outputs")
		for _, name := range m.Outputs() {
			d.text(name).print(p.output(m, name, nil))
		}
		return p.made(d)
	})
}

func (p *printer) output(m *eval.Module, name string, path []step) outline.Print {
	o := m.Node.Config.Outputs[name]
	if o == nil || o.Value == nil {
		return p.unresolved([]step{cty.StringVal(name)})
	}
	p.o.Shared.add(o.Value.Expr)
	given := p.expr(p.moduleFrame(m), o.Value.Expr, path)
	if o.Settings["type"] == nil {
		return given
	}
	return p.made(typeDigest(o.Type, o.Defaults).print(given))
}

// unknownOutput is output for a part that is unknown.
func (p *printer) unknownOutput(m *eval.Module, name string, path []step) outline.Print {
	o := m.Node.Config.Outputs[name]
	if o == nil || o.Value == nil || o.Settings["type"] != nil {
		return p.output(m, name, path)
	}
	p.o.Shared.add(o.Value.Expr)
	return p.definition(p.moduleFrame(m), o.Value.Expr, path)
}

// typeDigest returns the digest of a type constraint.
func typeDigest(ty cty.Type, defaults *typeexpr.Defaults) *digest {
	d := newDigest("type").text(ty.GoString())
	if defaults == nil {
		return d
	}
	for _, name := range slices.Sorted(maps.Keys(defaults.DefaultValues)) {
		d.text(name).print(ofValue(defaults.DefaultValues[name], nil))
	}
	for _, name := range slices.Sorted(maps.Keys(defaults.Children)) {
		d.text(name).print(typeDigest(defaults.Children[name].Type, defaults.Children[name]).sum())
	}
	return d
}

// missing returns the fingerprint of the call of a module that is not installed.
func (p *printer) missing(call *eval.Call) outline.Print {
	return p.once(l2{call, "missing"}, func() outline.Print {
		d := newDigest("call")
		cfg := call.Config()
		f := p.callFrame(call)
		for _, s := range []*config.Setting{cfg.Source, cfg.Version} {
			if s != nil {
				d.print(p.expr(p.moduleFrame(call.Module()), s.Expr, nil))
			}
		}
		d.parts(p.body(f, call.Module().Node.Config, cfg.Body, nil, ""), 0)
		return p.made(p.times(d, call.Module(), cfg.Repeat))
	})
}

// resource returns the fingerprint of an unknown value of a resource.
func (p *printer) resource(m *eval.Module, path []step) outline.Print {
	a := addr.Resource{}
	used := 2
	switch keyText(path[0]) {
	case "data":
		a.Mode, used = addr.Data, 3
	case "ephemeral":
		a.Mode, used = addr.Ephemeral, 3
	case "resource":
		used = 3
	}
	if len(path) < used {
		return p.unresolved(path)
	}
	a.Type, a.Name = keyText(path[used-2]), keyText(path[used-1])
	rest := path[used:]
	r := m.Resource(a)
	if r == nil {
		return p.unresolved(path)
	}
	in, ok := r.Instances(p.t)
	if !ok {
		return p.made(newDigest("failed").text(r.Addr().String()))
	}
	var d *eval.Desired
	switch {
	case in.Unknown && in.Form != eval.One && len(in.All) == 1 && len(rest) > 0:
		d, rest = in.All[0], rest[1:]
	case in.Form == eval.One && len(in.All) == 1:
		d = in.All[0]
	case len(rest) > 0:
		if k, err := addr.KeyFromValue(rest[0]); err == nil {
			d = in.Get(k)
		}
		rest = rest[1:]
	default:
		all := newDigest("resources").number(len(in.All))
		for _, d := range in.All {
			all.print(p.instance(d))
		}
		return p.made(p.times(all, m, r.Config().Repeat))
	}
	if d == nil {
		return p.unresolved(path)
	}
	x := p.attribute(d, rest)
	if in.Unknown {
		return p.made(p.times(newDigest("some").print(x), m, r.Config().Repeat))
	}
	return x
}

// attribute returns the fingerprint of an unknown part of an instance.
func (p *printer) attribute(d *eval.Desired, path []step) outline.Print {
	if len(path) == 0 {
		return p.instance(d)
	}
	if s := p.o.Shared.body(d.Resource.Mod.Node.Config, d.Resource.Config().Body).attrs[keyText(path[0])]; s != nil {
		f := p.desiredFrame(d)
		if v, ds := p.eval(f, s.Expr); ds.HasErrors() || !isNull(v) {
			return p.expr(f, s.Expr, path[1:])
		}
	}
	p.because(p.o.address(d) + "." + keyText(path[0]) + " is known after apply")
	return p.made(newDigest("computed").text(pathText(path)).print(p.instance(d)))
}

// instance returns the fingerprint of the configuration of an instance.
func (p *printer) instance(d *eval.Desired) outline.Print {
	return once(p, p.instances, d, func() outline.Print {
		x := newDigest("instance").text(p.o.address(d)).text(d.Resource.Provider().String())
		x.parts(p.arguments(d), 0)
		if d.Resource.Config().Addr.Mode == addr.Data {
			p.delays(x, d.Resource)
		}
		return p.made(x)
	})
}

// inUnit returns the fingerprint of a reference in a unit file.
func (p *printer) inUnit(f *frame, x hcl.Expression, path []step) outline.Print {
	way, ok := f.unit.Follow(traversal(path))
	if ok && way.Next != nil {
		if next, ok := steps(way.Next.Path); ok {
			return p.expr(&frame{unit: way.Next.In}, way.Next.Expr, next)
		}
	}
	v, ds := p.eval(f, x)
	if !ds.HasErrors() {
		if v, ok := part(v, path[min(len(path), refLength(x)):]); ok {
			if ids := Identities(v); len(ids) > 0 {
				return p.unitOutputs(ids)
			}
		}
	}
	return p.unresolved(path)
}

// outputsOf returns the identities in an unknown value of a unit file, if the expression is a reference to
// outputs of a dependency without mock outputs.
func outputsOf(f *frame, x hcl.Expression, v cty.Value) []Identity {
	ref, ok := unwrap(x).(*hclsyntax.ScopeTraversalExpr)
	if f.unit == nil || !ok || len(ref.Traversal) < 3 || ref.Traversal.RootName() != "dependency" {
		return nil
	}
	if of, ok := ref.Traversal[2].(hcl.TraverseAttr); !ok || of.Name != "outputs" {
		return nil
	}
	return Identities(v)
}

// unitOutputs returns the fingerprint of a value that consists of outputs of units.
func (p *printer) unitOutputs(ids []Identity) outline.Print {
	for _, id := range ids {
		p.because(id.reason())
	}
	return p.made(outputsOfUnits(ids))
}

// outputsOfUnits returns the digest of a value that consists of outputs.
func outputsOfUnits(all []Identity) *digest {
	d := newDigest("outputs of units")
	for _, m := range all {
		d.print(m.Print)
	}
	return d
}

// refLength returns the number of steps of a reference.
func refLength(x hcl.Expression) int {
	if s, ok := x.(*hclsyntax.ScopeTraversalExpr); ok {
		return len(s.Traversal)
	}
	return 0
}

// An Identity is the mark of an unknown output of a unit: it identifies the value.
type Identity struct {
	Name  string                 // such as "the output id of net", or "the outputs of net"
	Of    explanation.UnitOutput // zero for all outputs of a unit
	Print outline.Print
	// Failed means that the outputs are unknown because of errors in the unit.
	Failed bool
}

// reason returns the reason for which a value with the output is unknown.
func (i Identity) reason() string {
	if i.Failed {
		return i.Name + " are not known because the unit has errors"
	}
	if i.Of == (explanation.UnitOutput{}) {
		return i.Name + " are known after apply"
	}
	return i.Name + " is known after apply"
}

// Identities returns the identities of unknown values in v, sorted.
func Identities(v cty.Value) (out []Identity) {
	value.AnyMark(v, func(m any) bool {
		if id, ok := m.(Identity); ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
		return false
	})
	slices.SortFunc(out, func(a, b Identity) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Print[:], b.Print[:]))
	})
	return out
}

// text returns the text of an expression without comments and white space.
func (p *printer) text(x hcl.Expression) string {
	if n := p.o.Shared.node(x); n != nil {
		n.once.Do(func() { n.text = p.lex(x) })
		return n.text
	}
	return p.lex(x)
}

func (p *printer) lex(x hcl.Expression) string {
	at := x.Range()
	if b, ok := x.(*hclsyntax.BinaryOpExpr); ok { // the operator is the text between the operands
		at.Start, at.End = b.LHS.Range().End, b.RHS.Range().Start
	}
	return tokens(p.o.Text(at), at)
}

func tokens(src []byte, at source.Range) string {
	if len(src) == 0 {
		return at.String()
	}
	all, diags := hclsyntax.LexExpression(src, at.Filename, hcl.InitialPos)
	if diags.HasErrors() {
		return string(src)
	}
	var b strings.Builder
	for _, t := range all {
		switch t.Type {
		case hclsyntax.TokenComment, hclsyntax.TokenNewline, hclsyntax.TokenEOF:
		default:
			b.Write(t.Bytes)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// unwrap removes wrappers that do not change the value of an expression.
func unwrap(x hcl.Expression) hcl.Expression {
	for {
		switch w := x.(type) {
		case *lang.Expr:
			x = w.Expression
		case *hclsyntax.ParenthesesExpr:
			x = w.Expression
		case *hclsyntax.TemplateWrapExpr:
			x = w.Wrapped
		case *hclsyntax.ObjectConsKeyExpr:
			x = w.Wrapped
		case hclsyntax.Expression:
			return x
		case interface{ UnwrapExpression() hcl.Expression }:
			x = w.UnwrapExpression()
		default:
			return x
		}
	}
}

// steps returns the steps of a reference. The caller must not modify them.
func (p *printer) steps(x *hclsyntax.ScopeTraversalExpr) ([]step, bool) {
	n := p.o.Shared.node(x)
	if n == nil {
		return steps(x.Traversal)
	}
	n.walk.Do(func() { n.steps, n.walks = steps(x.Traversal) })
	return n.steps, n.walks
}

// steps converts a traversal to steps. ok is false for splats and for unknown, null or marked keys.
func steps(t hcl.Traversal) (out []step, ok bool) {
	out = make([]step, 0, len(t))
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			out = append(out, cty.StringVal(s.Name))
		case hcl.TraverseAttr:
			out = append(out, cty.StringVal(s.Name))
		case hcl.TraverseIndex:
			if s.Key.IsNull() || !s.Key.IsKnown() || s.Key.IsMarked() {
				return out, false
			}
			out = append(out, s.Key)
		default:
			return out, false
		}
	}
	return out, true
}

// traversal converts steps to an absolute reference.
func traversal(path []step) hcl.Traversal {
	out := make(hcl.Traversal, 0, len(path))
	for i, s := range path {
		switch {
		case i == 0:
			out = append(out, hcl.TraverseRoot{Name: keyText(s)})
		case s.Type() == cty.String && value.IsIdentifier(s.AsString()):
			out = append(out, hcl.TraverseAttr{Name: s.AsString()})
		default:
			out = append(out, hcl.TraverseIndex{Key: s})
		}
	}
	return out
}

// moduleFrame returns the frame of a module instance. The caller must not modify it.
func (p *printer) moduleFrame(m *eval.Module) *frame {
	if p.inModule == nil || p.inModule.mod != m {
		p.inModule = &frame{mod: m, scope: m}
	}
	return p.inModule
}

// inputFrame returns the frame of the inputs of a module instance.
func (p *printer) inputFrame(m *eval.Module) *frame {
	f := &frame{mod: m.Parent(), scope: m.CallScope(), in: p.moduleFrame(m.Parent())}
	if s := repetition(m.CalledBy().Config().Repeat); s != nil {
		f.repeat = s.Expr
	}
	if all := m.Addr.Steps(); len(all) > 0 {
		f.key = all[len(all)-1].Key.Value()
	}
	return f
}

// callFrame returns the frame of the inputs of a call without a certain instance.
func (p *printer) callFrame(call *eval.Call) *frame {
	f := &frame{mod: call.Module(), scope: call.AnyScope(), in: p.moduleFrame(call.Module())}
	if s := repetition(call.Config().Repeat); s != nil {
		f.repeat = s.Expr
	}
	return f
}

// desiredFrame returns the frame of the arguments of an instance. The caller must not modify it.
func (p *printer) desiredFrame(d *eval.Desired) *frame {
	if p.desired == d {
		return p.inDesired
	}
	f := &frame{mod: d.Resource.Mod, scope: d.Scope(cty.NilVal), in: p.moduleFrame(d.Resource.Mod), key: d.Key().Value()}
	if s := repetition(d.Resource.Config().Repeat); s != nil {
		f.repeat = s.Expr
	}
	p.desired, p.inDesired = d, f
	return f
}

// repetition returns the argument that repeats a block, or nil.
func repetition(r config.Repeat) *config.Setting {
	if r.ForEach != nil {
		return r.ForEach
	}
	return r.Count
}

func isNull(v cty.Value) bool {
	v, _ = v.Unmark()
	return v.IsKnown() && v.IsNull()
}

// A Frame is the environment of an expression that gives a value to a root variable.
type Frame struct{ frame *frame }

// UnitFrame returns the Frame of expressions in a unit file.
func UnitFrame(s explanation.Scope) Frame { return Frame{&frame{unit: s}} }

// schemaOf returns the schema of a resource, or nil if it is not available.
func (o *Options) schemaOf(a addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	if o.Schema == nil {
		return nil
	}
	if s := o.Schema(a); s != nil {
		return s.Resource(mode, typ)
	}
	return nil
}
