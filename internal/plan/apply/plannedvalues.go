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

// plannedEvaluation evaluates configuration with what the plan says of everything. A
// delete runs when what the block's count or for_each reads need not have been
// made yet, and what is asked too early stays failed for whoever asks in time.
type plannedEvaluation struct {
	graph   demand.Graph
	ev      *eval.Evaluator
	planned map[addr.Instance]*plan.Change
}

// newPlannedEvaluation makes the evaluator when it is first needed.
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

// plannedValue is the planned value of an instance.
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

// blockOf finds what configuration says of an instance that is about to be
// destroyed, nil if it does not want it. What is wrong with it was reported while
// planning.
func (a *applier) blockOf(t *demand.Task, i addr.Instance) *eval.Desired {
	if a.in.Plan.Mode == plan.Destroy { // nothing is made: all values are there
		return a.ev.Desired(t, i)
	}
	b := a.before()
	return b.ev.Desired(b.graph.Task(a.ctx), i)
}
