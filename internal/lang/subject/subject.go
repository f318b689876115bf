// Package subject lists the objects of an evaluated configuration about which rules are written:
// resources, data sources, modules and provider configurations, with their values.
//
// Main types: Subject and Options. The one rule: a value that is not known from the configuration
// alone is unknown; a subject never guesses.
package subject

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Kind is the kind of a subject.
type Kind string

// The kinds of subjects.
const (
	Resource Kind = "resource"
	Data     Kind = "data"
	Module   Kind = "module"
	Provider Kind = "provider"
	Unit     Kind = "unit"
	Edge     Kind = "edge"
	Estate   Kind = "estate"
)

// A Subject is one object with its values. It contains only data.
type Subject struct {
	Kind    Kind
	Address string // such as module.net.aws_vpc.main[0]; a name for units and edges
	// Name is the text that the pattern of a rule must match: the type of a resource, the source of
	// a module, the name of a provider or unit, or "FROM -> TO" for an edge.
	Name string
	At   source.Range // its block
	Meta map[string]cty.Value
	// Attrs contains the values as an apply would have them, and Config those that are written.
	// Both are objects.
	Attrs, Config cty.Value
	// Prior is the value before the planned operation, or cty.NilVal if there is no plan.
	Prior cty.Value
	// Gone means that the configuration no longer contains the object, which a plan removes.
	Gone bool
	// Some means that the subject represents all instances, because their number is unknown.
	Some bool
	// Uncertain is the argument whose value is unknown and decides whether the object exists, such as
	// "count of module.net". "" means that the object exists, or that one instance does, with Some.
	Uncertain string
	// Nulls means that attributes that Attrs does not contain are null, as in tests of rules.
	Nulls bool
	// Lacks is the reason for which an attribute that Attrs does not contain is unknown. "" means
	// that Attrs contains all attributes.
	Lacks string
}

// Unplanned reports whether a plan does not change the object.
func (s *Subject) Unplanned() bool {
	op, ok := s.Meta["operation"]
	return !ok || !op.IsKnown() || op.AsString() == "no-op"
}

// Options configures Of. Schema and Values are required.
type Options struct {
	// Schema returns the schema of a provider, or nil if it is not available.
	Schema func(addr.Provider) *schema.Provider
	// Wants reports whether a subject is wanted, by its kind and Name. nil means all.
	Wants func(kind Kind, name string) bool
	// Values returns the configuration of an instance and its value for references. ok is false if the
	// configuration has errors. It is only called if the schema is available.
	Values func(t *demand.Task, d *eval.Desired) (config, value cty.Value, ok bool)
}

// Of returns the subjects of an evaluation, which must set eval.Options.Estimating, sorted as in the
// configuration. partial means that there may be others, because a called module is not installed.
func Of(t *demand.Task, ev *eval.Evaluator, o Options) (all []*Subject, partial bool) {
	c := collector{t: t, o: o, nodes: map[*config.Module]*requirements{}}
	c.module(ev.Root, chain{})
	return c.out, c.partial
}

// collector collects the subjects of a module tree.
type collector struct {
	t     *demand.Task
	o     Options
	out   []*Subject
	nodes map[*config.Module]*requirements // of modules whose providers were added

	partial bool // as in Of
}

// requirements are the subjects of a module's providers. They are added for its first instance.
type requirements struct {
	all       []*Subject
	uncertain string // as in Subject, of the instance
}

// A chain contains facts about the calls that lead to a module instance.
type chain struct {
	some      bool   // a call has an unknown number of instances
	uncertain string // as in Subject
}

// with returns the facts about an instance of a block with an address. some means that the instance
// represents all instances, and uncertain that there may be none.
func (in chain) with(some, uncertain bool, r *config.Repeat, address string) chain {
	in.some = in.some || some
	if uncertain && in.uncertain == "" {
		name := "enabled"
		switch {
		case r.Count != nil:
			name = "count"
		case r.ForEach != nil:
			name = "for_each"
		}
		in.uncertain = name + " of " + address
	}
	return in
}

func (c *collector) wants(k Kind, name string) bool { return c.o.Wants == nil || c.o.Wants(k, name) }

// module adds the subjects of a module instance and of the modules that it calls.
func (c *collector) module(m *eval.Module, in chain) {
	for _, r := range m.Resources() {
		a := r.Config().Addr
		kind := Resource
		switch a.Mode {
		case addr.Data:
			kind = Data
		case addr.Managed:
		default:
			continue
		}
		if !c.wants(kind, a.Type) {
			continue
		}
		made, ok := r.Instances(c.t)
		if !ok {
			continue
		}
		for _, d := range made.All {
			s := c.instance(kind, d, made.Unknown)
			of := in.with(made.Unknown, d.Uncertain(), &r.Config().Repeat, s.Address)
			s.Some, s.Uncertain = of.some, of.uncertain
			c.out = append(c.out, s)
		}
	}
	switch done := c.nodes[m.Node.Config]; {
	case done == nil:
		before := len(c.out)
		c.providers(m, in)
		c.nodes[m.Node.Config] = &requirements{slices.Clone(c.out[before:]), in.uncertain}
	case done.uncertain != "" && in.uncertain == "": // this instance exists
		for _, s := range done.all {
			if s.Uncertain == done.uncertain {
				s.Uncertain, s.Some = "", in.some
			}
		}
		done.uncertain = ""
	}
	for _, call := range m.Calls() {
		c.call(m, call, in)
	}
}

// instance returns the subject of a resource instance. some means that it represents all instances of the
// resource, because their number is unknown.
func (c *collector) instance(kind Kind, d *eval.Desired, some bool) *Subject {
	cfg, p := d.Resource.Config(), d.Resource.Provider()
	s := &Subject{Kind: kind, Address: d.Addr().String(), Name: cfg.Addr.Type, At: cfg.At}
	s.Meta = map[string]cty.Value{
		"address": cty.StringVal(s.Address), "type": cty.StringVal(cfg.Addr.Type), "name": cty.StringVal(cfg.Addr.Name),
		"module": cty.StringVal(string(d.Addr().Module)), "module_path": modulePath(d.Resource.Mod),
		"provider": cty.StringVal(p.Display()), "provider_type": cty.StringVal(p.Type), "key": KeyValue(d.Key()),
		"operation": cty.UnknownVal(cty.String),
	}
	if some {
		s.Meta["key"] = cty.DynamicVal
	}
	flag := func(b *bool) cty.Value { return cty.BoolVal(b != nil && *b) }
	s.Meta["create_before_destroy"] = flag(cfg.Lifecycle.CreateBeforeDestroy)
	protect := cty.False
	if l := cfg.Lifecycle.PreventDestroy; l != nil {
		protect = cty.UnknownVal(cty.Bool)
		if v, ds := lang.Eval(c.t, d.Scope(cty.NilVal), l.Expr, cty.Bool); !ds.HasErrors() {
			if protect, _ = v.Unmark(); protect.IsNull() {
				protect = cty.False
			}
		}
	}
	s.Meta["prevent_destroy"] = protect
	if rs := c.schema(p, cfg.Addr); rs != nil {
		v, attrs, ok := c.o.Values(c.t, d)
		if !ok || !v.IsKnown() {
			s.Attrs, s.Config, s.Lacks = cty.EmptyObjectVal, cty.EmptyObjectVal, "is not known, because the arguments have errors"
			return s
		}
		if !rs.Block.HasSensitive() {
			s.Config, s.Attrs = v, attrs
			return s
		}
		s.Config = value.MarkPaths(v, value.Sensitive, rs.Block.SensitivePaths(bare(v))...)
		plain, marks := s.Config.UnmarkDeepWithPaths()
		s.Attrs = rs.Block.SetUnknowns(plain).MarkWithPaths(marks)
		return s
	}
	s.Attrs = c.body(d.Scope(cty.NilVal), d.Resource.Mod.Loose(cfg, cfg.Body))
	s.Config, s.Lacks = s.Attrs, lacksSchema(p)
	return s
}

func lacksSchema(p addr.Provider) string {
	return "is not written, and the schema of the provider " + p.Display() + ", which may set it, is not available"
}

func bare(v cty.Value) cty.Value {
	v, _ = v.UnmarkDeep()
	return v
}

// KeyValue returns the key of an instance as a value, null if it has none.
func KeyValue(k addr.Key) cty.Value {
	switch k.Kind {
	case addr.IntKey:
		return cty.NumberIntVal(int64(k.Int))
	case addr.StringKey:
		return cty.StringVal(k.Str)
	}
	return cty.NullVal(cty.String)
}

// modulePath returns the directory or address of the module's source, "." for the root module.
func modulePath(m *eval.Module) cty.Value {
	if m.Parent() == nil {
		return cty.StringVal(".")
	}
	return cty.StringVal(m.Node.Config.Dir)
}

// schema returns the schema of a resource type, or nil if it is not available.
func (c *collector) schema(p addr.Provider, a addr.Resource) *schema.Resource {
	if s := c.o.Schema(p); s != nil {
		return s.Resource(a.Mode, a.Type)
	}
	return nil
}

// body returns the values of a body without a schema: arguments have the types of their
// expressions, and the nested blocks of one type are a list of objects. An argument whose name
// suggests a secret is sensitive.
func (c *collector) body(s lang.Scope, body *eval.LooseBody) cty.Value {
	out := make(map[string]cty.Value, len(body.Args)+len(body.Blocks))
	for _, a := range body.Args {
		v, ds := lang.Eval(c.t, s, a.Expr, cty.DynamicPseudoType)
		if ds.HasErrors() {
			v = cty.DynamicVal
		}
		if origin.SecretName(a.Name) {
			v = v.Mark(value.Sensitive)
		}
		out[a.Name] = v
	}
	for _, b := range body.Blocks {
		out[b.Type] = c.blocks(s, b.All)
	}
	return cty.ObjectVal(out)
}

// blocks returns the nested blocks of one type as a list.
func (c *collector) blocks(s lang.Scope, blocks []eval.LooseBlock) cty.Value {
	var all []cty.Value
	for _, b := range blocks {
		switch {
		case b.Body == nil:
			return cty.DynamicVal
		case b.Each == nil:
			all = append(all, c.body(s, b.Body))
		default:
			made, ok := c.dynamic(s, b)
			if !ok {
				return cty.DynamicVal
			}
			all = append(all, made...)
		}
	}
	return cty.TupleVal(all)
}

// dynamic returns the blocks that a dynamic block creates. ok is false if they are unknown.
func (c *collector) dynamic(s lang.Scope, b eval.LooseBlock) (out []cty.Value, ok bool) {
	coll, ds := lang.Eval(c.t, s, b.Each, cty.DynamicPseudoType)
	coll, marks := coll.Unmark()
	if ds.HasErrors() || !coll.IsKnown() {
		return nil, false
	}
	if coll.IsNull() || !coll.CanIterateElements() {
		return nil, true
	}
	for it := coll.ElementIterator(); it.Next(); {
		k, v := it.Element()
		if coll.Type().IsSetType() {
			k = v
		}
		iterator := cty.ObjectVal(map[string]cty.Value{"key": k.WithMarks(marks), "value": v.WithMarks(marks)})
		out = append(out, c.body(loopScope{s, b.Iterator, iterator}, b.Body))
	}
	return out, true
}

// loopScope adds the iterator of a dynamic block to a scope.
type loopScope struct {
	lang.Scope
	name  string
	value cty.Value
}

// Resolve implements lang.Scope.
func (s loopScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if ref.RootName() == s.name {
		return s.value, 1, nil
	}
	return s.Scope.Resolve(t, ref, at)
}

// call adds the subjects of a module call, and those of the called module.
func (c *collector) call(m *eval.Module, call *eval.Call, in chain) {
	cfg := call.Config()
	text := func(s *config.Setting) cty.Value {
		if s == nil {
			return cty.NullVal(cty.String)
		}
		v, ds := lang.Eval(c.t, m, s.Expr, cty.String)
		if ds.HasErrors() {
			return cty.UnknownVal(cty.String)
		}
		v, _ = v.Unmark()
		return v
	}
	src := text(cfg.Source)
	name := "*"
	if src.IsKnown() && !src.IsNull() {
		name = src.AsString()
	}
	add := func(address string, k addr.Key, some bool, of chain, child *eval.Module) {
		if !c.wants(Module, name) {
			return
		}
		s := &Subject{Kind: Module, Address: address, Name: name, At: cfg.At, Some: of.some, Uncertain: of.uncertain}
		s.Meta = map[string]cty.Value{
			"address": cty.StringVal(address), "name": cty.StringVal(cfg.Name), "source": src, "version": text(cfg.Version),
			"module": cty.StringVal(string(m.Addr)), "key": KeyValue(k),
		}
		if some {
			s.Meta["key"] = cty.DynamicVal
		}
		if s.Attrs, s.Lacks = cty.EmptyObjectVal, "belongs to a module that is not installed"; child != nil {
			inputs := map[string]cty.Value{}
			for name := range child.Node.Config.Variables {
				if v, ok := child.Variable(c.t, name); ok {
					inputs[name] = v
				} else {
					inputs[name] = cty.DynamicVal
				}
			}
			s.Attrs, s.Lacks = cty.ObjectVal(inputs), ""
		}
		s.Config = s.Attrs
		c.out = append(c.out, s)
	}
	if call.Node == nil {
		keys, some, uncertain, ok := call.Missing(c.t)
		if !ok {
			return
		}
		of := in.with(some, uncertain, &cfg.Repeat, call.Addr())
		c.partial = c.partial || len(keys) > 0
		for _, k := range keys {
			add(call.Addr()+k.String(), k, some, of, nil)
		}
		return
	}
	ch, ok := call.Children(c.t)
	if !ok {
		return
	}
	for _, child := range ch.All {
		_, last, _ := child.Addr.Parent()
		of := in.with(ch.Unknown, child.Uncertain(), &cfg.Repeat, call.Addr())
		add(string(child.Addr), last.Key, ch.Unknown, of, child)
		c.module(child, of)
	}
}

// providers adds the provider configurations of a module, and the required providers that have
// none.
func (c *collector) providers(m *eval.Module, in chain) {
	cfg := m.Node.Config
	configured := map[string]bool{}
	prefix := ""
	if m.Addr != "" {
		prefix = string(m.Addr) + "."
	}
	add := func(name, alias string, k addr.Key, at source.Range, attrs func(*Subject)) {
		if !c.wants(Provider, name) {
			return
		}
		p := cfg.Source(name)
		s := &Subject{Kind: Provider, Address: prefix + "provider." + config.ProviderRef{Name: name, Alias: alias}.String() + k.String(), Name: name, At: at, Some: in.some, Uncertain: in.uncertain}
		constraint, short := cty.NullVal(cty.String), p.Namespace+"/"+p.Type
		var texts []string
		if rp := cfg.RequiredProviders[name]; rp != nil {
			for _, x := range rp.Version {
				texts = append(texts, x.Text)
			}
		}
		if b := cfg.Providers[config.ProviderRef{Name: name, Alias: alias}.String()]; b != nil {
			for _, x := range b.Version {
				texts = append(texts, x.Text)
			}
		}
		if len(texts) > 0 {
			constraint = cty.StringVal(strings.Join(texts, ", "))
		}
		s.Meta = map[string]cty.Value{
			"address": cty.StringVal(s.Address), "name": cty.StringVal(name), "alias": cty.NullVal(cty.String), "source": cty.StringVal(short),
			"type": cty.StringVal(p.Type), "namespace": cty.StringVal(p.Namespace), "hostname": cty.StringVal(p.Host),
			"version": cty.UnknownVal(cty.String), "version_constraint": constraint, "module": cty.StringVal(string(m.Addr)), "key": KeyValue(k),
		}
		if alias != "" {
			s.Meta["alias"] = cty.StringVal(alias)
		}
		s.Attrs, s.Config = cty.EmptyObjectVal, cty.EmptyObjectVal
		attrs(s)
		c.out = append(c.out, s)
	}
	for _, pc := range m.ProviderInstances(c.t) {
		b := pc.Block()
		if b == nil {
			continue
		}
		if b.Alias == "" {
			configured[b.Name] = true
		}
		add(b.Name, b.Alias, pc.Addr.Key, b.At, func(s *Subject) {
			if b.ForEach != nil && pc.Addr.Key == (addr.Key{}) { // the configuration represents all instances
				of := in.with(true, pc.Uncertain(), &config.Repeat{ForEach: b.ForEach}, s.Address)
				s.Some, s.Uncertain, s.Meta["key"] = of.some, of.uncertain, cty.DynamicVal
			}
			if ps := c.o.Schema(pc.Addr.Provider); ps != nil {
				if v, ok := pc.Value(c.t); ok && v.IsKnown() {
					s.Config = value.MarkPaths(v, value.Sensitive, ps.Config.SensitivePaths(bare(v))...)
					s.Attrs = s.Config
					return
				}
			}
			s.Attrs = c.body(pc.Scope(), m.Loose(b, b.Body))
			s.Config, s.Lacks = s.Attrs, lacksSchema(pc.Addr.Provider)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.RequiredProviders)) {
		if rp := cfg.RequiredProviders[name]; !configured[name] {
			add(name, "", addr.Key{}, rp.At, func(s *Subject) {
				if m.Parent() != nil {
					s.Lacks = "is set by the module that passes the configuration"
					return
				}
				// Without a block, the configuration is empty.
				if ps := c.o.Schema(cfg.Source(name)); ps != nil {
					s.Attrs = ps.Config.Empty()
					s.Config = s.Attrs
				} else {
					s.Lacks = lacksSchema(cfg.Source(name))
				}
			})
		}
	}
}
