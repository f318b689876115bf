package run

import (
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/unit"
)

// # Deferral
//
// While a run plans, the outputs of units that are not applied yet may be unknown. An argument
// that uses such an output is planned as unknown. Some things cannot be planned that way and are
// deferred: a resource, a module or an instance. If the location of the unit or of its state is
// unknown, the unit is deferred as a whole. The engine returns the root variables that a deferral
// depends on, and the unit returns the outputs that these variables refer to.

// waits maps the inputs of a unit to the outputs they wait for.
type waits struct {
	name   func(id string) string // returns the name of the unit with an ID
	inputs []*unit.Setting        // the inputs whose values contain an unknown
}

// of converts the waits of an input, or of another part of a unit, to their form in the report.
func (w waits) of(input string, in []unit.Wait) []report.Wait {
	out := make([]report.Wait, len(in))
	for i, x := range in {
		out[i] = report.Wait{Unit: w.name(x.ID), Ref: x.Ref, Input: input, At: x.At, Where: fmt.Sprintf("%s:%d", w.name(x.At.Filename), x.At.Start.Line)}
	}
	return out
}

// all returns the waits of all inputs.
func (w waits) all() []report.Wait {
	var out []report.Wait
	for _, s := range w.inputs {
		out = append(out, w.of(s.Name, s.Waits)...)
	}
	return out
}

// deferrals returns the deferrals of a plan, each with the outputs of other units that it waits
// for.
func (w waits) deferrals(p *plan.Plan) []report.Deferral {
	out := make([]report.Deferral, len(p.Deferred))
	for i, d := range p.Deferred {
		out[i] = report.Deferral{Address: d.Addr, Reason: d.Reason.Text(), At: &d.At, Objects: d.Objects}
		for _, s := range w.inputs {
			if s.Name == "" || slices.Contains(d.Variables, s.Name) {
				out[i].Waits = append(out[i].Waits, w.of(s.Name, s.Waits)...)
			}
		}
	}
	return out
}
