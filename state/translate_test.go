package state_test

import (
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
)

func TestTranslateProviders(t *testing.T) {
	at := func(host, ns, typ string) addr.Provider { return addr.Provider{Host: host, Namespace: ns, Type: typ} }
	tofu, other := addr.DefaultHost, addr.OtherDefaultHost
	for _, c := range []struct {
		name     string
		have     addr.Provider
		required []addr.Provider
		want     addr.Provider
	}{
		{"the other registry", at(other, "hashicorp", "aws"), nil, at(tofu, "hashicorp", "aws")},
		{"the other registry, by name", at(other, "hashicorp", "aws"), []addr.Provider{at(other, "hashicorp", "aws")}, at(other, "hashicorp", "aws")},
		{"any other host", at("example.com", "a", "aws"), nil, at("example.com", "a", "aws")},
		{"an old state", at(tofu, "-", "dns"), nil, at(tofu, "hashicorp", "dns")},
		{"an old state, required elsewhere", at(tofu, "-", "dns"), []addr.Provider{at("example.com", "a", "dns"), at(tofu, "hashicorp", "aws")}, at("example.com", "a", "dns")},
		{"an old state, required twice", at(tofu, "-", "dns"), []addr.Provider{at("example.com", "a", "dns"), at(tofu, "b", "dns")}, at(tofu, "hashicorp", "dns")},
		{"an old state, built in", at(tofu, "-", "terraform"), nil, addr.BuiltIn},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := addr.AbsResource{Resource: addr.Resource{Type: "x_y", Name: "z"}}.Instance(addr.Key{})
			d := state.New().Edit()
			d.Apply(state.Change{Object: addr.Object{Instance: a}, Provider: addr.ProviderConfig{Provider: c.have}, New: &state.Object{JSON: []byte("{}")}})
			s := d.Freeze()
			required := map[addr.Provider]bool{}
			for _, p := range c.required {
				required[p] = true
			}
			got := s.TranslateProviders(required, true)
			if _, p, _ := got.Object(addr.Object{Instance: a}); p.Provider != c.want {
				t.Errorf("got %s, want %s", p.Provider, c.want)
			}
			if _, p, _ := s.TranslateProviders(required, false).Object(addr.Object{Instance: a}); c.have.Host == other && p.Provider != c.have {
				t.Errorf("hosts were to be kept, and it is %s", p.Provider)
			}
			if c.want == c.have && got != s {
				t.Error("nothing was to be translated, and it is another state")
			}
		})
	}
}
