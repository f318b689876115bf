package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// UnknownCode is the code of errors about a value that must be known for planning, but is
// unknown.
const UnknownCode = diag.CodePlanUnknown

// DeferReason is the reason for which a plan defers an object.
type DeferReason string

// The reasons, in the words of the plugin protocol and of Terraform's plan JSON where they have
// them.
const (
	InstancesUnknown      DeferReason = "instance_count_unknown"
	ProviderConfigUnknown DeferReason = "provider_config_unknown"
	ConfigUnknown         DeferReason = "resource_config_unknown" // a data source cannot be read because its arguments are unknown, or a provider deferred the object for its arguments
	PrereqAbsent          DeferReason = "absent_prereq"           // a provider deferred the object because something that it needs does not exist
	PrereqDeferred        DeferReason = "deferred_prereq"         // another object is deferred
	ImportUnknown         DeferReason = "import_unknown"
)

// Text returns the reason as a clause that follows "because".
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
	case PrereqAbsent:
		return "its provider needs something that does not exist yet"
	case PrereqDeferred:
		return "an object that must come first is deferred"
	}
	return string(r)
}

// A Deferred is a module, resource or instance that cannot be planned yet. A new plan is
// necessary when what it waits for is known.
type Deferred struct {
	Addr   string // address of a module, a resource or an instance
	Reason DeferReason
	At     source.Range // the expression that must become known, or the block
	// Variables are the root variables with unknown values that it waits for, sorted. A plan
	// with such an object cannot be applied.
	Variables []string
	Objects   []string // addresses of the objects that it waits for, sorted
	// Change is the change as far as it can be planned, with unknown values. If Addr is a
	// resource, it represents all unknown instances, and its address has no key. nil means that
	// nothing was planned.
	Change *Change
}

// Waits returns the addresses of the objects and variables that d waits for.
func (d *Deferred) Waits() []string {
	out := slices.Clone(d.Objects)
	for _, name := range d.Variables {
		out = append(out, "var."+name)
	}
	return out
}

// String returns the deferral as a sentence without a period.
func (d *Deferred) String() string {
	return DeferralText(d.Addr, d.Reason.Text(), &d.At, d.Waits())
}

// DeferralText returns the sentence, without a period, that what is deferred for a reason until
// other things are known. what may be "" and at nil.
func DeferralText(what, reason string, at *source.Range, waits []string) string {
	text := reason
	if what != "" {
		text = what + ": " + reason
	}
	if at != nil && at.Filename != "" {
		text += fmt.Sprintf(" (%s:%d)", at.Filename, at.Start.Line)
	}
	if len(waits) > 0 {
		text += "; it waits for " + strings.Join(waits, ", ")
	}
	return text
}

// Covers reports whether an instance is deferred by d, or is part of what d defers.
func (d *Deferred) Covers(a addr.Instance) bool {
	t, err := addr.ParseTarget(d.Addr)
	return err == nil && t.Contains(a)
}

// DeferredInstances returns a test whether an instance is deferred by one of the list.
func DeferredInstances(all []*Deferred) func(addr.Instance) bool {
	if len(all) == 0 {
		return func(addr.Instance) bool { return false }
	}
	named := make(map[string]bool, len(all))
	for _, d := range all {
		named[d.Addr] = true
	}
	return func(a addr.Instance) bool {
		if named[a.String()] || named[addr.AbsResource{Module: a.Module, Resource: a.Resource}.String()] {
			return true
		}
		path := addr.ModuleInstance("")
		for _, step := range a.Module.Steps() {
			if named[string(path.Child(step.Name, addr.Key{}))] { // all instances of the call
				return true
			}
			if path = path.Child(step.Name, step.Key); named[string(path)] {
				return true
			}
		}
		return false
	}
}
