// Package origin explains how a value was computed. It follows an argument, local value, variable or
// output through overrides, references, module calls, conditions and merges to the text that set it.
//
// Main types: Explainer, Explanation and Step. The one rule: evaluation stores nothing for explanations.
// An explanation evaluates the expressions that determined the value again. It never shows sensitive
// text, only the position of that text.
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

// An Explainer explains the values of one evaluation. It stores nothing between explanations and is safe
// for concurrent use if its functions are.
type Explainer struct {
	Eval *eval.Evaluator // evaluation of the module, with a Phase of this package or one that can evaluate everything; nil if the module cannot be read
	Set  *source.Set     // text of configuration and variable files
	Unit InputSource     // unit that sets the inputs of the root module; nil in a plain directory
	// UnitSet contains the text of the unit's files; nil if Unit is nil.
	UnitSet *source.Set
	// Show returns the displayed name of a file, and the displayed layer; "" means the layer of the
	// file. nil shows names unchanged.
	Show func(file string) (name, layer string)

	// Layers contains the sources of root variables with a value. For a variable without an entry,
	// eval.Input.From describes the source.
	Layers map[string]source.Layer
	// Lost returns the values of a root variable that other sources have overridden, those with the
	// highest precedence first. nil means that they are not known.
	Lost func(name string) []Given
	// Known returns the value of an instance in the state, with sensitive parts marked, or
	// cty.NilVal if there is none. nil means that there is no state.
	Known func(addr.Instance) cty.Value
	// File reads a file like the function file. It returns the name of the file in the form that
	// the names of configuration files have. nil reads no files.
	File func(name string) (file string, text []byte, ok bool)
	// Schema returns the schema of a provider, or nil if it is not available. It is called only for
	// providers on the way, possibly several times for each. nil means that there are no schemas.
	Schema func(addr.Provider) *schema.Provider
}

// Given is one source that sets a root variable.
type Given struct {
	At    *source.Range // range in a variable file; nil for other sources
	Layer source.Layer
}

// Explain explains the value at ADDRESS[.PATH]: an argument of a resource, data source, module call or
// provider configuration, a local value, variable or output, or any part of one. An address may contain
// the keys of instances. Without a key, the explanation applies to all instances, as far as they have
// one in common. An address that does not exist is an error, which suggests a similar name.
//
// Errors of values that Explain evaluates are reported to the graph of the task.
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

// Ends finds where many explanations end, without their values and texts. It must not be used
// concurrently.
type Ends struct {
	e         *Explainer
	t         *demand.Task
	fed       *feeds
	generated map[string]bool // whether the unit generates a file, for files that ends are in
}

// Ends returns an Ends for explanations in a task.
func (e *Explainer) Ends(t *demand.Task) *Ends {
	return &Ends{e: e, t: t, fed: e.traceInputs(t), generated: map[string]bool{}}
}

// Of returns the last step of the explanation that Explain gives for an address. Its place contains
// only the name of the file and the position. The step is nil if the explanation has none.
func (x *Ends) Of(address string) (*Step, diag.List) {
	r := newReplay(x.t, x.e, x.fed)
	r.in.ends = x
	start, ds := finder{r.in}.find(address)
	if ds.HasErrors() {
		return nil, ds
	}
	r.follow(start(r))
	r.generated()
	last := r.last()
	if last != nil {
		r.out.Steps, r.out.Parts = []*Step{{Kind: last.Kind, At: last.At}}, nil
		r.shown()
		last = r.last()
	}
	return last, ds
}

// finish completes the explanation. It removes everything secret from the value and from the lines.
func (r *replay) finish() {
	if end := r.lastPlace(); end != nil { // two layers may contain the same place, which then replaced nothing
		for _, s := range r.out.Steps {
			s.Replaces = slices.DeleteFunc(s.Replaces, func(p SourceLine) bool {
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

// repetition returns the argument that repeats a block: for_each, count, or nil.
func repetition(r config.Repeat) (s *config.Setting, forEach bool) {
	if r.ForEach != nil {
		return r.ForEach, true
	}
	return r.Count, false
}
