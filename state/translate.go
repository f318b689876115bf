package state

import "github.com/terrace-iac/terrace/addr"

// legacyNamespace is the namespace of providers in states of versions 1 to 3, which name
// providers by type only.
const legacyNamespace = "-"

// TranslateProviders returns the state with provider addresses that match the configuration.
// required contains the providers that the configuration requires. hosts enables the
// translation of registry hosts. If nothing changes, it returns s.
//
// Providers of registry.terraform.io become those of registry.opentofu.org, since both names
// mean the same providers in a state that Terraform wrote. Providers that are required with
// their host stay. This is OpenTofu's rule (reference section 5.1), which
// OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION=0 disables.
//
// Providers of old states become the required provider of their type. If none or several are
// required, they become the default provider. OpenTofu instead refuses such a state until the
// user has named a provider for each.
func (s *State) TranslateProviders(required map[addr.Provider]bool, hosts bool) *State {
	if s == nil {
		return nil
	}
	d := s.Edit()
	for a, r := range s.Resources {
		p := r.Provider
		switch {
		case p.Provider.Namespace == legacyNamespace:
			p.Provider = ofType(p.Provider.Type, required)
		case hosts && p.Provider.Host == addr.OtherDefaultHost && !required[p.Provider]:
			p.Provider.Host = addr.DefaultHost
		default:
			continue
		}
		rs := d.resources()
		rs[a] = &Resource{Addr: r.Addr, Provider: p, Instances: r.Instances}
	}
	return d.Freeze()
}

// ofType returns the required provider of a type if there is exactly one.
func ofType(typ string, required map[addr.Provider]bool) addr.Provider {
	found, n := addr.DefaultProvider(typ), 0
	for p := range required {
		if p.Type == typ {
			found = p
			n++
		}
	}
	if n > 1 {
		return addr.DefaultProvider(typ)
	}
	return found
}
