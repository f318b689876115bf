package syntax

import (
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

func Quote(s string) string { return strconv.Quote(s) }

// Nearest returns the name that is most similar to a misspelled one, or "".
func Nearest(given string, names []string) string {
	best, bestAt := "", 3
	if len(given) < 4 {
		bestAt = 2
	}
	for _, n := range slices.Sorted(slices.Values(names)) {
		if d := distance(given, n, bestAt); d < bestAt {
			best, bestAt = n, d
		}
	}
	return best
}

// distance returns the edit distance of two names, or at least limit if it exceeds that.
func distance(a, b string, limit int) int {
	if diff := len(a) - len(b); diff >= limit || -diff >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// Known reports whether a value is known and not null.
func Known(v cty.Value) bool { return v != cty.NilVal && v.IsKnown() && !v.IsNull() }
