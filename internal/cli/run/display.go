package run

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/unitlog"
	"github.com/terrace-iac/terrace/internal/cli/unitview"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

// A display prints the progress and the result of a run over units.
type display struct {
	log     *unitlog.Log
	live    *view.Live // nil unless the output is a terminal
	summary *unitview.Summary
	repeats repeats
}

// newDisplay returns a display whose log prints nothing yet.
func newDisplay(r *report.Reporter, command string, f *unitflags.Flags) display {
	s := unitview.NewSummary(r)
	s.Command, s.PerUnit = command, f.SummaryPerUnit
	return display{log: &unitlog.Log{}, summary: s}
}

// repeats counts, for each warning without a source range, the units that reported it. The
// zero value is ready to use. Its methods may be called concurrently.
type repeats struct {
	mu sync.Mutex
	of map[[2]string]int
}

// drop removes warnings without a source range that another unit has already reported. leftOut
// reports their number at the end.
func (p *repeats) drop(ds diag.List) diag.List {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[[2]string]int{}
	}
	var out diag.List
	for _, m := range ds {
		if m.Severity == diag.Warning && m.At == nil && m.Address == "" {
			key := [2]string{m.Summary, m.Detail}
			if p.of[key]++; p.of[key] > 1 {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// leftOut returns a text about the removed warnings, and resets the counts.
func (p *repeats) leftOut() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for key, n := range p.of {
		if n > 1 {
			lines = append(lines, fmt.Sprintf("\nThe warning %q came up in %d more units.\n", key[0], n-1))
		}
	}
	slices.Sort(lines)
	p.of = nil
	return strings.Join(lines, "")
}
