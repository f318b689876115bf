package state

import "github.com/terrace-iac/terrace/addr"

// legacyNamespace is what providers have in states of the versions 1 to 3,
// which know them by type alone.
const legacyNamespace = "-"

// TranslateProviders returns the state with the provider addresses that
// configuration means; required are the providers that it names, and hosts says
// whether to look at those of the other peer. Without anything to translate it
// returns s.
//
// Providers of registry.terraform.io become those of registry.opentofu.org,
// since a state that the other peer wrote means the same providers, unless they
// are required with their host: OpenTofu's rule, reference section 5.1, which
// OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION=0 turns off.
// Providers of old states become the required provider of their type, or the
// default one if none is required or several are. (OpenTofu refuses such a state
// until its owner has named a provider for each.)
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

// ofType finds the only required provider of a type.
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
