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
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// An Explainer explains the values of one evaluation. It keeps nothing between
// two explanations and may be used by several tasks at once.
type Explainer struct {
	Eval *eval.Evaluator // with a Phase, or any other that may be asked for everything; nil without a module
	Set  *source.Set     // the text of configuration and variable files
	Unit Unit            // what gives the root module its inputs; nil in a plain directory
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
	// File reads a file that configuration names, as the function file does, and returns
	// the name that files of configuration beside it have. Nil: none is read.
	File func(name string) (file string, text []byte, ok bool)
	// Schema returns a provider's schema if it can be had, or nil. It is asked only
	// for providers on the way, and remembers its answers. Nil if nothing is at hand.
	Schema func(addr.Provider) *schema.Provider
}

// Given is one place that gives a root variable a value.
type Given struct {
	At    *source.Range // nil outside files
	Layer source.Layer
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
	if r.names == namesDecide {
		r.value = namedItems(r.value)
		r.redact.named.add(r.value, false)
	}
	r.redact.ofLines(r.trail)
	switch v := r.withoutInputs(r.in, r.value); {
	case v == cty.NilVal:
		r.out.Sensitive = r.secret
		r.out.Each = r.each
	case r.valueSecret && !value.ContainsSecret(v):
		r.out.Value = cty.StringVal(value.SecretText)
	default:
		v = r.redact.ofValue(v)
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
