package engine

import (
	"context"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// InspectOptions selects the values that objects have in an Inspection: those of a state, or
// those that a plan will produce.
type InspectOptions struct {
	Variables map[string]InputValue
	State     *state.State // current values of objects; nil with a Plan
	Plan      *plan.Plan   // planned values of objects; nil means the values in State
	// Names resolves references before the configuration does. known is false for references
	// that it does not define. nil means none.
	Names func(ref hcl.Traversal, at *source.Range) (v cty.Value, used int, known bool, ds diag.List)
}

// An Inspection evaluates expressions in the scope of the root module, including its outputs
// (output.NAME). It is not safe for concurrent use.
type Inspection struct {
	root     *eval.Module
	ev       *eval.Evaluator
	task     *demand.Task
	graph    *demand.Graph
	names    func(hcl.Traversal, *source.Range) (cty.Value, int, bool, diag.List)
	returned map[*diag.Message]bool // messages of the graph that were returned already
}

// Inspect returns an Inspection, or nil with errors. It computes values when they are needed.
func (e *Engine) Inspect(ctx context.Context, o InspectOptions) (*Inspection, diag.List) {
	e.ExpectStates(o.State)
	vars, ds := e.inputs(o.Variables)
	if ds.HasErrors() {
		return nil, ds
	}
	x := resourceclient.New(ctx, e.providers())
	w := &objectValues{x: x, state: o.State, planned: map[addr.Instance]*plan.Change{}}
	now := time.Time{}
	if o.Plan != nil {
		now = o.Plan.Timestamp
		w.state = o.Plan.Prior
		for _, c := range o.Plan.Changes {
			if c.Deposed == "" {
				w.planned[c.Addr] = c
			}
		}
	}
	in := e.evaluation(vars, now, true, eval.DeferNothing)
	if o.Plan == nil && o.State == nil { // without plan and state, functions such as timestamp return real values
		in.Functions = e.functions(e.o.Now(), false)
	}
	in.Phase = w
	in.Exists = func(_ *demand.Task, d *eval.Desired) bool { return w.here(d.Addr()) }
	g := &demand.Graph{}
	ev := eval.New(g, in)
	return &Inspection{root: ev.Root, ev: ev, graph: g, task: g.Task(ctx), names: o.Names, returned: map[*diag.Message]bool{}}, ds
}

// Value evaluates an expression.
func (i *Inspection) Value(x hcl.Expression) (cty.Value, diag.List) {
	v, ds := lang.Eval(i.task, inspectionScope{i}, x, cty.DynamicPseudoType)
	return v, append(i.news(), ds...)
}

// Output returns the value of a root output.
func (i *Inspection) Output(name string) (cty.Value, diag.List) {
	v, _ := i.root.Output(i.task, name)
	return v, i.news()
}

// CodeCheckOpen is the code of the warning that an assertion of a check block can only be
// evaluated during apply.
const CodeCheckOpen = eval.CheckOpen

// A Verdict is the result of a condition.
type Verdict uint8

// The verdicts: true, false, not known yet, or failed to evaluate.
const (
	Holds Verdict = iota
	Broken
	Undecided
	Invalid
)

// Condition evaluates a condition. If it is false, the returned message has the summary "KIND
// failed".
func (i *Inspection) Condition(kind string, r *config.Rule) (Verdict, diag.List) {
	out, ds := i.ev.Condition(i.task, inspectionScope{i}, kind, r)
	news := i.news()
	ds = append(news, ds...)
	if news.HasErrors() {
		return Invalid, ds
	}
	switch out.Status {
	case eval.Pass:
		return Holds, ds
	case eval.Fail:
		return Broken, ds
	case eval.Unknown:
		return Undecided, ds
	default:
		return Invalid, ds
	}
}

// news returns the messages of evaluated objects that were not returned before.
func (i *Inspection) news() (ds diag.List) {
	for _, m := range i.graph.Diags() {
		if !i.returned[m] {
			i.returned[m] = true
			ds = append(ds, m)
		}
	}
	return ds
}

// An inspectionScope resolves the references of an Inspection's expressions.
type inspectionScope struct{ *Inspection }

// Resolve implements lang.Scope.
func (i inspectionScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if i.names != nil {
		if v, used, known, ds := i.names(ref, at); known {
			return v, used, ds
		}
	}
	if ref.RootName() != "output" {
		return i.root.Resolve(t, ref, at)
	}
	name := ""
	if len(ref) > 1 {
		name = addr.StepName(ref[1])
	}
	if name == "" {
		return cty.DynamicVal, 1, diag.Errorf(diag.CodeEvalReference, at, "Invalid reference", "The \"output\" object cannot be accessed directly. Instead, access one of its attributes.")
	}
	if i.root.Node.Config.Outputs[name] == nil {
		return cty.DynamicVal, 2, diag.Errorf(diag.CodeEvalUndeclared, at, "Reference to undeclared output value", "An output value with the name %q has not been declared.%s", name, lang.Suggest(name, i.root.Node.Config.Outputs))
	}
	v, ok := i.root.Output(t, name)
	if !ok {
		return v, 2, demand.Fail()
	}
	return v, 2, nil
}

// Functions implements lang.Scope.
func (i inspectionScope) Functions(t *demand.Task, provider []string) (map[string]function.Function, diag.List) {
	return i.root.Functions(t, provider)
}

// objectValues returns the values of objects from a plan or a state.
type objectValues struct {
	x       *resourceclient.Client
	state   *state.State
	planned map[addr.Instance]*plan.Change
}

// here reports whether the plan or state contains an instance.
func (w *objectValues) here(a addr.Instance) bool {
	if c := w.planned[a]; c != nil {
		return true
	}
	_, _, ok := w.state.Object(addr.Object{Instance: a})
	return ok || a.Resource.Mode == addr.Ephemeral
}

// Value implements eval.Phase.
func (w *objectValues) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	a := d.Addr()
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	if c := w.planned[a]; c != nil && !c.After.IsNull() {
		return resourceclient.WithSensitive(c.After, c.AfterSensitive, s), ds
	}
	if obj, _, ok := w.state.Object(addr.Object{Instance: a}); ok {
		v, more := w.x.Decode(a, obj, s, d.Resource.Provider())
		return resourceclient.WithSensitive(v, obj.Sensitive, s), append(ds, more...)
	}
	return cty.UnknownVal(s.Block.ImpliedType()), ds
}

// Schema implements eval.Phase.
func (w *objectValues) Schema(_ *demand.Task, a addr.Provider) (*schema.Provider, diag.List) {
	return w.x.Schema(a)
}

// Function implements eval.Phase.
func (w *objectValues) Function(t *demand.Task, a addr.Provider, pc *eval.ProviderConfig, name string) (function.Function, diag.List) {
	return w.x.Function(t, a, pc, name)
}
