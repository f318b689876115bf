package run

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/unitlog"
	"github.com/terrace-iac/terrace/internal/cli/unitview"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
)

// A display prints the progress and the result of a run over units.
type display struct {
	log     *unitlog.Log
	live    *view.Live // nil unless the output is a terminal
	summary *unitview.Summary
	repeats repeats
	planned atomic.Int64 // units that were planned without a message
}

// mostPlanned is the number of units whose plans are reported while a plan is made, unless its length is
// not limited. The summary counts all of them.
const mostPlanned = 60

// skips reports whether the line about the result of a unit is not printed, because a plan of many units
// would fill the log. The first call that returns true also returns the line to print instead.
func (d *display) skips(op estate.Op, res *estate.Result) (skip bool, instead string) {
	if d.summary.Limit == 0 || op != estate.Plan || res.Status != estate.Succeeded || !d.log.Short() {
		return false, ""
	}
	switch n := d.planned.Add(1); {
	case n <= mostPlanned:
		return false, ""
	case n == mostPlanned+1:
		return true, "Further units are listed here only if they fail. --all-changes lists all of them.\n"
	}
	return true, ""
}

// newDisplay returns a display whose log prints nothing yet.
func newDisplay(r *report.Reporter, command string, f *unitflags.Flags) display {
	s := unitview.NewSummary(r)
	s.Command, s.PerUnit = command, f.SummaryPerUnit
	return display{log: &unitlog.Log{}, summary: s}
}

// repeats contains, for each warning, the units that reported it. The zero value is ready to use.
// Its methods may be called concurrently.
type repeats struct {
	mu    sync.Mutex
	first []repeated // in the order in which they were first reported
	of    map[repeated][]string
}

// A repeated is a warning without its position, which differs between units.
type repeated struct {
	summary, detail, address string
	alone                    bool // of a check block, whose values differ between units
}

// kept returns the number of units whose warnings are printed.
func (r repeated) kept() int {
	if r.alone {
		return 3
	}
	return 1
}

// drop removes the warnings of a unit that another unit has already reported. leftOut reports
// them at the end. The warnings of a check block are kept for some units, because their causes lie in the
// units.
func (p *repeats) drop(unit string, ds diag.List) diag.List {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[repeated][]string{}
	}
	var out diag.List
	for _, m := range ds {
		if m.Severity != diag.Warning {
			out = append(out, m)
			continue
		}
		key := repeated{m.Summary, m.Detail, m.Address, m.Alone}
		units := p.of[key]
		switch {
		case len(units) == 0:
			p.first = append(p.first, key)
			out = append(out, m)
		case len(units) < key.kept() || slices.Contains(units[:key.kept()], unit): // or another place in the same unit
			out = append(out, m)
		}
		if n := len(units); n == 0 || units[n-1] != unit { // a search would take longer with each unit
			p.of[key] = append(units, unit)
		}
	}
	return out
}

// namedUnits is the number of units that leftOut names for each warning.
const namedUnits = 5

// leftOut returns a text about the removed warnings, and forgets them.
func (p *repeats) leftOut() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out strings.Builder
	for _, key := range p.first {
		units := p.of[key]
		units = units[min(key.kept(), len(units)):]
		if len(units) == 0 {
			continue
		}
		slices.Sort(units)
		units = slices.Compact(units) // a unit that was tried again
		few := units[:min(len(units), namedUnits)]
		if len(units) == 1 {
			fmt.Fprintf(&out, "\nThe warning %q came up in 1 more unit: %s.\n", key.summary, few[0])
			continue
		}
		rest := ""
		if more := len(units) - len(few); more > 0 {
			rest = fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(&out, "\nThe warning %q came up in %d more units: %s%s.\n", key.summary, len(units), strings.Join(few, ", "), rest)
	}
	p.first, p.of = nil, nil
	if out.Len() > 0 {
		out.WriteString("Use -consolidate-warnings=false to see every warning.\n")
	}
	return out.String()
}
