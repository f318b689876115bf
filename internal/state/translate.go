package state

import "github.com/terrace-iac/terrace/addr"

// TranslateProviders returns the state with providers of registry.terraform.io
// under registry.opentofu.org, since a state that the other peer wrote means
// the same providers. Those in keep (the ones that the configuration names
// with their host) stay as they are. Without any such provider it returns s.
//
// This is OpenTofu's rule, reference section 5.1; the caller leaves it out
// where OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION=0.
func (s *State) TranslateProviders(keep map[addr.Provider]bool) *State {
	if s == nil {
		return nil
	}
	d := s.Edit()
	for a, r := range s.Resources {
		p := r.Provider
		if p.Provider.Host != addr.OtherDefaultHost || keep[p.Provider] {
			continue
		}
		p.Provider.Host = addr.DefaultHost
		rs := d.resources()
		rs[a] = &Resource{Addr: r.Addr, Provider: p, Instances: r.Instances}
	}
	return d.Freeze()
}
