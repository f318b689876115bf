package estate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # What has to wait
//
// While a run plans, the outputs of units that are not applied yet may be unknown.
// What only takes such a value is planned with the value unknown. What cannot be
// planned so is put off: a resource, a module, an instance, or, where the unknown is
// in what says where the unit runs and keeps its state, the unit as a whole. The
// engine says which root variables it waits for, and the unit which outputs those
// are made of.

// A Deferral is something that cannot be planned before other units are applied.
type Deferral struct {
	Address string        // in the unit's module; "" for the unit as a whole
	Reason  string        // in words, to go behind "because"
	At      *source.Range // what has to be known; nil if there is no place for it
	Waits   []Wait
}

// A Wait is an output that something waits for.
type Wait struct {
	Unit  string       // the unit that has the output
	Ref   string       // how it is read, such as dependency.net.outputs.id
	Input string       // the input that is made of it; "" if it goes elsewhere
	At    source.Range // where it is read
	Where string       // the same for people, from the estate's root
}

// waitsOf are the outputs that an input, or another part of a unit, waits for.
func (e *Estate) waitsOf(input string, in []unit.Wait) []Wait {
	out := make([]Wait, len(in))
	for i, w := range in {
		out[i] = Wait{Unit: e.name(w.ID), Ref: w.Ref, Input: input, At: w.At, Where: fmt.Sprintf("%s:%d", e.name(w.At.Filename), w.At.Start.Line)}
	}
	return out
}

// allWaits are those of all inputs.
func (w *work) allWaits() []Wait {
	var out []Wait
	for _, s := range w.waits {
		out = append(out, w.r.e.waitsOf(s.Name, s.Waits)...)
	}
	return out
}

// deferrals says in the words of units what a plan puts off.
func (w *work) deferrals(p *plan.Plan) []Deferral {
	out := make([]Deferral, len(p.Deferred))
	for i, d := range p.Deferred {
		out[i] = Deferral{Address: d.Addr, Reason: d.Reason.Text(), At: &d.At}
		for _, s := range w.waits {
			if s.Name == "" || slices.Contains(d.Variables, s.Name) {
				out[i].Waits = append(out[i].Waits, w.r.e.waitsOf(s.Name, s.Waits)...)
			}
		}
	}
	return out
}

// putOff notes that a unit as a whole waits. root is its module, nil if that
// cannot be told.
func (r *Run) putOff(u *Unit, res *Result, root *config.Module, d Deferral) {
	res.Deferred = []Deferral{d}
	res.Changes = true
	r.setOutputs(u, unknownOutputs(root))
}

// unplannable reports whether every error says that something has to be known
// that is not known before other units are applied.
func unplannable(ds diag.List) bool {
	return !slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool { return m.Code != plan.UnknownCode })
}

// String tells the deferral in a sentence without a period.
func (d Deferral) String() string {
	what := d.Address
	if what == "" {
		what = "all of it"
	}
	text := what + ": " + d.Reason
	if d.At != nil {
		text += fmt.Sprintf(" (%s:%d)", d.At.Filename, d.At.Start.Line)
	}
	if len(d.Waits) == 0 {
		return text
	}
	return text + "; it waits for " + waitsText(d.Waits)
}

// waitsText lists what is waited for, each output once.
func waitsText(all []Wait) string {
	var out []string
	for _, w := range all {
		text := fmt.Sprintf("%s (unit %s, read at %s", w.Ref, w.Unit, w.Where)
		if w.Input != "" {
			text += ", input " + w.Input
		}
		if text += ")"; !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}
