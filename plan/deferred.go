package plan

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// UnknownCode is the code of errors about a value that must be known for planning, but is
// unknown.
const UnknownCode = diag.CodePlanUnknown

// DeferReason is the reason for which a plan defers an object.
type DeferReason string

// The reasons, in the words of the plugin protocol where it has them.
const (
	InstancesUnknown      DeferReason = "instance_count_unknown"
	ProviderConfigUnknown DeferReason = "provider_config_unknown"
	ConfigUnknown         DeferReason = "resource_config_unknown" // a data source cannot be read because its arguments are unknown
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
	}
	return string(r)
}

// A Deferred is a module, resource or instance that cannot be planned because root variables
// contain unknown values. A plan that defers anything cannot be applied. A new plan is
// necessary when the variables are known.
type Deferred struct {
	Addr      string // address of a module, a resource or an instance
	Reason    DeferReason
	At        source.Range // the expression that must become known
	Variables []string     // the root variables with unknown values, sorted
}

// Covers reports whether an instance is deferred by d, or is part of what d defers.
func (d *Deferred) Covers(a addr.Instance) bool {
	t, err := addr.ParseTarget(d.Addr)
	return err == nil && t.Contains(a)
}
