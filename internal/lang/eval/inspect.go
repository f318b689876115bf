package eval

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/zclconf/go-cty/cty"
)

// What a reader of the configuration needs who follows a value to the text that
// set it: where things stand and in which scope they are evaluated.

// Parent is the module instance that the call stands in; nil for the root.
func (m *Module) Parent() *Module { return m.parent }

// CalledBy is the call that made the module instance; nil for the root.
func (m *Module) CalledBy() *Call { return m.call }

// CallScope is where the inputs of the module instance are evaluated; nil for the root.
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

// anyInstance stands for every instance of a repeated block: its keys are unknown.
func anyInstance() instance {
	return instance{each: cty.DynamicVal, eachKey: cty.UnknownVal(cty.String), count: cty.UnknownVal(cty.Number)}
}

// AnyScope is where arguments of the resource are evaluated when no instance is
// meant, or none is known: each.key, each.value and count.index are unknown.
func (r *Resource) AnyScope() lang.Scope {
	if r.code.repeat.none() {
		return r.Mod
	}
	return &instanceScope{Module: r.Mod, inst: anyInstance()}
}

// AnyScope is the same for the inputs of a module call.
func (c *Call) AnyScope() lang.Scope {
	if c.code.repeat.none() {
		return c.mod
	}
	return &instanceScope{Module: c.mod, inst: anyInstance()}
}

// AnyChild is a module instance that stands for all instances of the call, for
// when they are not known. Each call makes a new one. It is nil if the called
// module could not be loaded.
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

// Any is a module instance that stands for those of an address, whether they are wanted
// or not, with nothing evaluated. It is nil if no configuration was loaded for it.
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

// Module is the module instance that the call stands in.
func (c *Call) Module() *Module { return c.mod }

// Scope is where the configuration's own arguments are evaluated.
func (p *ProviderConfig) Scope() lang.Scope {
	if p.cfg == nil || p.cfg.ForEach == nil {
		return p.mod
	}
	return &instanceScope{Module: p.mod, inst: p.inst}
}
