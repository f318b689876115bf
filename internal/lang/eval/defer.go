package eval

import (
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/source"
)

// # Deferral
//
// In a run over many units an input may be an output that another unit does not have yet. If
// more than a value depends on it (the number of instances, or a provider configuration), the
// object cannot be planned before that unit is applied. It is deferred instead of being an
// error. The recorded reads show the cause: an object is only deferred if it depends on an
// unknown root variable, and not on something unknown in this configuration.

// A Deferral is the reason for which an object cannot be planned before root variables are
// known.
type Deferral struct {
	At        source.Range // the expression that must become known
	Variables []string     // the unknown root variables, sorted
}

// WaitsFor returns the root variables with unknown parts that reads lead to, directly or
// indirectly, sorted. It is nil unless Deferring is set.
func (ev *Evaluator) WaitsFor(reads []demand.Read) []string {
	if len(ev.unknown) == 0 {
		return nil
	}
	seen := map[*demand.Node]bool{}
	var out []string
	for len(reads) > 0 {
		n := reads[len(reads)-1].Node
		reads = reads[:len(reads)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		if it, ok := n.What.(*item); ok && it.mod == ev.Root && it.kind == "var." {
			if ev.unknown[it.name] {
				out = append(out, it.name)
			}
			continue
		}
		reads = append(reads, n.Reads()...)
	}
	slices.Sort(out)
	return out
}

// deferral returns the reason for which the current cell cannot be planned yet; nil if no input
// is missing.
func (ev *Evaluator) deferral(t *demand.Task, at source.Range) *Deferral {
	names := ev.WaitsFor(demand.ReadsOf(t))
	if names == nil {
		return nil
	}
	if n := demand.Current(t); n != nil {
		ev.deferred.Store(n, true)
	}
	return &Deferral{At: at, Variables: names}
}

// Deferred reports whether a node represents deferred instances.
func (ev *Evaluator) Deferred(n *demand.Node) bool {
	if len(ev.unknown) == 0 {
		return false
	}
	_, ok := ev.deferred.Load(n)
	return ok
}

// unknownInputs returns the given root variables with unknown parts.
func unknownInputs(o Options) map[string]bool {
	if !o.Deferring {
		return nil
	}
	out := map[string]bool{}
	for name, in := range o.Variables {
		if !in.Value.IsWhollyKnown() {
			out[name] = true
		}
	}
	return out
}

// Deferral returns the reason for which the provider cannot be configured yet: its arguments,
// or the selected instance, are unknown. It is nil if it can be configured.
func (p *ProviderConfig) Deferral(t *demand.Task) *Deferral {
	if p.deferred != nil || len(p.mod.ev.unknown) == 0 {
		return p.deferred
	}
	v, ok := p.cell.Get(t, nil)
	if !ok || v.IsWhollyKnown() {
		return nil
	}
	names := p.mod.ev.WaitsFor(p.cell.Node.Reads())
	if names == nil {
		return nil
	}
	return &Deferral{At: p.cfg.At, Variables: names}
}
