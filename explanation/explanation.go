// Package explanation says where a value comes from, in plain data: an Explanation is the way
// from a value to the text that set it.
//
// Main types: Explanation and Step; Unit and Way, for what gives a root module its inputs.
// The one rule: what is here may be shown, since whoever made it left out what is secret.
package explanation

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// An Explanation is the way from a value to the text that set it.
type Explanation struct {
	Address string // what was asked for, in full
	// Value is the effective value without what must not be shown, for which
	// placeholders stand; cty.NilVal if it is not known, or if a whole block was
	// asked for.
	Value     cty.Value
	Sensitive bool // the value, or a part of it, is not shown
	Whole     bool // a block or a list of names was asked for, which has no value
	FromState bool // the value is known from state alone
	Each      bool // the value is not known since every instance has one of its own
	Steps     []*Step
	Parts     []Part // of a block that was asked for as a whole: its arguments, by place

	// Unchecked are providers on the way whose schema could not be had, so that names
	// of arguments alone decided what of theirs is secret.
	Unchecked []addr.Provider
}

// A Kind says what a step of an explanation is.
type Kind string

// The kinds of steps.
const (
	Argument    Kind = "argument"     // an argument of a block
	Block       Kind = "block"        // a nested block
	Dynamic     Kind = "dynamic"      // a nested block that a dynamic block makes
	Local       Kind = "local"        // a local value
	Output      Kind = "output"       // an output of a module
	ModuleInput Kind = "module_input" // what a module call gives for a variable
	Default     Kind = "default"      // the default of a variable, or of an optional attribute of it
	VarFile     Kind = "variable_file"
	Environment Kind = "environment"
	Flag        Kind = "flag"
	Prompt      Kind = "prompt"
	NotGiven    Kind = "not_given"  // a required variable without a value
	Condition   Kind = "condition"  // a condition and the branch that it selects
	Choice      Kind = "choice"     // the argument of merge, coalesce, try, … that won
	Item        Kind = "item"       // an item of an object or list
	Repetition  Kind = "repetition" // count or for_each of a block, for count.index and each
	Computed    Kind = "computed"   // an expression whose result stands nowhere in the text
	Provider    Kind = "provider"   // what a provider decides
	Context     Kind = "context"    // path, terraform: what the run itself decides
	Unknown     Kind = "unknown"    // which way it goes is not known, or must not be shown
	Failed      Kind = "failed"     // the expression has an error
	Cycle       Kind = "cycle"      // a value that needs itself
	NotSet      Kind = "not_set"    // an argument that nothing sets
	Merged      Kind = "merged"     // a list or map that several places have a part in
)

// The kinds of steps in unit files.
const (
	Input          Kind = "input"           // an input of a unit
	Import         Kind = "import"          // an import block through which a value is read
	Include        Kind = "include"         // an include block, likewise
	Values         Kind = "values_file"     // a value of the values file
	Feature        Kind = "feature"         // the default of a feature flag
	Dependency     Kind = "dependency"      // an output of another unit
	DataFile       Kind = "data_file"       // a file that yamldecode or jsondecode reads
	MockOutputs    Kind = "mock_outputs"    // what stands in for an output that does not exist
	Generate       Kind = "generate"        // the block that writes a generated file
	ExtraArguments Kind = "extra_arguments" // the block that names a variable file or sets an environment variable
)

// A Step is one stop on the way. The last one is where the value was set, or
// where the way ends because the value is computed.
type Step struct {
	Kind     Kind
	Text     string  // what it is, for a reader: `local.tags["env"]`
	At       *Place  // nil outside files
	With     []Place // the other blocks that a block was merged from
	Replaces []Place // what an argument or block replaced: overrides below overrides, down to the base
	Computed bool    // the value stands nowhere in the text: the expression makes it
	From     []From  // what the expression refers to, where the way ends at one that has references
}

// A Place is a line of source.
type Place struct {
	File         string
	Line, Column int
	Source       string // the line, without what must not be shown; "" if the text is not at hand
	Part         string // what of the line is meant; the same where it is all of it
	Layer        string // "base", "override 1", "variable file", …

	Of *source.Layer // what Layer says, with the block that brought the file in; nil where that is not known
}

// From is something that a computed value is made of.
type From struct {
	Address string // what can be asked for next
	At      *Place
}

// A Part is one argument or nested block of a block.
type Part struct {
	Name     string
	At       Place
	With     []Place // as in Step
	Replaces []Place // as in Step
}
