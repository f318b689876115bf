package apply

import (
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// plannedEvaluation evaluates the configuration with planned values. A delete may run before
// the objects that its block's count or for_each reads exist. With new values the evaluation
// would fail, and later readers would get the same error.
type plannedEvaluation struct {
	graph   demand.Graph
	ev      *eval.Evaluator
	planned map[addr.Instance]*plan.Change
}

// newPlannedEvaluation returns a function that creates the evaluator when it is first called.
func (a *applier) newPlannedEvaluation(o eval.Options) func() *plannedEvaluation {
	return sync.OnceValue(func() *plannedEvaluation {
		b := &plannedEvaluation{planned: make(map[addr.Instance]*plan.Change, len(a.in.Plan.Changes))}
		for _, c := range a.in.Plan.Changes {
			if c.Deposed == "" {
				b.planned[c.Addr] = c
			}
		}
		o.Phase = phase{a.client, func(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) { return a.plannedValue(b, t, d) }}
		b.ev = eval.New(&b.graph, o)
		return b
	})
}

// plannedValue returns the planned value of an instance.
func (a *applier) plannedValue(b *plannedEvaluation, t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	if c := b.planned[d.Addr()]; c != nil && c.After != cty.NilVal && (!c.After.IsKnown() || !c.After.IsNull()) {
		return resourceclient.WithSensitive(c.After, c.AfterSensitive, s), ds
	}
	obj, _, ok := a.in.Plan.Prior.Object(addr.Object{Instance: d.Addr()})
	if !ok {
		return cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	v, more := a.client.Decode(d.Addr(), obj, s, d.Resource.Provider())
	return resourceclient.WithSensitive(v, obj.Sensitive, s), append(ds, more...)
}

// blockOf returns the configuration of an instance that is about to be destroyed, or nil if the
// instance is not in the configuration. Errors are ignored, since the plan reported them.
func (a *applier) blockOf(t *demand.Task, i addr.Instance) *eval.Desired {
	if a.in.Plan.Mode == plan.Destroy { // nothing is created, so that all values are available
		return a.ev.Desired(t, i)
	}
	b := a.before()
	return b.ev.Desired(b.graph.Task(a.ctx), i)
}
