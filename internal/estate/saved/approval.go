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

// # What was approved
//
// An apply plans each unit again, just before its turn, against what was really
// made before it. What was approved is not the plan to the letter but what happens
// to the objects that it covers: where the new plan does something else to one of
// them, gives one other values than those that were shown as known, or does something
// to one that it did not cover, the unit stops before anything of it is done. So it
// does where an object stays that was to be deleted or replaced; one that was deleted
// already, or already as the plan wanted it, is no reason to stop. What the approved
// plan listed as deferred is not new: it is what was to come. It is done without a
// question if nobody is there to answer one, and else asked for once for all units that
// come to such work at the same time.

// An Approval is what may happen to one unit.
type Approval struct {
	ops      map[addr.Object]allowed
	outputs  map[string]cty.Value
	inputs   map[string]cty.Value
	time     time.Time                    // of the plan: the new one is made as if at the same time
	readings map[addr.Object]plan.Reading // what the plan found; none if it comes from another run
	deferred []addr.Target
	changes  bool  // the plan does something
	whole    bool  // the unit was deferred as a whole
	saved    *Unit // the plan comes from a file, and the rest is read from there in the unit's turn; nil if it was made in this run
}

// allowed is what may happen to one object.
type allowed struct {
	op    plan.Op
	after cty.Value // as it was shown; cty.NilVal where nothing is made
	old   cty.Value // what is replaced; cty.NilVal where nothing is
	takes bool      // imports the object
}

// Approve makes approvals of the results of a run that planned, by the names of
// the units.
func Approve(results []*report.Result) map[string]*Approval {
	out := make(map[string]*Approval, len(results))
	for _, res := range results {
		if res.Status == report.Succeeded {
			out[res.Unit.Name] = approval(res.Plan, res.Deferred)
		}
	}
	return out
}

// approval is that of a plan, nil if there is none, and of what it defers.
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
		} else if t, err := addr.ParseTarget(d.Address); err == nil {
			a.deferred = append(a.deferred, t)
		}
	}
	return a
}

// makes reports whether an operation gives an object values.
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

// kept reports whether the object that was to go, or to be replaced, is there still and
// stays.
func (was allowed) kept(c *plan.Change) bool {
	if !makes(was.op) || was.old == cty.NilVal {
		return ends(was.op)
	}
	old, _ := was.old.UnmarkDeep()
	now, _ := c.After.UnmarkDeep()
	return now.RawEquals(old) // else it was replaced by now
}

// ends reports whether an operation takes the object away that was there.
func ends(op plan.Op) bool {
	switch op {
	case plan.Delete, plan.Forget, plan.DeleteThenCreate, plan.CreateThenDelete, plan.ForgetThenCreate:
		return true
	}
	return false
}

// compare tells what a plan does that was not approved: what is new, in words, and
// whether there is something that was deferred when the approved plan was made. again
// says that the unit was begun before and failed, and may have done some of it.
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
		case ends(was.op) && there: // else it was deleted already, as it was to be
			news = append(news, fmt.Sprintf("%s (kept in place of %s)", o, was.op))
		}
	}
	slices.Sort(news)
	if !p.HasChanges() && len(news) == 0 {
		return nil, later
	}
	return append(news, a.elsewhere(p)...), later
}

// differences are the values of an object that were approved and are others now.
func (was allowed) differences(o addr.Object, c *plan.Change) []string {
	if was.after == cty.NilVal {
		return nil
	}
	return differ(fmt.Sprintf("%s (%s)", o, c.Op), was.after, c.After)
}

// elsewhere are the inputs and outputs that were known and are others now.
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

// differ names the known parts of a value that are others now. The values are not
// shown: they may be secret.
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

// alike is a value in the type of one that was known before, if it fits: an expression
// with several outcomes gives a type that all of them have only once they are known.
func alike(now, was cty.Value) cty.Value {
	if now.Type().Equals(was.Type()) {
		return now
	}
	if v, err := value.Convert(now, was.Type()); err == nil {
		return v
	}
	return now
}

// plainPath is a path with keys that are identifiers as attributes.
func plainPath(p cty.Path) cty.Path {
	out := slices.Clone(p)
	for i, step := range p {
		if x, ok := step.(cty.IndexStep); ok && value.IsText(x.Key) && hclsyntax.ValidIdentifier(x.Key.AsString()) {
			out[i] = cty.GetAttrStep{Name: x.Key.AsString()}
		}
	}
	return out
}

// Of is the approval of a unit among all, read from the file if it comes from one, which
// by decrypts; nil does not. A unit that is not among them may do nothing.
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
	if by != nil && !a.saved.part.Sealed() { // anybody may have made it
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
		if out.readings, err = decodeReadings(b); err != nil { // they cost time to do without, and no more
			out.readings = nil
		}
	}
	if p != nil {
		out.saved = a.saved
	}
	return out, nil
}

// Time is when the approved plan was made; zero if there is none. a may be nil.
func (a *Approval) Time() time.Time {
	if a == nil {
		return time.Time{}
	}
	return a.time
}

// Changes reports whether the approved plan does something, or may do so later. a may be nil:
// then nothing may be done.
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

// Readings are what the approved plan found of objects, none if it comes from a file that was
// not made for this run. a may be nil.
func (a *Approval) Readings() map[addr.Object]plan.Reading {
	if a == nil {
		return nil
	}
	return a.readings
}

// Expects reports whether a change is to the letter what was approved.
func (a *Approval) Expects(c *plan.Change) bool {
	was, ok := a.ops[addr.Object{Instance: c.Addr, Deposed: c.Deposed}]
	return ok && was.op == c.Op && (was.after == cty.NilVal || c.After.RawEquals(was.after))
}

// Inputs are the variables that the saved plan was made with, as far as they were known;
// none if the plan comes from no file. a may be nil.
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

// A Now is what a unit is when its plan is held against an approval.
type Now struct {
	Unit   string
	State  journal.Header
	Digest string
	// Again says that the unit was begun before in this run and failed, and may have done
	// some of what was approved.
	Again bool
}

// Check holds a plan to what was approved. later reports whether it does something that
// was deferred when the approved plan was made.
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

// changed tells what is another than when the plan was saved. again says that the
// unit was begun before in this run, so that its state may be another.
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
