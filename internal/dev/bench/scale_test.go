package bench

import (
	"runtime"
	"testing"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// Every command of every series prints what it should at two small sizes, and has plausible
// figures. Modules may nest as deep as in the table.
func TestScale(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: Windows does not report the memory of processes")
	}
	sizes := map[string][]int{
		"resources in a directory": {3, 60}, "units of an estate": {3, 12}, "types of a provider with 1,500": {1, 3},
		"KB of state": {1, 20}, "modules inside each other": {2, 300},
	}
	// The directory of a subtest has a name too long for the socket of a provider.
	s := &Scale{Terrace: testkit.Terrace(t), Provider: testkit.TestProvider(t, 6), Dir: t.TempDir(), Rounds: 2}
	for _, series := range AllSeries() {
		t.Run(series.Name, func(t *testing.T) {
			series.Sizes = sizes[series.Name]
			measured := map[int]int{}
			err := s.Run(t.Context(), series, func(p Point) {
				measured[p.N]++
				if p.CPU <= 0 || p.Peak < 1<<20 || p.Exponent != 0 && p.N == series.Sizes[0] {
					t.Errorf("%+v", p)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(measured) != 2 || measured[series.Sizes[0]] < 2 || measured[series.Sizes[0]] != measured[series.Sizes[1]] {
				t.Errorf("measured commands by size: %v", measured)
			}
		})
	}
}

// A command that does not print the expected text is an error.
func TestScaleChecksOutput(t *testing.T) {
	s := &Scale{Terrace: testkit.Terrace(t), Dir: t.TempDir()}
	series := Series{Name: "x", Sizes: []int{1}, write: (*Scale).resources, steps: []step{{name: "version", args: []string{"version"}, want: toAdd(1)}}}
	if err := s.Run(t.Context(), series, func(Point) {}); err == nil {
		t.Error("accepted a command that does not print the expected text")
	}
}
