package planner

import (
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/checks"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// findings collects the results of tasks, in any order. A task adds the result for an instance
// when it is complete; from then on other tasks may read it. After all tasks are done, the
// fields may be read without the lock.
type findings struct {
	mu         sync.RWMutex
	byInstance map[*eval.Desired]*instancePlan

	plans        []*instancePlan
	orphans      []*orphanPlan
	vanished     []addr.Object // deposed objects that no longer exist
	generated    []*generatedPlan
	deferred     []*plan.Deferred
	keepOld      map[*plan.Change]bool // replacements whose old object is destroyed later; see holdBack
	none         []addr.ConfigResource // blocks without instances that -target or -exclude leave in the plan
	checkResults []checks.Result
	digests      sync.Map // *state.Object to state.Digest
}

// digest returns the digest of an object after the refresh. It is cached, because many data
// sources may depend on the same objects.
func (f *findings) digest(o *state.Object) state.Digest {
	if d, ok := f.digests.Load(o); ok {
		return d.(state.Digest)
	}
	d := state.DigestOf(o)
	f.digests.Store(o, d)
	return d
}

// instance returns the finding for an instance, or nil if there is none yet.
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

// gather adds all changes and drift found so far to a plan. Data sources of checks may still be
// added meanwhile.
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

// add appends a finding to one of the lists.
func add[T any](f *findings, list *[]T, x T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*list = append(*list, x)
}

// An instancePlan is the result of planning one instance of the configuration. The task that
// computes the instance creates it and adds it to the findings when it is complete.
type instancePlan struct {
	d         *eval.Desired
	change    *plan.Change
	drift     *plan.Change
	refreshed *state.Object // the object in state after the refresh; nil if there is none
	touched   bool          // refreshed differs from the stored object
	provider  addr.ProviderConfig
	deposed   []*plan.Change
	pre, post []eval.Outcome
	checked   bool
	looked    bool // the instance was planned, not only read from state
	how       reading
	with      state.Digest // digest of the inputs of the read; see plan.Reading
	deferred  bool         // the instance cannot be planned yet
	failure   string       // for a data source in a check: the reason for which it could not be read
	order     int          // index of the action that produces the new object; -1 if there is none

	ends []addr.ConfigResource // for a data source: blocks that it refers to, if objects of these blocks are destroyed before it is read
}

// pending reports whether an instance has changes, or may have some when it can be planned.
func (ip *instancePlan) pending() bool {
	return ip != nil && (ip.deferred || ip.change != nil && ip.change.Op != plan.NoOp)
}
