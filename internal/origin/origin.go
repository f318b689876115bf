// Package origin answers where a value comes from: it follows an argument, local
// value, variable or output through overrides, references, module calls,
// conditions and merges to the text that set it.
//
// Main types: Explainer, Explanation and Step. The one rule: nothing is stored
// for it while values are computed; an explanation replays the winning
// expressions, and what they contain that is sensitive it never shows, only
// where that stands.
package origin

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// An Explainer explains the values of one evaluation. It keeps nothing between
// two explanations and may be used by several tasks at once.
type Explainer struct {
	Eval *eval.Evaluator // with a Phase, or any other that may be asked for everything; nil without a module
	Set  *source.Set     // the text of configuration and variable files
	Unit Unit            // what gives the root module its inputs; nil in a plain folder
	// UnitSet is the text of the unit's files, with Unit.
	UnitSet *source.Set
	// Show gives a file the name that the reader knows it by, and its layer in place
	// of the one that the file has, "" for that. Nil: names are shown as they are.
	Show func(file string) (name, layer string)

	// Layers says where given root variables come from; those that are missing
	// are described by eval.Input.From.
	Layers map[string]source.Layer
	// Lost lists the values that a given root variable had in places which count
	// less, the next best first. Nil if nobody collected them.
	Lost func(name string) []Given
	// Known returns what state has of an instance, marked where it is sensitive,
	// or cty.NilVal. Nil without a state.
	Known func(addr.Instance) cty.Value
	// Schema returns a provider's schema if it can be had, or nil. It is asked only
	// for providers on the way, and remembers its answers. Nil if nothing is at hand.
	Schema func(addr.Provider) *schema.Provider
}

// Given is one place that gives a root variable a value.
type Given struct {
	At    *source.Range // nil outside files
	Layer source.Layer
}

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

// Explain answers ADDRESS[.PATH]: any argument of a resource, data source,
// module call or provider configuration, a local value, variable or output, and
// any part of those. Instances are named by their keys; without one the answer
// holds for all instances, as far as there is one. An address that names
// nothing is an error that proposes what is near.
//
// Cells that are computed on the way report their errors to the graph as ever.
func (e *Explainer) Explain(t *demand.Task, address string) (*Explanation, diag.List) {
	r := newReplay(t, e, e.traceInputs(t))
	r.out.Address = address
	start, ds := finder{r.in}.find(address)
	if ds.HasErrors() {
		return r.out, ds
	}
	r.follow(start(r))
	r.generated()
	r.finish()
	return r.out, ds
}

// finish takes from the value what must not be shown.
func (r *replay) finish() {
	if end := r.lastPlace(); end != nil { // what two layers both have from one place replaced nothing
		for _, s := range r.out.Steps {
			s.Replaces = slices.DeleteFunc(s.Replaces, func(p Place) bool {
				return p.File == end.File && p.Line == end.Line && p.Column == end.Column
			})
		}
	}
	r.shown()
	r.out.Unchecked = r.in.unchecked
	r.out.Sensitive = r.valueSecret
	switch v := r.withoutFed(r.value); {
	case v == cty.NilVal:
		r.out.Sensitive = r.secret
		r.out.Each = r.each
	case r.valueSecret && !value.ContainsSecret(v):
		r.out.Value = cty.StringVal(value.SecretText)
	default:
		r.out.Sensitive = value.ContainsSecret(v)
		r.out.Value = value.Redact(v)
	}
}

// shown gives files the names that the reader knows them by.
func (r *replay) shown() {
	name := func(p *Place) {
		if p == nil || p.File == "" || r.in.e.Show == nil {
			return
		}
		file, layer := r.in.e.Show(p.File)
		p.File, p.Layer = file, cmp.Or(layer, p.Layer)
	}
	names := func(all []Place) {
		for i := range all {
			name(&all[i])
		}
	}
	for _, s := range r.out.Steps {
		name(s.At)
		names(s.With)
		names(s.Replaces)
		for i := range s.From {
			name(s.From[i].At)
		}
	}
	for i := range r.out.Parts {
		p := &r.out.Parts[i]
		name(&p.At)
		names(p.With)
		names(p.Replaces)
	}
}

// repetition is the argument that repeats a block.
func repetition(r config.Repeat) (s *config.Setting, forEach bool) {
	if r.ForEach != nil {
		return r.ForEach, true
	}
	return r.Count, false
}
