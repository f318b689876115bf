package module

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// CheckProviders checks that calls pass the provider configurations that modules require
// (reference section 2.2). Each call is checked once, even if its module is called several
// times.
func CheckProviders(t *Tree) diag.List {
	c := &providerCheck{calls: map[*config.Call]bool{}, blocks: map[*config.Provider]bool{}, metas: map[*config.ProviderMeta]bool{}}
	t.Walk(func(n *Node) {
		c.together(n)
		c.meta(n)
		if n.Parent == nil {
			return
		}
		for _, b := range n.Config.Imports {
			c.ds = append(c.ds, n.Config.NotInOpenTofu(b.At, "an import block in a called module")...)
		}
		c.blocksOf(n)
		if !c.calls[n.Call] {
			c.calls[n.Call] = true
			c.passed(n)
			c.missing(n)
		}
	})
	return c.ds
}

type providerCheck struct {
	calls  map[*config.Call]bool
	blocks map[*config.Provider]bool
	metas  map[*config.ProviderMeta]bool
	ds     diag.List
}

func (c *providerCheck) errorf(code string, at *source.Range, summary, detail string, args ...any) {
	c.ds = append(c.ds, diag.Errorf(code, at, summary, detail, args...)...)
}

// blocksOf checks the provider blocks in a called module.
func (c *providerCheck) blocksOf(n *Node) {
	for _, key := range slices.Sorted(maps.Keys(n.Config.Providers)) {
		p := n.Config.Providers[key]
		if p.Empty {
			if !c.blocks[p] {
				c.blocks[p] = true
				c.ds = append(c.ds, diag.Warnf(diag.CodeModuleEmptyProvider, &p.At, "Redundant empty provider block", "This block only says that the module takes a configuration of the provider %q from its caller. An entry in required_providers says that, with configuration_aliases for one with an alias; the block can then be removed.", key)...)
			}
			continue
		}
		for at := n; at.Parent != nil; at = at.Parent {
			if what, where := repeated(at.Call); what != "" {
				c.errorf(diag.CodeModuleOwnProvider, where, "Module is incompatible with count, for_each, enabled and depends_on", "The module at %s has its own configuration of the provider %q, so that a call of it may have no %s: its objects could not be destroyed once the configuration has gone. Let the module take the provider from its caller.", n.Path, key, what)
				break
			}
		}
	}
}

// together warns if removing an element would remove instances and their provider configuration
// in the same step: for_each of both is the same expression.
func (c *providerCheck) together(n *Node) {
	check := func(kind string, forEach *config.Setting, ref config.ProviderRef) {
		p := n.Config.Providers[ref.String()]
		if forEach == nil || ref.Key == nil || p == nil || p.ForEach == nil || !sameExpr(forEach.Expr, p.ForEach.Expr) {
			return
		}
		at := forEach.Expr.Range()
		c.ds = append(c.ds, diag.Warnf(diag.CodeModuleProviderForEach, &at, "Provider configuration for_each matches "+kind, "This for_each is the same as that of the provider configuration %s. When an element goes, its provider instance goes with it, and then nothing can destroy what it made: give the provider a for_each that keeps an element until everything of it is destroyed.", ref).Note(&p.At, "the provider configuration")...)
	}
	if len(n.Config.Providers) == 0 {
		return
	}
	for _, r := range n.Config.Resources {
		if r.Provider != nil {
			check("resource", r.Repeat.ForEach, *r.Provider)
		}
	}
	for _, call := range n.Config.Calls {
		for _, p := range call.Providers {
			check("module", call.Repeat.ForEach, p.Parent)
		}
	}
}

// sameExpr reports whether two expressions contain the same references and function calls.
func sameExpr(a, b hcl.Expression) bool {
	switch x := a.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		y, ok := b.(*hclsyntax.ScopeTraversalExpr)
		return ok && sameRef(x.Traversal, y.Traversal)
	case *hclsyntax.FunctionCallExpr:
		y, ok := b.(*hclsyntax.FunctionCallExpr)
		return ok && x.Name == y.Name && slices.EqualFunc(x.Args, y.Args, func(a, b hclsyntax.Expression) bool { return sameExpr(a, b) })
	}
	return false
}

func sameRef(a, b hcl.Traversal) bool {
	return slices.EqualFunc(a, b, func(a, b hcl.Traverser) bool {
		switch x := a.(type) {
		case hcl.TraverseRoot:
			y, ok := b.(hcl.TraverseRoot)
			return ok && x.Name == y.Name
		case hcl.TraverseAttr:
			y, ok := b.(hcl.TraverseAttr)
			return ok && x.Name == y.Name
		case hcl.TraverseIndex:
			y, ok := b.(hcl.TraverseIndex)
			return ok && x.Key.RawEquals(y.Key)
		}
		return false
	})
}

// meta checks that provider_meta blocks contain constants only.
func (c *providerCheck) meta(n *Node) {
	for _, name := range slices.Sorted(maps.Keys(n.Config.ProviderMetas)) {
		m := n.Config.ProviderMetas[name]
		if c.metas[m] {
			continue
		}
		c.metas[m] = true
		attrs, _ := m.Body.JustAttributes()
		for _, name := range slices.Sorted(maps.Keys(attrs)) {
			for _, ref := range attrs[name].Expr.Variables() {
				at := ref.SourceRange()
				c.errorf(diag.CodeLangNoVariables, &at, "Variables not allowed", "What a provider_meta block gives must be constant: %q may not refer to anything.", name)
			}
		}
	}
}

// repeated returns the argument of a call that repeats it, so that the call may have no instances.
func repeated(call *config.Call) (what string, at *source.Range) {
	for _, s := range []struct {
		name string
		set  *config.Setting
	}{{"count", call.Repeat.Count}, {"for_each", call.Repeat.ForEach}, {"enabled", call.Repeat.Enabled}} {
		if s.set != nil {
			return s.name, &s.set.NameRange
		}
	}
	if len(call.DependsOn) > 0 {
		return "depends_on", &call.At
	}
	return "", nil
}

// passed checks the provider configurations that a call passes.
func (c *providerCheck) passed(n *Node) {
	given := map[string]bool{}
	for _, p := range n.Call.Providers {
		child, parent := p.Child, p.Parent
		at := &child.At
		if given[child.String()] {
			c.errorf(diag.CodeConfigDuplicatePassedProvider, at, "Duplicate provider address", "A configuration is already passed for %s. Each configuration of the module can be given once.", child)
		}
		given[child.String()] = true
		if !c.takes(n, child) {
			continue
		}
		want, have := n.Config.Source(child.Name), n.Parent.Config.Source(parent.Name)
		if want != have {
			c.errorf(diag.CodeModuleProviderMismatch, &parent.At, "Provider type mismatch", "%q is the provider %s here, but %q in the module %s is %s. %s", parent, have.Display(), child, n.Path, want.Display(), passInstead(n.Parent.Config, want))
			continue
		}
		if parent.Alias == "" && n.Parent.Config.RequiredProviders[parent.Name] == nil {
			where := "the root module"
			if n.Parent.Parent != nil {
				where = "the module " + string(n.Parent.Path)
			}
			c.ds = append(c.ds, diag.Warnf(diag.CodeEvalUndeclared, &parent.At, "Reference to undefined provider", "Nothing in %s says which provider %q is, so that %s is assumed. Add an entry of that name to required_providers.", where, parent.Name, have.Display())...)
		}
		if parent.Alias != "" && !declares(n.Parent.Config, parent) {
			c.errorf(diag.CodeEvalUndeclared, &parent.At, "Reference to undefined provider", "There is no provider configuration %s here: declare it with a provider block that has the alias %q.", parent, parent.Alias)
		}
	}
}

// passInstead returns the advice which provider a call in a module can pass for another one.
func passInstead(m *config.Module, want addr.Provider) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.RequiredProviders)) {
		if m.Source(name) == want {
			names = append(names, strconv.Quote(name))
		}
	}
	if len(names) == 0 {
		for _, p := range m.Providers {
			if m.Source(p.Name) == want {
				names = []string{strconv.Quote(p.Name)}
			}
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("No local name here is %s: add an entry for it to required_providers, and pass that name.", want.Display())
	}
	return fmt.Sprintf("Here the local name of %s is %s: pass that provider.", want.Display(), strings.Join(names, " or "))
}

// takes reports whether a module requires a configuration.
func (c *providerCheck) takes(n *Node, child config.ProviderRef) bool {
	if declares(n.Config, child) {
		return true
	}
	if child.Alias != "" {
		c.errorf(diag.CodeEvalUndeclared, &child.At, "Reference to undefined provider", "The module %s declares no provider configuration %s. If you control the module, add it to configuration_aliases in its entry of required_providers.", n.Path, child)
		return false
	}
	c.ds = append(c.ds, diag.Warnf(diag.CodeEvalUndeclared, &child.At, "Reference to undefined provider", "The module %s does not say which provider it means by %q, so that %s is assumed. If you control the module, add an entry of that name to its required_providers.", n.Path, child.Name, n.Config.Source(child.Name).Display())...)
	return true
}

// declares reports whether a module declares that it has or requires a configuration.
func declares(m *config.Module, ref config.ProviderRef) bool {
	if m.Providers[config.ProviderRef{Name: ref.Name, Alias: ref.Alias}.String()] != nil {
		return true
	}
	rp := m.RequiredProviders[ref.Name]
	if ref.Alias == "" {
		return rp != nil
	}
	return rp != nil && slices.ContainsFunc(rp.Aliases, func(a config.ProviderRef) bool { return a.Alias == ref.Alias })
}

// missing checks that a call passes the configurations for which its module has no default.
func (c *providerCheck) missing(n *Node) {
	for _, name := range slices.Sorted(maps.Keys(n.Config.RequiredProviders)) {
		for _, a := range n.Config.RequiredProviders[name].Aliases {
			if !slices.ContainsFunc(n.Call.Providers, func(p config.PassedProvider) bool {
				return p.Child.Name == name && p.Child.Alias == a.Alias
			}) {
				c.errorf(diag.CodeModuleMissingProvider, &n.Call.At, "Missing required provider configuration", "The module requires a configuration of the provider %s under the name %q. Say which it is to use with an entry %[2]s in the argument \"providers\" of this block.", n.Config.Source(name).Display(), name+"."+a.Alias)
			}
		}
	}
}
