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
	Eval *eval.Evaluator // with a Phase, or any other that may be asked for everything
	Set  *source.Set     // the text of configuration and variable files

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
	Environs    Kind = "environs"   // path, terraform
	Undecided   Kind = "undecided"  // which way it goes is not known, or must not be shown
	Failed      Kind = "failed"     // the expression has an error
	Circle      Kind = "circle"     // a value that needs itself
	NotSet      Kind = "not_set"    // an argument that nothing sets
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
	r := &replay{t: t, e: e, out: &Explanation{Address: address}, seen: map[visit]bool{}, settings: map[string][]setting{}}
	start, ds := r.start(address)
	if ds.HasErrors() {
		return r.out, ds
	}
	if start.f != nil {
		r.follow(start)
	}
	r.finish()
	return r.out, ds
}

// finish takes from the value what must not be shown.
func (r *replay) finish() {
	r.out.Sensitive = r.valueSecret
	switch v := r.value; {
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

// repetition is the argument that repeats a block.
func repetition(r config.Repeat) (s *config.Setting, forEach bool) {
	if r.ForEach != nil {
		return r.ForEach, true
	}
	return r.Count, false
}
