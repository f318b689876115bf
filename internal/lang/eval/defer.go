package eval

import (
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/source"
)

// # Deferral
//
// The number of instances and the configuration of a provider must be known for planning. If
// one depends on an unknown value, the object can be deferred instead of being an error: it is
// planned again when the value is known. The recorded reads show the cause.
//
// In a run over many units an input may be an output that another unit does not have yet. Then
// an object is only deferred if it depends on an unknown root variable (DeferInputs). On
// request, objects that depend on other objects of this configuration are deferred too
// (DeferUnknown).

// Deferring is the kind of unknown values for which objects are deferred.
type Deferring uint8

// The kinds.
const (
	DeferNothing Deferring = iota
	DeferInputs            // unknown root variables
	DeferUnknown           // all unknown values that may become known later
)

// A Deferral is the reason for which an object cannot be planned yet. At least one of the lists
// is not empty.
type Deferral struct {
	At        source.Range // the expression that must become known
	Variables []string     // the unknown root variables, sorted
	Objects   []string     // addresses of the objects whose values are unknown, sorted; only with DeferUnknown
}

// Wait returns the reason for which something with these reads is unknown. It is nil if it must
// not be deferred, or never becomes known.
func (ev *Evaluator) Wait(reads []demand.Read, at source.Range) *Deferral {
	if ev.o.Deferring == DeferNothing {
		return nil
	}
	d := &Deferral{At: at, Variables: ev.waitsFor(reads)}
	if ev.o.Deferring == DeferUnknown {
		d.Objects = ev.UnknownObjects(reads)
	}
	if len(d.Variables)+len(d.Objects) == 0 {
		return nil
	}
	return d
}

// waitsFor returns the root variables with unknown parts that reads lead to, directly or
// indirectly, sorted.
func (ev *Evaluator) waitsFor(reads []demand.Read) []string {
	if len(ev.unknown) == 0 {
		return nil
	}
	var out []string
	follow(reads, func(n *demand.Node) bool {
		it, ok := n.What.(*item)
		if !ok || it.mod != ev.Root || it.kind != "var." {
			return true
		}
		if ev.unknown[it.name] {
			out = append(out, it.name)
		}
		return false
	})
	slices.Sort(out)
	return out
}

// UnknownObjects returns the addresses of the nearest objects that reads lead to and that have
// unknown values or unknown instances, sorted.
func (ev *Evaluator) UnknownObjects(reads []demand.Read) []string {
	var out []string
	follow(reads, func(n *demand.Node) bool {
		if ev.Deferred(n) {
			name, _ := n.What.Describe()
			out = append(out, name)
			return false
		}
		d, ok := n.What.(*Desired)
		if !ok || n != d.Node() {
			return true
		}
		if v, ok := d.value.Peek(); ok && !v.IsWhollyKnown() {
			out = append(out, d.Addr().String())
		}
		return false
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// follow calls visit for each node that reads lead to, once. It continues with the reads of a
// node for which visit returns true.
func follow(reads []demand.Read, visit func(*demand.Node) bool) {
	seen := map[*demand.Node]bool{}
	for reads = slices.Clone(reads); len(reads) > 0; {
		n := reads[len(reads)-1].Node
		reads = reads[:len(reads)-1]
		if seen[n] {
			continue
		}
		if seen[n] = true; visit(n) {
			reads = append(reads, n.Reads()...)
		}
	}
}

// deferral returns the reason for which the current cell cannot be planned yet; nil if it must
// not be deferred.
func (m *Module) deferral(t *demand.Task, at source.Range) *Deferral {
	d := m.ev.Wait(demand.ReadsOf(t), at)
	if n := demand.Current(t); n != nil && d != nil {
		m.ev.deferred.Store(n, true)
	}
	if d == nil {
		return m.represents
	}
	return d
}

// Deferred reports whether a node represents deferred instances.
func (ev *Evaluator) Deferred(n *demand.Node) bool {
	if ev.o.Deferring == DeferNothing {
		return false
	}
	_, ok := ev.deferred.Load(n)
	return ok
}

// unknownInputs returns the given root variables with unknown parts.
func unknownInputs(o Options) map[string]bool {
	if o.Deferring == DeferNothing {
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
	ev := p.mod.ev
	if p.deferred != nil || ev.o.Deferring == DeferNothing || ev.o.Deferring == DeferInputs && len(ev.unknown) == 0 {
		return p.deferred
	}
	v, ok := p.cell.Get(t, nil)
	if !ok || v.IsWhollyKnown() {
		return nil
	}
	return ev.Wait(p.cell.Node.Reads(), p.cfg.At)
}
