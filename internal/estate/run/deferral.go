package run

import (
	"fmt"
	"slices"

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

// waits are what inputs of a unit wait for.
type waits struct {
	name   func(id string) string // of a unit
	inputs []*unit.Setting        // those with something unknown in them
}

// of are the outputs that an input, or another part of a unit, waits for.
func (w waits) of(input string, in []unit.Wait) []report.Wait {
	out := make([]report.Wait, len(in))
	for i, x := range in {
		out[i] = report.Wait{Unit: w.name(x.ID), Ref: x.Ref, Input: input, At: x.At, Where: fmt.Sprintf("%s:%d", w.name(x.At.Filename), x.At.Start.Line)}
	}
	return out
}

// all are those of all inputs.
func (w waits) all() []report.Wait {
	var out []report.Wait
	for _, s := range w.inputs {
		out = append(out, w.of(s.Name, s.Waits)...)
	}
	return out
}

// deferrals says in the words of units what a plan defers.
func (w waits) deferrals(p *plan.Plan) []report.Deferral {
	out := make([]report.Deferral, len(p.Deferred))
	for i, d := range p.Deferred {
		out[i] = report.Deferral{Address: d.Addr, Reason: d.Reason.Text(), At: &d.At}
		for _, s := range w.inputs {
			if s.Name == "" || slices.Contains(d.Variables, s.Name) {
				out[i].Waits = append(out[i].Waits, w.of(s.Name, s.Waits)...)
			}
		}
	}
	return out
}
