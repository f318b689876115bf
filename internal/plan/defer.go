package plan

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// UnknownCode is the code of errors about something that must be known before
// anything can be planned, and is not.
const UnknownCode = "plan/unknown"

// DeferReason says why something is put off.
type DeferReason string

// The reasons. The words are those of the plugin protocol where it has them.
const (
	InstancesUnknown      DeferReason = "instance_count_unknown"
	ProviderConfigUnknown DeferReason = "provider_config_unknown"
	ConfigUnknown         DeferReason = "resource_config_unknown" // of a data source, which cannot be read
	ImportUnknown         DeferReason = "import_unknown"
)

// Text says the reason in words, to go behind "because".
func (r DeferReason) Text() string {
	switch r {
	case InstancesUnknown:
		return "which instances there are is not known yet"
	case ProviderConfigUnknown:
		return "the configuration of its provider is not known yet"
	case ConfigUnknown:
		return "what it is to read is not known yet"
	case ImportUnknown:
		return "what is to be imported is not known yet"
	}
	return string(r)
}

// A Deferred is something that cannot be planned before root variables are known
// that hold something unknown now. A plan with any is not to be applied: make
// another when they are known.
type Deferred struct {
	Addr      string // of a module, a resource or an instance
	Reason    DeferReason
	At        source.Range // what has to be known
	Variables []string     // the root variables that it waits for, sorted
}

// Covers reports whether an instance is, or is part of, what is put off.
func (d *Deferred) Covers(a addr.Instance) bool {
	t, err := addr.ParseTarget(d.Addr)
	return err == nil && t.Contains(a)
}

// putOff notes that something is put off.
func (p *planner) putOff(what string, why DeferReason, d *eval.Deferral) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deferred = append(p.deferred, &Deferred{Addr: what, Reason: why, At: d.At, Variables: d.Variables})
}

// putOffInstance notes that one instance is put off. Its value is what its
// configuration says, and unknown for the rest.
func (p *planner) putOffInstance(t *demand.Task, d *eval.Desired, ip *instancePlan, why DeferReason, wait *eval.Deferral) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	pre, ds := d.Preconditions(t)
	ip.pre, ip.checked = pre, true
	config, sensitive, more := configValue(t, d, s)
	if ds = append(ds, Blame(d, s, more)...); ds.HasErrors() {
		return cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	p.putOff(d.Addr().String(), why, wait)
	ip.deferred = true
	return putOffValue(s, config, sensitive), ds
}

func putOffValue(s *schema.Resource, config cty.Value, sensitive []cty.Path) cty.Value {
	planned := s.Block.SetUnknowns(config)
	return withSensitive(planned, present(planned, sensitive), s)
}

// pending reports whether an instance is to change, or may be when it can be planned.
func (ip *instancePlan) pending() bool {
	return ip != nil && (ip.deferred || ip.change != nil && ip.change.Op != NoOp)
}

// sortDeferred orders what is put off by address.
func sortDeferred(all []*Deferred) []*Deferred {
	slices.SortFunc(all, func(a, b *Deferred) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}
