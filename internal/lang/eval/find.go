package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Call returns a module call by name, or nil.
func (m *Module) Call(name string) *Call {
	if i, ok := m.code.callIndex[name]; ok {
		return m.calls[i]
	}
	return nil
}

// Find returns the module instance with an address, or nil if it is not in the configuration.
func (ev *Evaluator) Find(t *demand.Task, a addr.ModuleInstance) *Module {
	m := ev.Root
	for _, step := range a.Steps() {
		c := m.Call(step.Name)
		if c == nil || c.Node == nil {
			return nil
		}
		ch, ok := c.Children(t)
		if !ok {
			return nil
		}
		if m = ch.Get(step.Key); m == nil {
			return nil
		}
	}
	return m
}

// Desired returns the configured instance with an address, or nil.
func (ev *Evaluator) Desired(t *demand.Task, a addr.Instance) *Desired {
	m := ev.Find(t, a.Module)
	if m == nil {
		return nil
	}
	r := m.Resource(a.Resource)
	if r == nil {
		return nil
	}
	in, ok := r.Instances(t)
	if !ok {
		return nil
	}
	return in.Get(a.Key)
}

// ProviderAt returns the provider configuration that state contains for an object that is not
// in the configuration.
func (ev *Evaluator) ProviderAt(t *demand.Task, a addr.ProviderConfig, user addr.Instance) (*ProviderConfig, diag.List) {
	m := ev.Root
	for _, name := range a.Module.Calls() {
		c := m.Call(name)
		if c == nil || c.Node == nil {
			m = nil
			break
		}
		ch, ok := c.Children(t)
		if !ok {
			return nil, demand.Fail()
		}
		if len(ch.All) == 0 {
			m = nil
			break
		}
		m = ch.All[0]
	}
	if m == nil {
		if a.Alias == "" { // a default configuration in a removed module: the one of the parent is used
			return ev.Root.defaultConfig(t, a)
		}
		return nil, absent(a, user)
	}
	for _, cfg := range m.Node.Config.Providers {
		if cfg.Alias == a.Alias && m.Node.Config.Source(cfg.Name) == a.Provider && (m.parent == nil || !cfg.Empty) {
			for _, pc := range m.ProviderInstances(t) {
				if pc.Addr.Alias == a.Alias && pc.Addr.Provider == a.Provider && pc.Addr.Key == a.Key {
					return pc, nil
				}
			}
			if cfg.ForEach != nil && a.Key != (addr.Key{}) {
				return nil, diag.Errorf(diag.CodeEvalNoProviderConfiguration, nil, "Provider instance not present", "To work with %s its original provider instance at %s is required, but it has been removed. This occurs when an element is removed from the for_each of a provider configuration while objects that it made are still in the state. Bring the element back, so that %s can be destroyed, and remove it afterwards: for_each of resources should name fewer elements than that of their provider configuration.", user, a, user)
			}
			return nil, absent(a, user)
		}
	}
	if a.Alias != "" || a.Key != (addr.Key{}) {
		return nil, absent(a, user)
	}
	return m.defaultConfig(t, a)
}

// defaultConfig returns the default configuration of a provider for a module.
func (m *Module) defaultConfig(t *demand.Task, a addr.ProviderConfig) (*ProviderConfig, diag.List) {
	root := m.ev.Root
	for _, cfg := range root.Node.Config.Providers {
		if cfg.Alias == "" && root.Node.Config.Source(cfg.Name) == a.Provider {
			return root.providerConfig(addr.ProviderConfig{Provider: a.Provider}, cfg, instance{}), nil
		}
	}
	return root.providerConfig(addr.ProviderConfig{Provider: a.Provider}, nil, instance{}), nil
}

func absent(a addr.ProviderConfig, user addr.Instance) diag.List {
	return diag.Errorf(diag.CodeEvalNoProviderConfiguration, nil, "Provider configuration not present", "To work with %s its original provider configuration at %s is required, but it has been removed. This occurs when a provider configuration is removed while objects created by that provider still exist in the state. Re-add the provider configuration to destroy %s, after which you can remove the provider configuration again.", user, a, user)
}

// TriggerTarget returns the instances to which an element of replace_triggered_by refers. For a
// reference to an attribute it also returns the remaining steps.
func (d *Desired) TriggerTarget(t *demand.Task, x *lang.Expr) ([]*Desired, hcl.Traversal, diag.List) {
	at := x.Range()
	ref, key, rest, ok := triggerRef(x.Expression)
	if !ok {
		return nil, nil, diag.Errorf(diag.CodeEvalReplaceTriggeredBy, &at, "Invalid reference in replace_triggered_by expression", "Each element must be one reference to a managed resource, an instance or an attribute of one; only count.index and each.key may be used as index.")
	}
	a, used, ok := resourceOf(ref)
	if !ok || a.Mode != addr.Managed {
		return nil, nil, diag.Errorf(diag.CodeEvalReplaceTriggeredBy, &at, "Invalid reference in replace_triggered_by expression", "Only managed resources can be referenced in replace_triggered_by.")
	}
	r := d.Resource.Mod.Resource(a)
	if r == nil {
		return nil, nil, d.Resource.Mod.undeclared(a, &at)
	}
	if r == d.Resource {
		return nil, nil, diag.Errorf(diag.CodeEvalReplaceTriggeredBy, &at, "Invalid reference in replace_triggered_by expression", "%s refers to itself: whether it is replaced cannot depend on its own changes. Name what it is to be replaced with.", r.Addr())
	}
	in, fine := r.instances.Get(t, &at)
	if !fine {
		return nil, nil, demand.Fail()
	}
	if d.Resource.Mod.ev.o.Validating {
		return nil, nil, r.triggerMistake(t, ref[used:], key, rest, &at)
	}
	tail := ref[used:]
	if key == nil && len(tail) > 0 && in.Form != One {
		if idx, isIdx := tail[0].(hcl.TraverseIndex); isIdx {
			key, rest = hcl.StaticExpr(idx.Key, idx.SrcRange), tail[1:]
		}
	}
	if key == nil {
		return in.All, tail, nil
	}
	v, ds := lang.Eval(t, d.Scope(cty.NilVal), key, cty.DynamicPseudoType)
	if ds.HasErrors() {
		return nil, nil, ds
	}
	k, err := addr.KeyFromValue(v)
	target := in.Get(k)
	if target == nil && in.Deferred != nil { // it may exist
		return nil, nil, nil
	}
	if err != nil || target == nil {
		return nil, nil, diag.Errorf(diag.CodeEvalUndeclared, &at, "Reference to undeclared resource instance", "%s has no instance with this key.", r.Addr())
	}
	return []*Desired{target}, rest, nil
}

// triggerMistake returns errors in an element of replace_triggered_by that are visible from its
// text and the schema.
func (r *Resource) triggerMistake(t *demand.Task, tail hcl.Traversal, key hcl.Expression, rest hcl.Traversal, at *source.Range) diag.List {
	if key == nil {
		if ds := r.formMistake(tail, 0, at); ds != nil {
			return ds
		}
		return r.staticMistake(t, tail, at)
	}
	for _, ref := range key.Variables() {
		if isAttr(ref, "each", "key") && len(ref) == 2 || isAttr(ref, "count", "index") && len(ref) == 2 {
			continue
		}
		place := ref.SourceRange()
		return diag.Errorf(diag.CodeEvalReplaceTriggeredBy, &place, "Invalid reference in replace_triggered_by expression", "Only count.index and each.key may be used as index here.")
	}
	return r.staticMistake(t, append(hcl.Traversal{hcl.TraverseIndex{Key: cty.DynamicVal, SrcRange: *at}}, rest...), at)
}

// triggerRef splits a.b[KEY].c, where KEY may be an expression.
func triggerRef(x hcl.Expression) (ref hcl.Traversal, key hcl.Expression, rest hcl.Traversal, ok bool) {
	if tr, diags := hcl.AbsTraversalForExpr(x); !diags.HasErrors() {
		return tr, nil, nil, true
	}
	if rel, isRel := x.(*hclsyntax.RelativeTraversalExpr); isRel {
		rest = rel.Traversal
		x = rel.Source
	}
	idx, isIdx := x.(*hclsyntax.IndexExpr)
	if !isIdx {
		return nil, nil, nil, false
	}
	ref, diags := hcl.AbsTraversalForExpr(idx.Collection)
	return ref, idx.Key, rest, !diags.HasErrors()
}

// ConfigOf returns the resource block of an instance, or nil.
func (ev *Evaluator) ConfigOf(a addr.Instance) *config.Resource {
	n := ev.o.Tree.Root
	for _, s := range a.Module.Steps() {
		if n = n.Calls[s.Name]; n == nil {
			return nil
		}
	}
	return n.Config.Resources[a.Resource]
}
