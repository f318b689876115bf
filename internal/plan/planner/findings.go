package planner

import (
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/checks"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// findings are what the tasks found, in any order: each hands in what it found of an
// instance when it is done with that, and others read it from then on. Once all tasks are
// done the fields are read without the lock.
type findings struct {
	mu         sync.RWMutex
	byInstance map[*eval.Desired]*instancePlan

	plans        []*instancePlan
	orphans      []*orphanPlan
	vanished     []addr.Object // deposed objects that do not exist any more
	generated    []*generatedPlan
	deferred     []*plan.Deferred
	none         []addr.ConfigResource // blocks without instances that -target or -exclude leaves in the plan
	checkResults []checks.Result
	digests      sync.Map // *state.Object to state.Digest
}

// digest is that of what state holds of an instance after the refresh. Many data sources may
// depend on the same objects.
func (f *findings) digest(o *state.Object) state.Digest {
	if d, ok := f.digests.Load(o); ok {
		return d.(state.Digest)
	}
	d := state.DigestOf(o)
	f.digests.Store(o, d)
	return d
}

// instance is what was found of an instance, nil if nothing was yet.
func (f *findings) instance(d *eval.Desired) *instancePlan {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.byInstance[d]
}

func (f *findings) addInstance(ip *instancePlan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byInstance == nil {
		f.byInstance = map[*eval.Desired]*instancePlan{}
	}
	f.byInstance[ip.d] = ip
	f.plans = append(f.plans, ip)
}

// gather adds the changes and the drift that were found so far to a plan. Data sources of
// other checks may still be added meanwhile.
func (f *findings) gather(out *plan.Plan) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, ip := range f.plans {
		if ip.change != nil {
			out.Changes = append(out.Changes, ip.change)
		}
		out.Changes = append(out.Changes, ip.deposed...)
		if ip.drift != nil {
			out.Drift = append(out.Drift, ip.drift)
		}
	}
	for _, op := range f.orphans {
		if op.change != nil {
			out.Changes = append(out.Changes, op.change)
		}
		out.Changes = append(out.Changes, op.deposed...)
		if op.drift != nil {
			out.Drift = append(out.Drift, op.drift)
		}
	}
	for _, g := range f.generated {
		out.Changes = append(out.Changes, g.change)
	}
}

// add hands in a finding for one of the lists.
func add[T any](f *findings, list *[]T, x T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*list = append(*list, x)
}

// An instancePlan is what planning found out about one wanted instance. The task that
// computes the instance makes it, and hands it in as a whole.
type instancePlan struct {
	d         *eval.Desired
	change    *plan.Change
	drift     *plan.Change
	refreshed *state.Object // what state holds after refresh; nil if nothing
	touched   bool          // whether refreshed differs from what state held
	provider  addr.ProviderConfig
	deposed   []*plan.Change
	pre, post []eval.Outcome
	checked   bool
	looked    bool // it was planned, not just read from state
	how       reading
	with      state.Digest // what it is read with, or was: see plan.Reading
	deferred  bool         // it cannot be planned yet
	failure   string       // of a check's data source: why it could not be read
	order     int          // index of the action that makes the new object, -1 without one

	ends []addr.ConfigResource // of a data source: blocks it refers to of which something goes, before it is read
}

// pending reports whether an instance is to change, or may be when it can be planned.
func (ip *instancePlan) pending() bool {
	return ip != nil && (ip.deferred || ip.change != nil && ip.change.Op != plan.NoOp)
}
