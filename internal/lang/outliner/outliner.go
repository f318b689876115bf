// Package outliner computes the outline of a module tree: the list of its objects with a fingerprint
// of each argument.
//
// Main types: Options and Evaluation. The one rule: it evaluates without providers and state, and
// two unknown values have the same fingerprint only if their definitions have the same value.
package outliner

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Options configures Of. Text is required.
type Options struct {
	// Text returns the source text in a range, or nil.
	Text func(source.Range) []byte
	// Rename converts strings in values before they are compared, such as the path of a temporary
	// directory. nil changes nothing.
	Rename func(string) string
	// Moved returns the address to which another revision moves an instance. nil means no moves.
	Moved func(addr.Instance) addr.Instance
	// Given returns the expression that gives an unknown value to a part of a root variable, with
	// the rest of the path. nil means that unknown variables have no definition.
	Given func(name string, path []cty.Value) (f Frame, x hcl.Expression, rest []cty.Value, ok bool)
	// Inputs contains parts of the root variables whose fingerprints are already computed, by path.
	Inputs map[string]*outline.Part
	// Schema returns the schema of a provider, or nil if it is not available.
	Schema func(addr.Provider) *schema.Provider
	// Shared caches the expressions of the module tree for other outlines. nil means no cache.
	Shared *Shared
	// Configs is that of the Phase of the evaluation. Its values are not computed again. nil means that all are.
	Configs *Configs
}

// input returns the fingerprint of an unknown part of a root variable from Inputs, and the reasons
// for which it is unknown. The part may consist of several of Inputs. ok is false if there are none.
func (o *Options) input(name string, path []cty.Value) (print outline.Print, why []string, ok bool) {
	if len(o.Inputs) == 0 {
		return print, nil, false
	}
	text := keyPath(name)
	for _, s := range path {
		if s.Type() != cty.String {
			return print, nil, false
		}
		text += keyPath(s.AsString())
	}
	if part := o.Inputs[text]; part != nil {
		return part.Print, part.Why, part.Unknown && !part.Fixed
	}
	var parts []*outline.Part
	for at, part := range o.Inputs {
		if rest, below := strings.CutPrefix(at, text); below && (rest[0] == '.' || rest[0] == '[') {
			if part.Fixed {
				return print, nil, false
			}
			parts = append(parts, part)
			ok = ok || part.Unknown
		}
	}
	slices.SortFunc(parts, func(a, b *outline.Part) int { return strings.Compare(a.Path, b.Path) })
	d := newDigest("inputs").number(len(parts))
	for _, part := range parts {
		d.text(part.Path[len(text):]).print(part.Print)
		why = append(why, part.Why...)
	}
	return d.sum(), why, ok
}

func (o *Options) address(d *eval.Desired) string {
	if o.Moved != nil {
		return o.Moved(d.Addr()).String()
	}
	return d.Addr().String()
}

// inModule is a resource that no module contains. The moves of its instances are those of a module.
const inModule = "terrace_module"

// ModuleInstance returns the address of an instance that moves exactly if a module instance does.
func ModuleInstance(m addr.ModuleInstance) addr.Instance {
	return addr.Instance{Module: m, Resource: addr.Resource{Type: inModule, Name: inModule}}
}

// module returns the address to which a module instance moves.
func (o *Options) module(m addr.ModuleInstance) addr.ModuleInstance {
	if o.Moved == nil || m == "" {
		return m
	}
	return o.Moved(ModuleInstance(m)).Module
}

// call returns the address to which a module call moves.
func (o *Options) call(m addr.ModuleInstance, name string) string {
	parent, last, _ := o.module(m.Child(name, addr.Key{})).Parent()
	return string(parent.Child(last.Name, addr.Key{}))
}

// Of prepares the outline of the evaluation ev, which must use Phase and eval.Options.Estimating.
func Of(t *demand.Task, ev *eval.Evaluator, o *Options) *Evaluation {
	return &Evaluation{ev, newPrinter(t, o)}
}

// An Evaluation computes outlines and outputs. Its methods must not be called concurrently.
type Evaluation struct {
	evaluator *eval.Evaluator
	p         *printer
}

// Outline returns the outline.
func (x *Evaluation) Outline() *outline.Outline {
	out := &outline.Outline{}
	c := collector{p: x.p, out: out}
	x.p.why = nil
	c.module(x.evaluator.Root)
	c.settings(x.evaluator.Root)
	slices.SortStableFunc(out.Objects, func(a, b *outline.Object) int { return cmp.Compare(a.Addr, b.Addr) })
	return out
}

// Output returns the value of a root output. Each unknown part is marked with its Identity, for the
// units that read the output. unit and id are the name and the ID of the unit that has the output.
func (x *Evaluation) Output(name, unit, id string) cty.Value {
	of := Identity{Name: "the output " + name + " of " + unit, Of: explanation.UnitOutput{Unit: id, Name: name}}
	p := x.p
	v, ok := x.evaluator.Root.Output(p.t, name)
	if !ok {
		v = cty.DynamicVal
	}
	if v.IsWhollyKnown() {
		return v
	}
	out, err := cty.Transform(v, func(path cty.Path, v cty.Value) (cty.Value, error) {
		if bare, _ := v.Unmark(); bare.IsKnown() {
			return v, nil
		}
		var keys []step
		for _, s := range path {
			switch s := s.(type) {
			case cty.GetAttrStep:
				keys = append(keys, cty.StringVal(s.Name))
			case cty.IndexStep:
				keys = append(keys, s.Key)
			}
		}
		in := of
		in.Print = p.unknownOutput(x.evaluator.Root, name, keys)
		return v.Mark(in), nil
	})
	if err != nil {
		of.Print = p.output(x.evaluator.Root, name, nil)
		return v.Mark(of)
	}
	return out
}

// Inputs returns the function for Options.Given that follows variables into a unit's inputs. A nil
// unit has none.
func Inputs(u explanation.InputSource) func(name string, path []cty.Value) (Frame, hcl.Expression, []cty.Value, bool) {
	if u == nil {
		return nil
	}
	return func(name string, path []cty.Value) (f Frame, x hcl.Expression, rest []cty.Value, ok bool) {
		way, ok, ds := u.Part(traversal(slices.Concat([]step{cty.StringVal("inputs"), cty.StringVal(name)}, path)))
		if !ok || ds.HasErrors() || way.Next == nil {
			return f, nil, nil, false
		}
		rest, ok = steps(way.Next.Path)
		return UnitFrame(way.Next.In), way.Next.Expr, rest, ok
	}
}

// A Phase evaluates configuration without providers: attributes that a provider determines are
// unknown.
type Phase struct {
	Schemas func(addr.Provider) *schema.Provider
	// Configs receives the arguments of the instances whose values are computed. nil keeps nothing.
	Configs *Configs
}

// Configs contains the evaluated arguments of instances, with the types of their schemas. The zero value is empty
// and usable. Its methods may be called concurrently.
type Configs struct {
	mu sync.Mutex
	of map[*eval.Desired]map[string]cty.Value
}

func (c *Configs) put(d *eval.Desired, vals map[string]cty.Value) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[*eval.Desired]map[string]cty.Value{}
	}
	c.of[d] = vals
}

// get returns the arguments of an instance by name, or nil if they are not known here. The caller must not
// modify them.
func (c *Configs) get(d *eval.Desired) map[string]cty.Value {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[d]
}

var _ eval.Phase = Phase{}

// Value implements eval.Phase.
func (p Phase) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	s := p.schemaOf(d)
	if s == nil {
		return cty.DynamicVal, nil
	}
	vals, ds := d.ConfigValues(t, s)
	if ds.HasErrors() {
		return cty.DynamicVal, nil
	}
	p.Configs.put(d, vals)
	for _, v := range vals {
		if value.Marked(v) {
			return withUnknowns(s.Block, cty.ObjectVal(vals)), nil
		}
	}
	return s.Block.SetUnknownsOf(vals), nil
}

// Values returns the configuration of an instance, and its value for references. ok is false if the schema
// is not available or the configuration has errors.
func (p Phase) Values(t *demand.Task, d *eval.Desired) (config, v cty.Value, ok bool) {
	s := p.schemaOf(d)
	if s == nil {
		return cty.DynamicVal, cty.DynamicVal, false
	}
	config, ds := d.Config(t, s)
	if ds.HasErrors() {
		return cty.DynamicVal, cty.DynamicVal, false
	}
	return config, withUnknowns(s.Block, config), true
}

// schemaOf returns the schema of an instance, or nil if it is not available.
func (p Phase) schemaOf(d *eval.Desired) *schema.Resource {
	a := d.Resource.Config().Addr
	return (&Options{Schema: p.Schemas}).schemaOf(d.Resource.Provider(), a.Mode, a.Type)
}

// withUnknowns is schema.Block.SetUnknowns for a configuration that may have marks.
func withUnknowns(b *schema.Block, config cty.Value) cty.Value {
	if !value.Marked(config) {
		return b.SetUnknowns(config)
	}
	bare, marks := config.UnmarkDeepWithPaths()
	return b.SetUnknowns(bare).MarkWithPaths(marks)
}

// Schema implements eval.Phase.
func (p Phase) Schema(_ *demand.Task, a addr.Provider) (*schema.Provider, diag.List) {
	if p.Schemas != nil {
		if s := p.Schemas(a); s != nil {
			return s, nil
		}
	}
	return nil, demand.Fail()
}

// Function implements eval.Phase: the results of providers' functions are unknown.
func (p Phase) Function(*demand.Task, addr.Provider, *eval.ProviderConfig, string) (function.Function, diag.List) {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "args", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
		Type:     function.StaticReturnType(cty.DynamicPseudoType),
		Impl:     func([]cty.Value, cty.Type) (cty.Value, error) { return cty.DynamicVal, nil },
	}), nil
}

// A collector collects the objects of a module tree.
type collector struct {
	p   *printer
	out *outline.Outline
}

// add adds an object, after its parts were computed.
func (c collector) add(o *outline.Object) {
	o.Why = c.p.reasons()
	if byPath := func(a, b outline.Part) int { return cmp.Compare(a.Path, b.Path) }; !slices.IsSortedFunc(o.Parts, byPath) {
		o.Parts = slices.Clone(o.Parts) // others may have the slice
		slices.SortStableFunc(o.Parts, byPath)
	}
	c.out.Objects = append(c.out.Objects, o)
}

// module adds the objects of a module instance and of the modules that it calls.
func (c collector) module(m *eval.Module) {
	p, cfg := c.p, m.Node.Config
	f := p.moduleFrame(m)
	prefix := "" // after moves
	if at := p.o.module(m.Addr); at != "" {
		prefix = string(at) + "."
	}
	for _, r := range m.Resources() {
		in, ok := r.Instances(p.t)
		if !ok {
			continue
		}
		for _, d := range in.All {
			c.add(c.instance(d, in.Unknown))
		}
	}
	for _, call := range m.Calls() {
		c.call(m, call)
	}
	if m.Parent() == nil {
		for _, name := range m.Outputs() {
			o := cfg.Outputs[name]
			if o.Value == nil {
				continue
			}
			out := &outline.Object{Kind: outline.Output, Addr: "output." + name, At: o.At}
			out.Parts = p.argument(nil, f, o.Value.Expr, &schema.Attribute{Sensitive: o.Sensitive}, "")
			if s := o.Settings["type"]; s != nil {
				out.Parts = append(out.Parts, outline.Part{Path: " type", Print: typeDigest(o.Type, o.Defaults).sum(), Fixed: true, At: s.Range})
			}
			out.Parts = append(out.Parts, outline.Part{Path: " sensitive", Print: newDigest(strconv.FormatBool(o.Sensitive)).sum(), Fixed: true, At: o.At})
			out.Parts = p.dependsOn(out.Parts, m, o, o.DependsOn, "")
			c.add(out)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Checks)) {
		k := cfg.Checks[name]
		out := &outline.Object{Kind: outline.Check, Addr: prefix + "check." + name, At: k.At}
		out.Parts = p.rules(nil, f, k.Asserts, " assert")
		c.add(out)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		k := cfg.Providers[name]
		if !k.Empty {
			out := &outline.Object{Kind: outline.Provider, Addr: prefix + "provider." + name, At: k.At}
			at := *f
			if k.ForEach != nil {
				out.Parts = p.argument(nil, f, k.ForEach.Expr, nil, " for_each")
				at.scope = loopScope{loopScope{m, "each", cty.DynamicVal}, "each", cty.DynamicVal}
				at.repeat, at.in = k.ForEach.Expr, f
			}
			out.Parts = append(out.Parts, p.body(&at, cfg, k.Body, p.providerSchema(cfg.Source(k.Name)), "")...)
			c.add(out)
		}
	}
}

func (p *printer) providerSchema(a addr.Provider) *schema.Block {
	if p.o.Schema == nil {
		return nil
	}
	if s := p.o.Schema(a); s != nil {
		return s.Config
	}
	return nil
}

// call adds a module call and the objects of the called module.
func (c collector) call(m *eval.Module, call *eval.Call) {
	p, cfg := c.p, call.Config()
	out := &outline.Object{Kind: outline.Call, Addr: p.o.call(m.Addr, cfg.Name), Instance: ModuleInstance(m.Addr.Child(cfg.Name, addr.Key{})), At: cfg.At}
	if now := call.Addr(); now != out.Addr {
		out.Was = now
	}
	f := p.moduleFrame(m)
	for name, s := range map[string]*config.Setting{" source": cfg.Source, " version": cfg.Version} {
		if s != nil {
			out.Parts = append(out.Parts, outline.Part{Path: name, Print: p.expr(f, s.Expr, nil), At: s.Range})
		}
	}
	if call.Node == nil {
		p.because("the module is not installed")
		out.Parts = append(out.Parts, outline.Part{Path: " content", Print: p.missing(call), Unknown: true, Fixed: true, At: cfg.At})
	} else { // so that it may change if it is unknown in the other revision
		out.Parts = append(out.Parts, outline.Part{Path: " content", Print: newDigest("known").sum(), Fixed: true, At: cfg.At})
	}
	out.Parts = p.dependsOn(out.Parts, m, call, cfg.DependsOn, "")
	if call.Node != nil { // outputs that are not those of the root are no objects
		for _, name := range slices.Sorted(maps.Keys(call.Node.Config.Outputs)) {
			o := call.Node.Config.Outputs[name]
			out.Parts = p.dependsOn(out.Parts, m, o, o.DependsOn, " output."+name)
		}
	}
	c.add(out)
	if call.Node == nil {
		return
	}
	ch, ok := call.Children(p.t)
	if !ok {
		return
	}
	for _, child := range ch.All {
		if ch.Unknown {
			p.once(l2{call, "unknown"}, func() outline.Print {
				s := repetition(cfg.Repeat)
				if s != nil {
					c.add(&outline.Object{Kind: outline.Call, Addr: out.Addr + " instances", Instance: ModuleInstance(child.Addr), Some: true, At: cfg.At, Parts: []outline.Part{{Path: " " + s.Name, Print: p.expr(p.moduleFrame(m), s.Expr, nil), Unknown: true, At: s.Range}}})
				}
				return outline.Print{}
			})
		}
		c.module(child)
	}
}

// instance returns the object of a resource instance.
func (c collector) instance(d *eval.Desired, some bool) *outline.Object {
	p, cfg := c.p, d.Resource.Config()
	out := &outline.Object{Kind: outline.Resource, Addr: p.o.address(d), Instance: d.Addr(), Some: some, At: cfg.At}
	if s := repetition(cfg.Repeat); s != nil {
		out.Repeat = s.Name
	}
	if now := d.Addr().String(); now != out.Addr {
		out.Was = now
	}
	out.Of = strings.TrimSuffix(out.Addr, d.Key().String())
	out.Parts = p.arguments(d) // append copies them
	f := p.moduleFrame(d.Resource.Mod)
	if s := repetition(cfg.Repeat); s != nil && some {
		out.Parts = append(out.Parts, outline.Part{Path: " " + s.Name, Print: p.expr(f, s.Expr, nil), Unknown: true, At: s.Range})
	}
	fixed := func(name string, d *digest, at source.Range) {
		out.Parts = append(out.Parts, outline.Part{Path: " " + name, Print: d.sum(), Fixed: true, At: at})
	}
	if cfg.Provider != nil {
		x := newDigest(cfg.Provider.String())
		if cfg.Provider.Key != nil {
			x.print(p.expr(p.desiredFrame(d), cfg.Provider.Key, nil))
		}
		fixed("provider", x, cfg.Provider.At)
	}
	l := &cfg.Lifecycle
	at := func(name string) source.Range {
		if s := l.Settings[name]; s != nil {
			return s.Range
		}
		return cfg.At
	}
	for name, v := range map[string]*bool{"lifecycle.create_before_destroy": l.CreateBeforeDestroy, "lifecycle.destroy": l.Destroy} {
		if v != nil {
			fixed(name, newDigest(strconv.FormatBool(*v)), at(strings.TrimPrefix(name, "lifecycle.")))
		}
	}
	if l.PreventDestroy != nil {
		out.Parts = p.argument(out.Parts, f, l.PreventDestroy.Expr, nil, " lifecycle.prevent_destroy")
	}
	if in, ds := d.Ignored(p.t); ds.HasErrors() || in.Unknown != nil {
		out.Parts = append(out.Parts, outline.Part{Path: " lifecycle.ignore_changes", Print: p.ignored(p.desiredFrame(d), newDigest("ignore"), l.Ignore).sum(), Unknown: true, At: at("ignore_changes")})
	} else if in.All || len(in.Paths) > 0 {
		x := newDigest(strconv.FormatBool(in.All))
		for _, name := range sortedRefs(in.Paths) {
			x.text(name)
		}
		fixed("lifecycle.ignore_changes", x, at("ignore_changes"))
	}
	if len(l.ReplaceTriggeredBy) > 0 {
		x := newDigest("triggers")
		for _, t := range l.ReplaceTriggeredBy {
			x.text(p.trigger(d.Resource.Mod, t))
		}
		fixed("lifecycle.replace_triggered_by", x, at("replace_triggered_by"))
	}
	out.Parts = p.dependsOn(out.Parts, d.Resource.Mod, cfg, cfg.DependsOn, "")
	if cfg.Addr.Mode == addr.Data {
		out.After = p.waitsAt(d.Resource)
	}
	out.Parts = p.rules(out.Parts, p.desiredFrame(d), cfg.Pre, " precondition")
	if len(cfg.Post) == 0 && cfg.Connection == nil && len(cfg.Provisioners) == 0 {
		return out
	}
	own := new(*p.desiredFrame(d))
	own.scope, own.self = d.Scope(cty.DynamicVal), out.Addr
	out.Parts = p.rules(out.Parts, own, cfg.Post, " postcondition")
	mod := d.Resource.Mod.Node.Config
	connection := func(b *config.Block, path string) {
		if b != nil {
			out.Parts = append(out.Parts, p.body(own, mod, b.Body, nil, path)...)
		}
	}
	connection(cfg.Connection, " connection")
	for i, v := range cfg.Provisioners {
		path := " provisioner[" + strconv.Itoa(i) + "]"
		fixed(path[1:], newDigest(v.Type).text(strconv.FormatBool(v.OnDestroy)).text(strconv.FormatBool(v.Continue)), v.At)
		out.Parts = append(out.Parts, p.body(own, mod, v.Body, nil, path)...)
		connection(v.Connection, path+".connection")
	}
	return out
}

// ignored adds an ignore_changes argument whose value is unknown to a fingerprint.
func (p *printer) ignored(f *frame, d *digest, x *config.Ignore) *digest {
	switch {
	case x == nil:
		return d.text("none")
	case x.All:
		return d.text("all")
	}
	for _, step := range x.Path {
		if step.Key != nil {
			d.print(p.expr(f, step.Key, nil))
		} else {
			d.text(addr.Text(hcl.Traversal{step.Traverser}))
		}
	}
	for _, e := range []hcl.Expression{x.Condition, x.Value} {
		if e != nil {
			d.print(p.expr(f, e, nil))
		}
	}
	d.number(len(x.Items))
	for _, item := range append([]*config.Ignore{x.Then, x.Else}, x.Items...) {
		p.ignored(f, d, item)
	}
	return d
}

func sortedRefs(refs []hcl.Traversal) []string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = addr.Text(r)
	}
	slices.Sort(out)
	return out
}

// arguments returns the parts of an instance that its provider receives. The caller must not modify
// them.
func (p *printer) arguments(d *eval.Desired) []outline.Part {
	if kept, ok := p.bodies[d]; ok {
		p.becauseOf(kept.why)
		return kept.parts
	}
	outer := p.why
	p.why = nil
	out := p.argumentsOnce(d)
	p.bodies[d] = printedBody{slices.Clip(out), p.why}
	why := p.why
	p.why = outer
	p.becauseOf(why)
	return p.bodies[d].parts
}

func (p *printer) argumentsOnce(d *eval.Desired) []outline.Part {
	cfg := d.Resource.Config()
	var b *schema.Block
	if s := p.o.schemaOf(d.Resource.Provider(), cfg.Addr.Mode, cfg.Addr.Type); s != nil {
		b = s.Block
	}
	return p.bodyOf(p.desiredFrame(d), d.Resource.Mod.Node.Config, cfg.Body, b, "", p.o.Configs.get(d))
}

// rules appends the parts of conditions: their results and messages.
func (p *printer) rules(out []outline.Part, f *frame, rules []*config.Rule, name string) []outline.Part {
	for i, r := range rules {
		path := name + "[" + strconv.Itoa(i) + "]"
		for what, x := range map[string]hcl.Expression{".condition": r.Condition, ".error_message": r.ErrorMessage} {
			if x == nil {
				continue
			}
			print := p.expr(f, x, nil)
			part := outline.Part{Path: path + what, Print: print, Unknown: !p.exact, Fixed: true, At: x.Range()}
			for _, ref := range x.Variables() {
				part.Refs = append(part.Refs, addressOf(f.mod, ref))
			}
			out = append(out, part)
		}
	}
	return out
}

// addressOf returns the address of a reference in a module.
func addressOf(m *eval.Module, ref hcl.Traversal) string {
	if m.Addr == "" {
		return addr.Text(ref)
	}
	return string(m.Addr) + "." + addr.Text(ref)
}

// settings adds the parts of the configuration that belong to no object.
func (c collector) settings(root *eval.Module) {
	p, cfg := c.p, root.Node.Config
	f := p.moduleFrame(root)
	seen := map[*config.Module]bool{}
	c.p.o.walk(root, func(prefix string, m *config.Module) {
		if seen[m] {
			return
		}
		seen[m] = true
		for _, name := range slices.Sorted(maps.Keys(m.RequiredProviders)) {
			r := m.RequiredProviders[name]
			out := &outline.Object{Kind: outline.Settings, Addr: prefix + "required_providers." + name, At: r.At}
			out.Parts = append(out.Parts, outline.Part{Path: " source", Print: newDigest(m.Source(name).String()).sum(), Fixed: true, At: r.At})
			x := newDigest("version")
			for _, v := range r.Version {
				x.text(v.Text)
			}
			out.Parts = append(out.Parts, outline.Part{Path: " version", Print: x.sum(), Fixed: true, At: r.At})
			c.add(out)
		}
		for i, v := range m.RequiredVersion {
			c.add(&outline.Object{Kind: outline.Settings, Addr: prefix + "required_version[" + strconv.Itoa(i) + "]", At: v.Range, Parts: []outline.Part{{Path: " version", Print: p.expr(f, v.Expr, nil), Fixed: true, At: v.Range}}})
		}
		for _, b := range m.Imports {
			out := &outline.Object{Kind: outline.Settings, Addr: "import " + prefix + p.text(b.To), At: b.At}
			for _, s := range []*config.Setting{b.ID, b.Identity, b.ForEach} {
				if s != nil {
					out.Parts = append(out.Parts, outline.Part{Path: " " + s.Name, Print: newDigest("text").text(p.text(s.Expr)).sum(), Fixed: true, At: s.Range})
				}
			}
			c.add(out)
		}
	})
	if b := cfg.Backend; b != nil {
		out := &outline.Object{Kind: outline.Settings, Addr: "backend", At: b.At}
		out.Parts = append(out.Parts, outline.Part{Path: " type", Print: newDigest(b.Type).sum(), Fixed: true, At: b.At})
		for _, x := range p.body(f, cfg, b.Body, nil, " "+b.Type) {
			x.Secret, x.Fixed = true, true
			out.Parts = append(out.Parts, x)
		}
		c.add(out)
	}
	for _, b := range cfg.Removed {
		destroy := "true"
		if b.Destroy != nil {
			destroy = strconv.FormatBool(*b.Destroy)
		}
		c.add(&outline.Object{Kind: outline.Settings, Addr: "removed " + p.text(b.From), At: b.At, Parts: []outline.Part{{Path: " destroy", Print: newDigest(destroy).sum(), Fixed: true, At: b.At}}})
	}
}

// walk calls f for every module in the tree of an evaluation, with the prefix of its addresses.
func (o *Options) walk(root *eval.Module, f func(prefix string, m *config.Module)) {
	root.Node.Walk(func(n *config.Node) {
		prefix := ""
		if n.Path != "" {
			prefix = string(o.module(addr.ModuleInstance(n.Path)).Static()) + "."
		}
		f(prefix, n.Config)
	})
}
