package lang

import (
	"fmt"
	"maps"
	"slices"
)

// Suggest proposes the name that is nearest to a wrong one, as ` Did you mean
// "x"?`, or "" if none is near.
func Suggest[V any](name string, among map[string]V) string {
	best := Nearest(name, among)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", best)
}

// Nearest is the key that differs from a name by the fewest letters, "" if none is
// near enough to be meant.
func Nearest[V any](name string, among map[string]V) string {
	best, least := "", 3
	for _, n := range slices.Sorted(maps.Keys(among)) {
		if d := distance(name, n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace to turn a into b.
func distance(a, b string) int {
	if d := len(a) - len(b); d > 3 || d < -3 {
		return 4 // further than anybody asks for
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost = 1 + min(corner, row[j], row[j+1])
			}
			corner = row[j+1]
			row[j+1] = cost
		}
	}
	return row[len(b)]
}
