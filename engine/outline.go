package engine

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/terrace-iac/terrace/internal/lang/outliner"
	"github.com/terrace-iac/terrace/internal/plan/refactoring"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// OutlineOptions configures Outline. The zero value is usable.
type OutlineOptions struct {
	Explain ExplainOptions // State and Installed are not used
	// Rename converts strings in values before they are compared, such as the path of a temporary
	// directory. nil changes nothing.
	Rename func(string) string
	// Moved returns the address to which another revision moves an instance. nil means no moves.
	Moved func(addr.Instance) addr.Instance
	// Schema returns the schema of a provider without starting the provider, or nil if it is not
	// available. The built-in provider is always available.
	Schema func(addr.Provider) *schema.Provider
	// Inputs contains parts of the variables whose fingerprints are already computed, by path.
	Inputs map[string]*outline.Part
	// Later means that the outline is computed by Collect.
	Later bool
}

// An Outlined is the outline of an engine's configuration. Its methods must not be called
// concurrently.
type Outlined struct {
	*outline.Outline // nil before Collect
	evaluation       *outliner.Evaluation
	explainer        *origin.Explainer
	task             *demand.Task
	graph            *demand.Graph
}

// Outline evaluates the configuration without state and without providers, and returns its content
// with a fingerprint of each value.
func (e *Engine) Outline(ctx context.Context, o OutlineOptions) (*Outlined, diag.List) {
	schemas, graph, configs := e.schemasWithout(ctx, o.Schema), &demand.Graph{}, &outliner.Configs{}
	x, task, ds := e.evaluateAlone(ctx, graph, o.Explain, schemas, outliner.Phase{Schemas: schemas, Configs: configs})
	if ds.HasErrors() {
		return nil, ds
	}
	oo := &outliner.Options{Rename: o.Rename, Moved: o.Moved, Schema: schemas, Given: outliner.Inputs(o.Explain.Unit), Inputs: o.Inputs, Shared: e.outlined, Configs: configs}
	oo.Text = func(at source.Range) []byte {
		for _, set := range []*source.Set{e.o.Set, o.Explain.UnitSet} {
			if set == nil {
				continue
			}
			if f := set.File(at.Filename); f != nil && at.End.Byte <= len(f.Bytes) && at.Start.Byte <= at.End.Byte {
				return f.Bytes[at.Start.Byte:at.End.Byte]
			}
		}
		return nil
	}
	out := &Outlined{evaluation: outliner.Of(task, x.Eval, oo), explainer: x, task: task, graph: graph}
	if !o.Later {
		out.Collect()
	}
	return out, nil
}

// Collect computes the outline.
func (x *Outlined) Collect() { x.Outline = x.evaluation.Outline() }

// MovedFrom returns the new addresses of those instances of another revision that moved blocks in the
// configuration move, and of those that move because count was added to their block or removed from
// it. The result includes the placeholders of module instances; see outline.Object.Instance.
func (e *Engine) MovedFrom(x, other *Outlined) map[addr.Instance]addr.Instance {
	// An object that represents an unknown number of instances has no key. It gets one here, so that it
	// does not move as an instance without count does.
	some := map[addr.ModuleInstance]bool{}
	for _, o := range other.Objects {
		if o.Kind == outline.Call && o.Some {
			some[o.Instance.Module] = true
		}
	}
	keyed := func(a addr.Instance, all bool) addr.Instance {
		at := addr.ModuleInstance("")
		steps := a.Module.Steps()
		for i, step := range steps {
			if at = at.Child(step.Name, step.Key); some[at] {
				steps[i].Key = addr.Str(anyKey)
			}
		}
		if len(steps) > 0 {
			a.Module = addr.ModuleFromSteps(steps)
		}
		if all {
			a.Key = addr.Str(anyKey)
		}
		return a
	}
	d, seen := state.New().Edit(), map[addr.Instance]bool{}
	add := func(a addr.Instance, all bool) {
		if a = keyed(a, all); !seen[a] {
			seen[a] = true
			d.Apply(state.Change{Object: addr.Object{Instance: a}, New: &state.Object{JSON: []byte("{}")}})
		}
	}
	for _, o := range other.Objects {
		if o.Kind != outline.Resource && o.Kind != outline.Call {
			continue
		}
		add(o.Instance, o.Some && o.Kind == outline.Resource)
		for m := o.Instance.Module; m != ""; m, _, _ = m.Parent() {
			add(outliner.ModuleInstance(m), false)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	moved, ds := refactoring.Apply(e.tree, x.explainer.Eval.ModuleOptions(), d.Freeze())
	if ds.HasErrors() {
		return nil // planning reports them
	}
	out := make(map[addr.Instance]addr.Instance, len(moved.From))
	for now, was := range moved.From {
		out[withoutAnyKey(was)] = withoutAnyKey(now)
	}
	return out
}

// anyKey is the key of an object that represents all instances.
const anyKey = "<any>"

// withoutAnyKey returns an address without the keys of objects that represent all instances.
func withoutAnyKey(a addr.Instance) addr.Instance {
	steps := a.Module.Steps()
	for i, step := range steps {
		if step.Key == addr.Str(anyKey) {
			steps[i].Key = addr.Key{}
		}
	}
	if len(steps) > 0 {
		a.Module = addr.ModuleFromSteps(steps)
	}
	if a.Key == addr.Str(anyKey) {
		a.Key = addr.Key{}
	}
	return a
}

// Explain explains the value at ADDRESS[.PATH]. It never contains sensitive values.
func (x *Outlined) Explain(address string) (*explanation.Explanation, diag.List) {
	return x.explainer.Explain(x.task, address)
}

// Problems returns the errors of the evaluation.
func (x *Outlined) Problems() diag.List { return x.graph.Diags().Errors() }

// Warnings returns the warnings of the evaluation.
func (x *Outlined) Warnings() diag.List { return x.graph.Diags().Warnings() }

// Output returns the value of an output of the root module. Unknown parts of it have marks that
// identify them to the outlines of units that read the output. unit and id are the name and the ID of
// the unit that has the output.
func (x *Outlined) Output(name, unit, id string) cty.Value {
	return x.evaluation.Output(name, unit, id)
}
