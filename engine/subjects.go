package engine

import (
	"context"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/terrace-iac/terrace/internal/lang/outliner"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/internal/provider/builtin"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Subject is an object about which rules are written, with its values.
type Subject = subject.Subject

// SubjectKind is the kind of a Subject.
type SubjectKind = subject.Kind

// SubjectOptions configures Subjects. The zero value is usable.
type SubjectOptions struct {
	Explain ExplainOptions // State and Installed are not used
	// Schema returns the schema of a provider, or nil if it is not available. nil means that only
	// the schema of the built-in provider is available.
	Schema func(addr.Provider) *schema.Provider
	// Wants reports whether a subject is wanted, by its kind and name. nil means all.
	Wants func(kind SubjectKind, name string) bool
}

// Subjects are the objects of a configuration about which rules are written. Its methods must not
// be called concurrently.
type Subjects struct {
	All []*Subject
	// Partial means that there may be other subjects in called modules that are not installed.
	Partial   bool
	explainer *origin.Explainer
	task      *demand.Task
}

// Subjects evaluates the configuration without state and without providers, and returns the objects
// about which rules are written.
func (e *Engine) Subjects(ctx context.Context, o SubjectOptions) (*Subjects, diag.List) {
	schemas := e.schemasWithout(ctx, o.Schema)
	phase := &computing{Phase: outliner.Phase{Schemas: schemas}, done: map[*eval.Desired]computed{}}
	x, task, ds := e.evaluateAlone(ctx, &demand.Graph{}, o.Explain, schemas, phase)
	if ds.HasErrors() {
		return nil, ds
	}
	all, partial := subject.Of(task, x.Eval, subject.Options{Schema: schemas, Wants: o.Wants, Values: phase.Values})
	phase.done = nil // an explanation needs few values
	return &Subjects{All: all, Partial: partial, explainer: x, task: task}, nil
}

// computing is the phase of an evaluation by one task. A value that both a subject and references need is
// computed once.
type computing struct {
	outliner.Phase
	done map[*eval.Desired]computed // nil remembers nothing
}

type computed struct {
	config, value cty.Value
	ok            bool
}

// Value implements eval.Phase.
func (p *computing) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	_, v, _ := p.Values(t, d)
	return v, nil
}

// Values is outliner.Phase.Values.
func (p *computing) Values(t *demand.Task, d *eval.Desired) (config, v cty.Value, ok bool) {
	if c, done := p.done[d]; done {
		return c.config, c.value, c.ok
	}
	config, v, ok = p.Phase.Values(t, d)
	if p.done != nil {
		p.done[d] = computed{config, v, ok}
	}
	return config, v, ok
}

// Explain explains the value at ADDRESS[.PATH]. It never contains sensitive values.
func (x *Subjects) Explain(address string) (*explanation.Explanation, diag.List) {
	return x.explainer.Explain(x.task, address)
}

// Output returns the value of an output of the root module.
func (x *Subjects) Output(name string) cty.Value {
	v, ok := x.explainer.Eval.Root.Output(x.task, name)
	if !ok {
		return cty.DynamicVal
	}
	return v
}

// schemasWithout returns the schemas that are available without starting a provider: that of the
// built-in provider, and those of other, which may be nil.
func (e *Engine) schemasWithout(ctx context.Context, other func(addr.Provider) *schema.Provider) func(addr.Provider) *schema.Provider {
	own := e.schemas(ctx, nil)
	if e.o.Decorate == nil {
		with := sync.OnceValue(e.storesData)
		own = func(addr.Provider) *schema.Provider { return builtin.Schema(with()) }
	}
	return func(a addr.Provider) *schema.Provider {
		switch {
		case a.IsBuiltIn():
			return own(a)
		case other != nil:
			return other(a)
		}
		return nil
	}
}

// evaluateAlone prepares an evaluation without state and without providers.
func (e *Engine) evaluateAlone(ctx context.Context, graph *demand.Graph, o ExplainOptions, schemas func(addr.Provider) *schema.Provider, phase eval.Phase) (*origin.Explainer, *demand.Task, diag.List) {
	vars, ds := e.inputsOrUnknown(o.Variables)
	if ds.HasErrors() {
		return nil, nil, ds
	}
	o.State = nil
	x := e.explaining(ctx, o, schemas)
	in := e.evaluation(vars, time.Time{}, true, eval.DeferNothing)
	in.Phase, in.Estimating, in.Compiled = phase, true, e.compiled
	x.Eval = eval.New(graph, in)
	return x, graph.Task(ctx), nil
}
