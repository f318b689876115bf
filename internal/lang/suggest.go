package lang

import (
	"fmt"
	"maps"
	"slices"
)

// Suggest returns ` Did you mean "x"?` for the name that is most similar to a wrong one, or ""
// if none is similar.
func Suggest[V any](name string, among map[string]V) string {
	best := Nearest(name, among)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", best)
}

// Nearest returns the key with the smallest edit distance from a name, or "" if none is
// similar.
func Nearest[V any](name string, among map[string]V) string {
	best, least := "", 3
	for _, n := range slices.Sorted(maps.Keys(among)) {
		if d := distance(name, n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance returns the edit distance: the number of letters to insert, remove or replace.
func distance(a, b string) int {
	if d := len(a) - len(b); d > 3 || d < -3 {
		return 4 // more than any caller accepts
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
