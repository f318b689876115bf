package module

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
)

// Requirements returns the providers that a module itself requires, without called modules. The
// version constraints are in source order.
func Requirements(m *config.Module) map[addr.Provider][]config.Constraint {
	out := map[addr.Provider][]config.Constraint{}
	for name, rp := range m.RequiredProviders {
		src := m.Source(name)
		out[src] = append(out[src], rp.Version...)
	}
	for _, p := range m.Providers {
		src := m.Source(p.Name)
		out[src] = append(out[src], p.Version...)
	}
	for _, r := range m.Resources {
		src := m.Source(r.LocalProvider())
		out[src] = append(out[src], []config.Constraint(nil)...)
	}
	for _, cs := range out {
		slices.SortFunc(cs, ByPlace)
	}
	return out
}

// ByPlace compares constraints by their source ranges.
func ByPlace(a, b config.Constraint) int {
	return cmp.Or(cmp.Compare(a.At.Filename, b.At.Filename), cmp.Compare(a.At.Start.Byte, b.At.Start.Byte))
}
