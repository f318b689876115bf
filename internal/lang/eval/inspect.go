package eval

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/zclconf/go-cty/cty"
)

// The methods below are for explanations, which follow a value to the text that set it. They
// return positions and scopes.

// Parent returns the module instance that contains the call; nil for the root.
func (m *Module) Parent() *Module { return m.parent }

// CalledBy returns the call that created the module instance; nil for the root.
func (m *Module) CalledBy() *Call { return m.call }

// CallScope returns the scope in which the inputs of the module instance are evaluated; nil for
// the root.
func (m *Module) CallScope() lang.Scope {
	if m.call == nil {
		return nil
	}
	return m.call.scope(m.inst)
}

// Input returns the given value of a root variable.
func (ev *Evaluator) Input(name string) (in Input, ok bool) {
	in, ok = ev.o.Variables[name]
	return in, ok
}

// anyInstance represents every instance of a repeated block. Its keys are unknown.
func anyInstance() instance {
	return instance{each: cty.DynamicVal, eachKey: cty.UnknownVal(cty.String), count: cty.UnknownVal(cty.Number)}
}

// AnyScope returns a scope for the arguments of the resource without a certain instance:
// each.key, each.value and count.index are unknown.
func (r *Resource) AnyScope() lang.Scope {
	if r.code.repeat.none() {
		return r.Mod
	}
	return &instanceScope{Module: r.Mod, inst: anyInstance()}
}

// AnyScope returns a scope for the inputs of a module call without a certain instance:
// each.key, each.value and count.index are unknown.
func (c *Call) AnyScope() lang.Scope {
	if c.code.repeat.none() {
		return c.mod
	}
	return &instanceScope{Module: c.mod, inst: anyInstance()}
}

// Uncertain reports whether the resource may have no such instance, because the value of count, for_each or
// enabled is unknown. It is only true with Options.Estimating.
func (d *Desired) Uncertain() bool { return d.inst.uncertain }

// Uncertain is as that of Desired, for a module instance. It ignores the modules that contain the call.
func (m *Module) Uncertain() bool { return m.inst.uncertain }

// Uncertain is as that of Desired, for a provider configuration.
func (p *ProviderConfig) Uncertain() bool { return p.inst.uncertain }

// Missing returns the keys of the instances of a module that could not be loaded. unknown means that the
// number is unknown, and uncertain that it may be 0. ok is false if the number has errors.
func (c *Call) Missing(t *demand.Task) (keys []addr.Key, unknown, uncertain, ok bool) {
	exp, ds := c.mod.expand(t, c.code.repeat, "module."+c.code.cfg.Name)
	for _, inst := range exp.all {
		keys = append(keys, inst.key)
		uncertain = uncertain || inst.uncertain
	}
	return keys, exp.unknown, uncertain, !ds.HasErrors()
}

// AnyChild returns a module instance that represents all instances of the call if these are
// unknown. Each call creates a new one. It is nil if the called module could not be loaded.
func (c *Call) AnyChild() *Module {
	if c.Node == nil {
		return nil
	}
	inst := anyInstance()
	if c.code.repeat.none() {
		inst = instance{}
	}
	return c.mod.ev.newModule(c.mod, c, c.Node, c.mod.Addr.Child(c.code.cfg.Name, inst.key), inst)
}

// Any returns a module instance that represents those with an address, whether they are
// configured or not. Nothing is evaluated. It is nil if no configuration was loaded for the
// address.
func (ev *Evaluator) Any(a addr.ModuleInstance) *Module {
	m := ev.Root
	for _, step := range a.Steps() {
		c := m.Call(step.Name)
		if c == nil || c.Node == nil {
			return nil
		}
		m = c.AnyChild()
	}
	return m
}

// Module returns the module instance that contains the call.
func (c *Call) Module() *Module { return c.mod }

// Scope returns the scope in which the configuration's own arguments are evaluated.
func (p *ProviderConfig) Scope() lang.Scope {
	if p.cfg == nil || p.cfg.ForEach == nil {
		return p.mod
	}
	return &instanceScope{Module: p.mod, inst: p.inst}
}
