package saved

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// # Approval
//
// An apply plans each unit again before it applies the unit, against the real results of the
// units before it. An approval does not require an identical plan. It covers the actions on each
// object. The unit is not applied if the new plan has another action for an object, has values
// that differ from those shown as known, or has an action for an object that the approval does
// not cover. The same applies if an object remains that was to be deleted or replaced. An object
// that was already deleted, or that already has the planned values, is no reason to stop. Actions
// that the approved plan listed as deferred are no surprise. If no user is present, they are
// carried out without a question. Otherwise the user is asked once for all units that reach such
// actions at the same time.

// An Approval contains the actions that are approved for one unit.
type Approval struct {
	ops      map[addr.Object]allowed
	outputs  map[string]cty.Value
	inputs   map[string]cty.Value
	time     time.Time                    // time of the plan; the new plan is made with the same time
	readings map[addr.Object]plan.Reading // reads of the plan; none if it comes from another run
	deferred []addr.Target
	changes  bool      // the plan contains changes
	whole    bool      // the unit was deferred as a whole
	saved    *UnitPlan // unit in the plan file from which the rest is read in the unit's turn; nil if the plan was made in this run
}

// allowed is the approved action for one object.
type allowed struct {
	op    plan.Op
	after cty.Value // values as they were shown; cty.NilVal if the action sets none
	old   cty.Value // values of the replaced object; cty.NilVal if none is replaced
	takes bool      // the action imports the object
}

// Saved reports whether the approval comes from a file. It covers one plan of the unit. a may be
// nil.
func (a *Approval) Saved() bool { return a != nil && a.saved != nil }

// objectOf returns the address in that of a deferred object, without the key of a deposed one.
func objectOf(address string) string {
	name, _, _ := strings.Cut(address, " (")
	return name
}

// Approve returns the approvals for the results of a plan run, by unit name.
func Approve(results []*report.Result) map[string]*Approval {
	out := make(map[string]*Approval, len(results))
	for _, res := range results {
		if res.Status == report.Succeeded {
			out[res.Unit.Name] = approval(res.Plan, res.Deferred)
		}
	}
	return out
}

// approval returns the approval of a plan, which may be nil, and of its deferrals.
func approval(p *plan.Plan, deferred []report.Deferral) *Approval {
	a := &Approval{ops: map[addr.Object]allowed{}, outputs: map[string]cty.Value{}}
	if p != nil {
		a.time, a.inputs, a.changes = p.Timestamp, p.Variables, p.HasChanges()
		a.readings = make(map[addr.Object]plan.Reading, len(p.Readings))
		for _, r := range p.Readings {
			a.readings[r.Object] = r
		}
		for _, c := range p.Changes {
			x := allowed{op: c.Op, takes: c.Import != nil}
			if makes(c.Op) {
				x.after = c.After
			}
			if ends(c.Op) && makes(c.Op) {
				x.old = c.Before
			}
			a.ops[addr.Object{Instance: c.Addr, Deposed: c.Deposed}] = x
		}
		for _, o := range p.Outputs {
			if o.Op != plan.Delete {
				a.outputs[o.Name] = o.After
			}
		}
	}
	for _, d := range deferred {
		if d.Address == "" {
			a.whole = true
		} else if t, err := addr.ParseTarget(objectOf(d.Address)); err == nil {
			a.deferred = append(a.deferred, t)
		}
	}
	return a
}

// makes reports whether an action sets values of an object.
func makes(op plan.Op) bool {
	switch op {
	case plan.NoOp, plan.Read, plan.Delete, plan.Forget:
		return false
	}
	return true
}

// covers reports whether an object was deferred.
func (a *Approval) covers(i addr.Instance) bool {
	return a.whole || slices.ContainsFunc(a.deferred, func(t addr.Target) bool { return t.Contains(i) })
}

// kept reports whether the object that was to be deleted or replaced still exists and remains.
func (was allowed) kept(c *plan.Change) bool {
	if !makes(was.op) || was.old == cty.NilVal {
		return ends(was.op)
	}
	old, _ := was.old.UnmarkDeep()
	now, _ := c.After.UnmarkDeep()
	return now.RawEquals(old) // otherwise it was replaced meanwhile
}

// ends reports whether an action deletes or forgets the existing object.
func ends(op plan.Op) bool {
	switch op {
	case plan.Delete, plan.Forget, plan.DeleteThenCreate, plan.CreateThenDelete, plan.ForgetThenCreate:
		return true
	}
	return false
}

// compare returns descriptions of the actions in a plan that were not approved, and reports
// whether the plan contains actions that were deferred at approval time. again means that an
// earlier attempt in this run failed, and may have done some of the actions.
func (a *Approval) compare(p *plan.Plan, again bool) (news []string, later bool) {
	seen := map[addr.Object]bool{}
	for _, c := range p.Changes {
		o := addr.Object{Instance: c.Addr, Deposed: c.Deposed}
		seen[o] = true
		was, had := a.ops[o]
		made := again && had && makes(was.op) && (c.Op == plan.NoOp || c.Reason == plan.ReplaceTainted)
		switch {
		case c.Import != nil && !was.takes && !a.covers(c.Addr):
			news = append(news, fmt.Sprintf("%s (import)", o))
		case had && c.Op == plan.NoOp && !made && was.kept(c):
			news = append(news, fmt.Sprintf("%s (kept in place of %s)", o, was.op))
		case had && (was.op == c.Op || c.Op == plan.NoOp) || made:
			news = append(news, was.differences(o, c)...)
		case c.Op == plan.Read || c.Op == plan.NoOp && c.Import == nil:
		case a.covers(c.Addr):
			later = true
		default:
			news = append(news, fmt.Sprintf("%s (%s)", o, c.Op))
		}
	}
	for o, was := range a.ops {
		_, _, there := p.Prior.Object(o)
		switch {
		case seen[o] || a.covers(o.Instance):
		case makes(was.op):
			news = append(news, fmt.Sprintf("%s (nothing in place of %s)", o, was.op))
		case ends(was.op) && there: // otherwise it was already deleted, as planned
			news = append(news, fmt.Sprintf("%s (kept in place of %s)", o, was.op))
		}
	}
	slices.Sort(news)
	if !p.HasChanges() && len(news) == 0 {
		return nil, later
	}
	return append(news, a.elsewhere(p)...), later
}

// differences describes approved values of an object that differ now.
func (was allowed) differences(o addr.Object, c *plan.Change) []string {
	if was.after == cty.NilVal {
		return nil
	}
	return differ(fmt.Sprintf("%s (%s)", o, c.Op), was.after, c.After)
}

// elsewhere describes known inputs and outputs that differ now.
func (a *Approval) elsewhere(p *plan.Plan) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(a.inputs)) {
		if now, ok := p.Variables[name]; ok {
			out = append(out, differ("input "+name, a.inputs[name], now)...)
		}
	}
	for _, o := range p.Outputs {
		if was, ok := a.outputs[o.Name]; ok {
			out = append(out, differ("output "+o.Name, was, o.After)...)
		}
	}
	return out
}

// differ describes the known parts of a value that differ now. It does not show values, since
// they may be secret.
func differ(what string, was, now cty.Value) []string {
	was, _ = was.UnmarkDeep()
	if now == cty.NilVal {
		now = cty.NullVal(cty.DynamicPseudoType)
	}
	now, _ = now.UnmarkDeep()
	now = alike(now, was)
	var out []string
	for _, err := range schema.AssertSameValue(was, now) {
		text := what + ": another value than the approved one"
		if m := (*schema.Mismatch)(nil); errors.As(err, &m) && len(m.Path) > 0 {
			text += " in " + schema.PathString(plainPath(m.Path))
		}
		out = append(out, text)
	}
	return out
}

// alike converts a value to the type of an earlier one, if possible. The type of an expression
// with several outcomes may change once they are known.
func alike(now, was cty.Value) cty.Value {
	if now.Type().Equals(was.Type()) {
		return now
	}
	if v, err := value.Convert(now, was.Type()); err == nil {
		return v
	}
	return now
}

// plainPath returns a path in which keys that are identifiers are attributes.
func plainPath(p cty.Path) cty.Path {
	out := slices.Clone(p)
	for i, step := range p {
		if x, ok := step.(cty.IndexStep); ok && value.IsText(x.Key) && hclsyntax.ValidIdentifier(x.Key.AsString()) {
			out[i] = cty.GetAttrStep{Name: x.Key.AsString()}
		}
	}
	return out
}

// Of returns the approval of a unit. If it comes from a file, Of reads it; by decrypts it, and
// nil means that it is not encrypted. Without an approval, the result allows nothing.
func Of(all map[string]*Approval, unit string, by sealing.Sealer) (*Approval, diag.List) {
	a := all[unit]
	switch {
	case a == nil:
		return &Approval{}, nil
	case a.saved == nil:
		return a, nil
	}
	a.saved.Decrypt(by)
	var p *plan.Plan
	var err error
	if by != nil && !a.saved.part.Sealed() { // the plan is not authenticated
		_, err = sealing.Open(by, nil)
	}
	if err == nil {
		p, err = a.saved.Plan()
	}
	if err != nil {
		return nil, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the saved plan", "What the saved plan holds of the unit %s cannot be read: %s. Nothing of the unit was changed. Plan again.", unit, err)
	}
	out := approval(p, a.saved.Deferred)
	if b, err := a.saved.Note(readingsMember); err == nil && b != nil {
		if out.readings, err = decodeReadings(b); err != nil { // without the reads, objects are only read again
			out.readings = nil
		}
	}
	if p != nil {
		out.saved = a.saved
	}
	return out, nil
}

// Time returns the time of the approved plan, or zero if there is none. a may be nil.
func (a *Approval) Time() time.Time {
	if a == nil {
		return time.Time{}
	}
	return a.time
}

// Changes reports whether the approved plan contains or may later contain changes. a may be nil,
// which means no.
func (a *Approval) Changes() bool {
	switch {
	case a == nil:
		return false
	case a.whole || len(a.deferred) > 0:
		return true
	case a.saved != nil:
		return a.saved.Changes || len(a.saved.Deferred) > 0
	}
	return a.changes
}

// Readings returns the reads of the approved plan. There are none if the plan comes from a file
// that was not made for this run. a may be nil.
func (a *Approval) Readings() map[addr.Object]plan.Reading {
	if a == nil {
		return nil
	}
	return a.readings
}

// Expects reports whether a change is exactly the approved one.
func (a *Approval) Expects(c *plan.Change) bool {
	was, ok := a.ops[addr.Object{Instance: c.Addr, Deposed: c.Deposed}]
	return ok && was.op == c.Op && (was.after == cty.NilVal || c.After.RawEquals(was.after))
}

// Inputs returns the known variables with which the saved plan was made. There are none if the
// plan does not come from a file. a may be nil.
func (a *Approval) Inputs() map[string]cty.Value {
	out := map[string]cty.Value{}
	if a != nil && a.saved != nil {
		for name, v := range a.inputs {
			if v.IsWhollyKnown() {
				out[name] = v
			}
		}
	}
	return out
}

// A Now contains the data of a unit that is compared with its approval.
type Now struct {
	Unit   string
	State  journal.Header
	Digest string
	// Again means that an earlier attempt in this run failed, and may have done some of the
	// approved actions.
	Again bool
}

// Check compares a plan with the approval and returns an error if the plan is not approved. later
// reports whether the plan contains actions that were deferred at approval time.
func (a *Approval) Check(p *plan.Plan, now Now) (later bool, ds diag.List) {
	if a.saved != nil {
		if why := a.changed(now.State, now.Digest, p, now.Again); why != "" && p.HasChanges() {
			ds := diag.Errorf(diag.CodeEstateStale, nil, "Saved plan is stale", "The saved plan cannot be applied to the unit %s any more: %s. Nothing of the unit was changed. Plan again to see what there is to do.", now.Unit, why)
			return false, ds
		}
	}
	news, later := a.compare(p, now.Again)
	if len(news) > 0 {
		ds := diag.Errorf(diag.CodeEstatePlanChanged, nil, "Plan changed since it was approved", "Planned once more before its turn, the unit %s needs something else than what was approved: %s. Nothing of it was applied. Run again to see and approve the new plan.", now.Unit, shortened(news))
		return false, ds
	}
	return later, nil
}

const mostNews = 20

func shortened(news []string) string {
	if n := len(news); n > mostNews {
		news = append(slices.Clone(news[:mostNews]), fmt.Sprintf("and %d more", n-mostNews))
	}
	return strings.Join(news, ", ")
}

// changed returns the reason why a saved plan is stale, or "" if it is not. again means that an
// earlier attempt in this run may have changed the state.
func (a *Approval) changed(now journal.Header, digest string, p *plan.Plan, again bool) string {
	was := a.saved
	switch {
	case was.Lineage == "" && now.Lineage != "" && again:
	case was.Lineage == "" && now.Lineage != "":
		return "its state was made by another operation after the plan was saved"
	case was.Lineage != now.Lineage:
		return "its state is another one now"
	case was.Serial != now.Serial && !again:
		return fmt.Sprintf("its state was changed by another operation after the plan was saved (serial %d then, %d now)", was.Serial, now.Serial)
	case was.Digest != digest:
		return "its configuration was changed after the plan was saved"
	}
	for _, name := range slices.Sorted(maps.Keys(a.inputs)) {
		v := a.inputs[name]
		if have, ok := p.Variables[name]; v.IsWhollyKnown() && (!ok || !alike(have, v).RawEquals(v)) {
			return fmt.Sprintf("its input %q has another value than when the plan was saved", name)
		}
	}
	return ""
}
