package eval

import (
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A ProviderConfig is one provider configuration, or one instance of a configuration with
// for_each. Each corresponds to one configured provider process.
type ProviderConfig struct {
	Addr addr.ProviderConfig
	mod  *Module          // the module that contains the block; the root for an implied configuration
	cfg  *config.Provider // nil means an empty configuration without a block
	inst instance
	cell demand.Cell[cty.Value]

	deferred *Deferral // the reason for which the selected instance is unknown; nil if it is known
}

// Implied reports whether the configuration is empty because there is no provider block for it.
func (p *ProviderConfig) Implied() bool { return p.cfg == nil }

// providers caches the provider configurations of a module instance that were requested.
type providers struct {
	mu    sync.Mutex
	made  map[addr.ProviderConfig]*ProviderConfig
	found map[string]*binding
	each  map[string]*demand.Cell[expansion]
}

// binding is the target of a reference to a provider configuration: the block, its module, and
// the key expression with its scope.
type binding struct {
	node *module.Node
	cfg  *config.Provider
	src  addr.Provider
	key  hcl.Expression
	// taken means that the root module takes the configuration from its caller
	// (configuration_aliases) and has none.
	taken bool
	// keyIn is the call whose instance scope evaluates key; nil means that of the resource.
	keyIn *module.Node
}

// Describe returns the name and the source range of the configuration.
func (p *ProviderConfig) Describe() (string, *source.Range) {
	if p.cfg == nil {
		return p.Addr.String(), nil
	}
	return p.Addr.String(), &p.cfg.At
}

// Block returns the provider block, or nil.
func (p *ProviderConfig) Block() *config.Provider { return p.cfg }

// Value computes the configuration as a value of the schema's type.
func (p *ProviderConfig) Value(t *demand.Task) (cty.Value, bool) { return p.cell.Get(t, nil) }

// Node returns the node of the configuration, to inspect its reads.
func (p *ProviderConfig) Node() *demand.Node { return &p.cell.Node }

// AttrRange returns the source range of a part of the configuration.
func (p *ProviderConfig) AttrRange(path cty.Path, s *schema.Provider) *source.Range {
	if p.cfg == nil {
		return nil
	}
	if b, _ := p.mod.ev.compileBody(p.cfg, p.cfg.Body, s.Config); b != nil {
		at := b.AttrRange(path)
		return &at
	}
	return &p.cfg.At
}

// Provider returns the provider configuration of an instance.
func (d *Desired) Provider(t *demand.Task) (*ProviderConfig, diag.List) {
	cfg := d.Resource.code.cfg
	ref := config.ProviderRef{Name: cfg.LocalProvider(), At: cfg.At}
	if cfg.Provider != nil {
		ref = *cfg.Provider
	}
	return d.Resource.Mod.ResolveProvider(t, ref, d.Scope(cty.NilVal))
}

// ResolveProvider returns the configuration to which a reference in this module refers. A key
// in the reference is evaluated in keyScope.
func (m *Module) ResolveProvider(t *demand.Task, ref config.ProviderRef, keyScope lang.Scope) (*ProviderConfig, diag.List) {
	b, ds := m.bind(ref)
	if ds.HasErrors() {
		return nil, ds
	}
	def := m
	for def.Node != b.node {
		def = def.parent
	}
	key := b.key
	if ref.Key != nil {
		key = ref.Key
	}
	a := addr.ProviderConfig{Module: b.node.Path, Provider: b.src}
	if b.cfg != nil {
		a.Alias = b.cfg.Alias
	}
	if b.cfg == nil || b.cfg.ForEach == nil {
		if key != nil {
			at := key.Range()
			return nil, diag.Errorf(diag.CodeEvalProviderConfiguration, &at, "Invalid provider configuration", "The provider configuration %s does not use for_each, so it must be referenced without an instance key.", ref)
		}
		return def.providerConfig(a, b.cfg, instance{}), nil
	}
	return m.keyedProvider(t, def, b, a, instanceRef{ref, key, keyScope})
}

// instanceRef is a reference to an instance of a provider configuration.
type instanceRef struct {
	ref   config.ProviderRef
	key   hcl.Expression // nil if there is none
	scope lang.Scope     // scope of the key
}

// keyedProvider returns one instance of a configuration with for_each.
func (m *Module) keyedProvider(t *demand.Task, def *Module, b *binding, a addr.ProviderConfig, r instanceRef) (*ProviderConfig, diag.List) {
	ref, key, s := r.ref, r.key, r.scope
	if key == nil {
		return nil, diag.Errorf(diag.CodeEvalProviderConfiguration, &ref.At, "Invalid provider configuration", "The provider configuration %s uses for_each, so a reference to it needs an instance key, as in %s[each.key].", ref, ref)
	}
	if b.keyIn != nil { // the key is in the providers argument of a call
		up := m
		for up.Node != b.keyIn {
			up = up.parent
		}
		s = up.call.scope(up.inst)
	}
	at := key.Range()
	kv, ds := lang.Eval(t, s, key, cty.String)
	if ds.HasErrors() {
		return nil, ds
	}
	exp, ok := def.providerInstances(b.cfg).Get(t, &at)
	if !ok {
		return nil, append(ds, demand.Fail()...)
	}
	if wait := exp.deferred; wait != nil || !kv.IsKnown() {
		if wait == nil {
			wait = m.deferral(t, at)
		}
		if wait != nil {
			p := &ProviderConfig{Addr: a, mod: def, cfg: b.cfg, deferred: wait}
			p.cell.Ready(p, cty.DynamicVal)
			return p, ds
		}
	}
	if !kv.IsKnown() && m.ev.o.Validating || exp.unknown {
		return def.providerConfig(a, b.cfg, instance{eachKey: cty.UnknownVal(cty.String), each: cty.DynamicVal}), ds
	}
	if kv.IsMarked() || !kv.IsKnown() || kv.IsNull() {
		return nil, append(ds, diag.Errorf(diag.CodeEvalProviderKey, &at, "Invalid provider instance key", "The key of a provider instance must be a string that is known while planning, and neither sensitive nor ephemeral.")...)
	}
	for _, inst := range exp.all {
		if inst.key.Str == kv.AsString() {
			a.Key = inst.key
			return def.providerConfig(a, b.cfg, inst), ds
		}
	}
	return nil, append(ds, diag.Errorf(diag.CodeEvalProviderKey, &at, "Invalid provider instance key", "The provider configuration %s has no instance with the key %q.", ref, kv.AsString()).Note(&b.cfg.At, "the configuration is here")...)
}

// ProviderInstances returns every configuration in this module instance.
func (m *Module) ProviderInstances(t *demand.Task) []*ProviderConfig {
	var out []*ProviderConfig
	for _, name := range slices.Sorted(maps.Keys(m.Node.Config.Providers)) {
		cfg := m.Node.Config.Providers[name]
		if m.parent != nil && cfg.Empty {
			continue
		}
		a := addr.ProviderConfig{Module: m.Node.Path, Provider: m.Node.Config.Source(cfg.Name), Alias: cfg.Alias}
		if cfg.ForEach == nil {
			out = append(out, m.providerConfig(a, cfg, instance{}))
			continue
		}
		exp, ok := m.providerInstances(cfg).Get(t, nil)
		if !ok {
			continue
		}
		for _, inst := range exp.all {
			a.Key = inst.key
			out = append(out, m.providerConfig(a, cfg, inst))
		}
	}
	return out
}

func (m *Module) providerInstances(cfg *config.Provider) *demand.Cell[expansion] {
	m.providers.mu.Lock()
	defer m.providers.mu.Unlock()
	c := m.providers.each[cfg.Key()]
	if c == nil {
		c = demand.NewCell(demand.Subject(&item{m, "provider.", cfg.Key(), &cfg.At}), expansion{}, func(t *demand.Task) (expansion, diag.List) {
			return m.expandForEach(t, lang.Compile(cfg.ForEach.Expr), "provider."+cfg.Key())
		})
		if m.providers.each == nil {
			m.providers.each = map[string]*demand.Cell[expansion]{}
		}
		m.providers.each[cfg.Key()] = c
	}
	return c
}

func (m *Module) providerConfig(a addr.ProviderConfig, cfg *config.Provider, inst instance) *ProviderConfig {
	m.providers.mu.Lock()
	defer m.providers.mu.Unlock()
	if p := m.providers.made[a]; p != nil {
		return p
	}
	p := &ProviderConfig{Addr: a, mod: m, cfg: cfg, inst: inst}
	p.cell.Init(p, cty.DynamicVal, p.compute)
	if m.providers.made == nil {
		m.providers.made = map[addr.ProviderConfig]*ProviderConfig{}
	}
	m.providers.made[a] = p
	return p
}

func (p *ProviderConfig) compute(t *demand.Task) (cty.Value, diag.List) {
	ps, ds := p.mod.ev.o.Phase.Schema(t, p.Addr.Provider)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	if p.cfg == nil {
		for name, a := range ps.Config.Attributes {
			if a.Required {
				return cty.DynamicVal, append(ds, diag.Errorf(diag.CodeEvalProviderConfiguration, nil, "Invalid provider configuration", "Provider %q requires explicit configuration: add a provider block to the root module and set the argument %q and the others that the provider needs.", p.Addr.Provider.Display(), name)...)
			}
		}
		return ps.Config.Empty(), ds
	}
	b, more := p.mod.ev.compileBody(p.cfg, p.cfg.Body, ps.Config)
	ds = append(ds, more...)
	if ds.HasErrors() || p.mod.ev.bodyFailed(p.cfg, ps.Config) {
		return cty.DynamicVal, append(ds, demand.Fail()...)
	}
	v, more := b.Eval(t, p.Scope())
	return v, append(ds, more...)
}

// bind finds the block to which a reference refers, following module calls upwards.
func (m *Module) bind(ref config.ProviderRef) (*binding, diag.List) {
	k := ref.String()
	m.providers.mu.Lock()
	b := m.providers.found[k]
	m.providers.mu.Unlock()
	if b != nil {
		return b, nil
	}
	b, ds := Bind(m.Node, ref)
	if ds.HasErrors() {
		return nil, ds
	}
	if b.taken && !m.ev.o.Alone {
		return nil, notPresent(ref, b.src)
	}
	m.providers.mu.Lock()
	defer m.providers.mu.Unlock()
	if m.providers.found == nil {
		m.providers.found = map[string]*binding{}
	}
	m.providers.found[k] = b
	return b, nil
}

// Bind finds the block to which a reference in a module refers: its own block, one that a call
// passes, or for the default configuration the nearest in a parent.
func Bind(n *module.Node, ref config.ProviderRef) (*binding, diag.List) {
	src := n.Config.Source(ref.Name)
	b := &binding{src: src}
	name, alias := ref.Name, ref.Alias
	for {
		cfg := n.Config.Providers[config.ProviderRef{Name: name, Alias: alias}.String()]
		passed := passedTo(n, name, alias)
		switch {
		case passed != nil:
			if passed.Key != nil {
				b.key, b.keyIn = passed.Key, n
			}
			name, alias, n = passed.Name, passed.Alias, n.Parent
			continue
		case cfg != nil && (n.Parent == nil || !cfg.Empty || alias != ""): // an empty block for a name is used itself if the call passes none
			b.node, b.cfg = n, cfg
			return b, nil
		case alias != "" && n.Parent == nil && takes(n.Config, name, alias):
			b.node, b.taken = n, true
			return b, nil
		case alias != "":
			return nil, notPresent(config.ProviderRef{Name: name, Alias: alias, At: ref.At}, src)
		case n.Parent == nil:
			b.node = n
			return b, nil
		}
		n = n.Parent
		name = localName(n.Config, src, name)
	}
}

func notPresent(ref config.ProviderRef, src addr.Provider) diag.List {
	return diag.Errorf(diag.CodeEvalNoProviderConfiguration, &ref.At, "Provider configuration not present", "There is no provider configuration %s for %s: declare it with a provider block, or pass it to the module in the \"providers\" argument of its call.", config.ProviderRef{Name: ref.Name, Alias: ref.Alias}, src.Display())
}

// takes reports whether a module declares that it takes a configuration from its caller.
func takes(m *config.Module, name, alias string) bool {
	rp := m.RequiredProviders[name]
	return rp != nil && slices.ContainsFunc(rp.Aliases, func(a config.ProviderRef) bool { return a.Alias == alias })
}

// passedTo returns the configuration that the call of a module passes, or nil.
func passedTo(n *module.Node, name, alias string) *config.ProviderRef {
	if n.Call == nil {
		return nil
	}
	for i, p := range n.Call.Providers {
		if p.Child.Name == name && p.Child.Alias == alias {
			return &n.Call.Providers[i].Parent
		}
	}
	return nil
}

// localName returns the default local name of a provider in a module.
func localName(cfg *config.Module, src addr.Provider, like string) string {
	if cfg.Source(like) == src {
		return like
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.RequiredProviders)) {
		if cfg.Source(name) == src {
			return name
		}
	}
	return like
}
