// Package explanation defines the explanation of a value as plain data: an Explanation is the
// chain of steps from a value to the text that set it.
//
// Main types: Explanation and Step; Unit and Way, for the source of a root module's inputs. The
// one rule: everything in an Explanation may be shown, since its creator has removed secrets.
package explanation

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// An Explanation is the chain of steps from a value to the text that set it.
type Explanation struct {
	Address string // the requested address, complete
	// Value is the effective value, with placeholders for parts that must not be shown. It is
	// cty.NilVal if the value is unknown, or if a whole block was requested.
	Value     cty.Value
	Sensitive bool // the value or a part of it is not shown
	Whole     bool // a block or a list of names was requested, which has no value
	FromState bool // the value is only known from state
	Each      bool // the value is unknown because it differs between instances
	Steps     []*Step
	Parts     []Part // arguments of a requested block, sorted by position

	// Unchecked contains the providers whose schema was not available. For their values, the
	// names of arguments decided what is secret.
	Unchecked []addr.Provider
}

// A Kind is the kind of a step in an explanation.
type Kind string

// The kinds of steps.
const (
	Argument    Kind = "argument"     // an argument of a block
	Block       Kind = "block"        // a nested block
	Dynamic     Kind = "dynamic"      // a nested block that a dynamic block creates
	Local       Kind = "local"        // a local value
	Output      Kind = "output"       // an output of a module
	ModuleInput Kind = "module_input" // the value that a module call gives to a variable
	Default     Kind = "default"      // the default of a variable, or of one of its optional attributes
	VarFile     Kind = "variable_file"
	Environment Kind = "environment"
	Flag        Kind = "flag"
	Prompt      Kind = "prompt"
	NotGiven    Kind = "not_given"  // a required variable without a value
	Condition   Kind = "condition"  // a condition and the selected branch
	Choice      Kind = "choice"     // the selected argument of merge, coalesce, try, …
	Item        Kind = "item"       // an element of an object or list
	Repetition  Kind = "repetition" // count or for_each of a block, for count.index and each
	Computed    Kind = "computed"   // an expression whose result is not in the text
	Provider    Kind = "provider"   // a value that a provider determines
	Context     Kind = "context"    // path, terraform: values that the run determines
	Unknown     Kind = "unknown"    // the next step is unknown, or must not be shown
	Failed      Kind = "failed"     // the expression has an error
	Cycle       Kind = "cycle"      // a value that depends on itself
	NotSet      Kind = "not_set"    // an argument that is not set
	Merged      Kind = "merged"     // a list or map with parts from several places
)

// The kinds of steps in unit files.
const (
	Input          Kind = "input"           // an input of a unit
	Import         Kind = "import"          // an import block through which a value is read
	Include        Kind = "include"         // an include block through which a value is read
	Values         Kind = "values_file"     // a value in the values file
	Feature        Kind = "feature"         // the default of a feature flag
	Dependency     Kind = "dependency"      // an output of another unit
	DataFile       Kind = "data_file"       // a file that yamldecode or jsondecode reads
	MockOutputs    Kind = "mock_outputs"    // the replacement for an output that does not exist
	Generate       Kind = "generate"        // the block that writes a generated file
	ExtraArguments Kind = "extra_arguments" // the block that names a variable file or sets an environment variable
)

// A Step is one step of an explanation. In the last step the value was set, or the chain ends
// because the value is computed.
type Step struct {
	Kind     Kind
	Text     string       // description for a reader: `local.tags["env"]`
	At       *SourceLine  // nil outside files
	With     []SourceLine // other blocks with which a block was merged
	Replaces []SourceLine // what an argument or block replaced: all overrides down to the base
	Computed bool         // the value is not in the text: the expression computes it
	From     []From       // references of the expression, if the chain ends there
	Output   *UnitOutput  // the output of another unit at which a Dependency ends
}

// A SourceLine is a line of source.
type SourceLine struct {
	File         string
	Line, Column int
	Source       string // the line without secrets; "" if the text is not available
	Part         string // the relevant part of the line; equal to Source if it is the whole line
	Layer        string // such as "base", "override 1" or "variable file"

	Of *source.Layer // the layer with the block that includes the file; nil if it is unknown
}

// From is a reference that contributes to a computed value.
type From struct {
	Address string // address that can be explained next
	At      *SourceLine
}

// A Part is one argument or nested block of a block.
type Part struct {
	Name     string
	At       SourceLine
	With     []SourceLine // as in Step
	Replaces []SourceLine // as in Step
}
