package plan

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// UnknownCode is the code of errors about something that must be known before
// anything can be planned, and is not.
const UnknownCode = diag.CodePlanUnknown

// DeferReason says why something is deferred.
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

// Covers reports whether an instance is, or is part of, what is deferred.
func (d *Deferred) Covers(a addr.Instance) bool {
	t, err := addr.ParseTarget(d.Addr)
	return err == nil && t.Contains(a)
}
