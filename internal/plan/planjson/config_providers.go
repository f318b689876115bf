package planjson

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// providers writes the provider configurations that are used.
func (c *configWriter) providers(t *module.Tree) {
	list := map[string]func(){}
	t.Walk(func(n *module.Node) {
		add := func(local, alias string, p *config.Provider) {
			key := providerKeyIn(n, config.ProviderRef{Name: local, Alias: alias}.String())
			if old := list[key]; old == nil || p != nil {
				list[key] = func() { c.provider(n, local, alias, p) }
			}
		}
		for _, key := range keys(n.Config.Providers) {
			if p := n.Config.Providers[key]; n.Parent == nil || !p.Empty || p.Alias != "" && !passed(n, key) {
				add(p.Name, p.Alias, p)
			}
		}
		if n.Parent != nil {
			return
		}
		for _, name := range keys(n.Config.RequiredProviders) {
			for _, ref := range n.Config.RequiredProviders[name].Aliases {
				if key := ref.String(); list[key] == nil { // the caller must pass it
					list[key] = func() { c.provider(n, ref.Name, "", nil) }
				}
			}
			if n.Config.Providers[name] == nil {
				add(name, "", nil)
			}
		}
		for _, key := range keys(n.Config.Providers) {
			if local := n.Config.Providers[key].Name; n.Config.Providers[local] == nil {
				add(local, "", nil)
			}
		}
		for _, r := range n.Config.Resources {
			if local := r.LocalProvider(); n.Config.Providers[local] == nil {
				add(local, "", nil)
			}
		}
	})
	c.implied(t, list)
	if len(list) == 0 {
		return
	}
	c.name("provider_config")
	c.begin('{')
	for _, key := range keys(list) {
		c.name(key)
		list[key]()
	}
	c.end('}')
}

// passed reports whether the caller passes a provider configuration to a module.
func passed(n *module.Node, key string) bool {
	return slices.ContainsFunc(n.Call.Providers, func(p config.PassedProvider) bool { return p.Child.String() == key })
}

// implied adds default provider configurations that only child modules use.
func (c *configWriter) implied(t *module.Tree, list map[string]func()) {
	t.Walk(func(n *module.Node) {
		if n.Parent == nil {
			return
		}
		for _, r := range n.Config.Resources {
			if r.Provider != nil {
				continue
			}
			at, ref := providerOf(n, config.ProviderRef{Name: r.LocalProvider()})
			if key := providerKeyIn(at, ref.String()); list[key] == nil && ref.Alias == "" {
				list[key] = func() { c.provider(at, ref.Name, "", nil) }
			}
		}
	})
}

func (c *configWriter) provider(n *module.Node, local, alias string, p *config.Provider) {
	source := n.Config.Source(local)
	c.begin('{')
	c.name("name")
	c.str(local)
	c.name("full_name")
	c.str(source.String())
	c.field("alias", alias)
	c.field("version_constraint", versions(n.Config, local, p))
	c.field("module_address", string(n.Path))
	if p != nil && c.schemas != nil {
		if b := c.schemas.ProviderConfig(source); b != nil {
			c.blockMember("expressions", p.Body, b)
		}
	}
	c.end('}')
}

func versions(m *config.Module, local string, p *config.Provider) string {
	var texts []string
	if rp := m.RequiredProviders[local]; rp != nil {
		for _, v := range rp.Version {
			texts = append(texts, v.Text)
		}
	}
	if p != nil {
		for _, v := range p.Version {
			texts = append(texts, v.Text)
		}
	}
	text := strings.Join(texts, ", ")
	if c, err := lock.ParseConstraints(text); err == nil { // in the form of the dependency lock file
		return c.String()
	}
	return text
}

func providerKeyIn(n *module.Node, key string) string {
	if n.Path == "" {
		return key
	}
	return string(n.Path) + ":" + key
}

// providerKey returns the key of the configuration that a reference in a module refers to.
func providerKey(n *module.Node, ref config.ProviderRef) string {
	n, ref = providerOf(n, ref)
	return providerKeyIn(n, ref.String())
}

// providerOf returns the configuration that a reference in a module refers to: the module's
// own, the one that its call passes, or for a default configuration that of its parent if the
// parent uses the provider.
func providerOf(n *module.Node, ref config.ProviderRef) (*module.Node, config.ProviderRef) {
	for {
		key := ref.String()
		if p := n.Config.Providers[key]; n.Parent == nil || p != nil && !p.Empty {
			return n, ref
		}
		passed := false
		for _, pp := range n.Call.Providers {
			if pp.Child.String() == key {
				ref, passed = pp.Parent, true
				break
			}
		}
		if !passed {
			name := localName(n.Parent.Config, n.Config.Source(ref.Name), ref.Name)
			if ref.Alias != "" || !mentions(n.Parent.Config, name) {
				return n, ref
			}
			ref = config.ProviderRef{Name: name}
		}
		n = n.Parent
	}
}

// localName returns the local name of a provider in a module.
func localName(m *config.Module, source addr.Provider, otherwise string) string {
	if m.Source(otherwise) == source {
		return otherwise
	}
	for _, name := range keys(m.RequiredProviders) {
		if m.Source(name) == source {
			return name
		}
	}
	return otherwise
}

// mentions reports whether a module uses a provider.
func mentions(m *config.Module, local string) bool {
	if m.Providers[local] != nil || m.RequiredProviders[local] != nil {
		return true
	}
	for _, r := range m.Resources {
		if r.LocalProvider() == local {
			return true
		}
	}
	return false
}
