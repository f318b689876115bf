package run

import (
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/estate/outputs"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/unit"
)

// # What has to wait
//
// While a run plans, the outputs of units that are not applied yet may be unknown.
// What only takes such a value is planned with the value unknown. What cannot be
// planned so is deferred: a resource, a module, an instance, or, where the unknown is
// in what says where the unit runs and keeps its state, the unit as a whole. The
// engine says which root variables it waits for, and the unit which outputs those
// are made of.

// waitsOf are the outputs that an input, or another part of a unit, waits for.
func (t *Turn) waitsOf(input string, in []unit.Wait) []report.Wait {
	out := make([]report.Wait, len(in))
	for i, w := range in {
		out[i] = report.Wait{Unit: t.Name(w.ID), Ref: w.Ref, Input: input, At: w.At, Where: fmt.Sprintf("%s:%d", t.Name(w.At.Filename), w.At.Start.Line)}
	}
	return out
}

// allWaits are those of all inputs.
func (t *Turn) allWaits() []report.Wait {
	var out []report.Wait
	for _, s := range t.waits {
		out = append(out, t.waitsOf(s.Name, s.Waits)...)
	}
	return out
}

// deferrals says in the words of units what a plan defers.
func (t *Turn) deferrals(p *plan.Plan) []report.Deferral {
	out := make([]report.Deferral, len(p.Deferred))
	for i, d := range p.Deferred {
		out[i] = report.Deferral{Address: d.Addr, Reason: d.Reason.Text(), At: &d.At}
		for _, s := range t.waits {
			if s.Name == "" || slices.Contains(d.Variables, s.Name) {
				out[i].Waits = append(out[i].Waits, t.waitsOf(s.Name, s.Waits)...)
			}
		}
	}
	return out
}

// deferUnit notes that the unit as a whole waits. root is its module, nil if that
// is not known.
func (t *Turn) deferUnit(root *config.Module, d report.Deferral) {
	t.res.Deferred, t.res.Changes = []report.Deferral{d}, true
	t.Made.Set(t.Unit.ID, outputs.Unknown(root))
}
