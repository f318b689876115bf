package statefile

import (
	"github.com/terrace-iac/terrace/addr"
)

// names caches parsed addresses. A large state contains the same few providers and modules many
// times, and parsing an address takes longer than parsing the rest of its line.
type names struct {
	modules   map[string]addr.ModuleInstance
	providers map[string]addr.ProviderConfig
	blocks    map[string]addr.ConfigResource
	strings   map[string]string
}

func (n *names) module(text []byte) (addr.ModuleInstance, error) {
	if m, ok := n.modules[string(text)]; ok {
		return m, nil
	}
	m, err := addr.ParseModuleInstance(string(text))
	if err != nil {
		return "", err
	}
	if n.modules == nil {
		n.modules = make(map[string]addr.ModuleInstance)
	}
	n.modules[string(text)] = m
	return m, nil
}

func (n *names) provider(text []byte) (addr.ProviderConfig, error) {
	if p, ok := n.providers[string(text)]; ok {
		return p, nil
	}
	p, err := parseProvider(string(text))
	if err != nil {
		return addr.ProviderConfig{}, err
	}
	if n.providers == nil {
		n.providers = make(map[string]addr.ProviderConfig)
	}
	n.providers[string(text)] = p
	return p, nil
}

func (n *names) block(text []byte) (addr.ConfigResource, error) {
	if r, ok := n.blocks[string(text)]; ok {
		return r, nil
	}
	s := string(text)
	r, err := addr.ParseConfigResource(s)
	if err != nil {
		return addr.ConfigResource{}, err
	}
	if n.blocks == nil {
		n.blocks = make(map[string]addr.ConfigResource)
	}
	n.blocks[s] = r
	return r, nil
}

// string converts text to a string. Equal texts share one string.
func (n *names) string(text []byte) string {
	if s, ok := n.strings[string(text)]; ok {
		return s
	}
	if n.strings == nil {
		n.strings = make(map[string]string)
	}
	s := string(text)
	n.strings[s] = s
	return s
}

// parseProvider parses a provider address. Names of formats before 4 (provider.aws) must follow
// the rules of source addresses, since they are written as such.
func parseProvider(text string) (addr.ProviderConfig, error) {
	p, err := addr.ParseProviderConfig(text)
	if err == nil && p.Provider.Namespace == "-" {
		p.Provider, err = addr.ParseProvider(p.Provider.String())
	}
	return p, err
}
