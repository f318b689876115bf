package eval

import (
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/source"
)

// # Putting off what cannot be planned yet
//
// In a run over many units an input may hold an output that another unit does
// not have yet. What depends on it for more than a value (how many instances there
// are, which provider they go to) cannot be planned before that unit is applied,
// and is deferred instead of being an error. Whether it is the input that is
// missing, or something that this configuration makes by itself, the recorded
// reads tell: only what reaches an unknown root variable is deferred.

// A Deferral says that something cannot be planned before root variables are known.
type Deferral struct {
	At        source.Range // the expression that has to be known
	Variables []string     // the root variables that it waits for, sorted
}

// WaitsFor lists the root variables with something unknown in them that reads
// lead to, directly or through others, sorted. It is nil unless Deferring is set.
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

// deferral is why the cell being computed cannot be planned yet; nil if that is
// not for want of an input.
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

// Deferred reports whether a node stands for instances that are deferred.
func (ev *Evaluator) Deferred(n *demand.Node) bool {
	if len(ev.unknown) == 0 {
		return false
	}
	_, ok := ev.deferred.Load(n)
	return ok
}

// unknownInputs are the root variables that are given with something unknown in them.
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

// Deferral says why the provider cannot be configured yet: its arguments, or
// which of its instances is meant, are not known. It is nil if it can be.
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
