// Package similar finds the name that a misspelled one most likely means.
package similar

import (
	"iter"
	"unicode/utf8"
)

// Nearest returns the name with the smallest distance from a given one, or "" if none is similar:
// at most two changes, and one for names of three letters or fewer. Of names at the same distance
// it returns one with the same first letter, if there is one, and then the first in alphabetical
// order. A name is not similar to itself.
func Nearest(given string, names iter.Seq[string]) string {
	limit := 2
	if utf8.RuneCountInString(given) < 4 {
		limit = 1
	}
	best, least := "", limit+1
	for n := range names {
		d := distance(given, n, limit)
		if d == 0 || d > limit {
			continue
		}
		if d < least || d == least && better(given, n, best) {
			best, least = n, d
		}
	}
	return best
}

// better reports whether a is a better guess than b at the same distance.
func better(given, a, b string) bool {
	first := func(s string) bool { return s[0] == given[0] } // names and given are not empty: the distance is small
	if len(given) > 0 && len(a) > 0 && len(b) > 0 && first(a) != first(b) {
		return first(a)
	}
	return a < b
}

// distance returns the number of changes from a to b, each of which inserts, removes or replaces a
// letter, or exchanges two neighbours. It counts no further than limit+1.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := last[j-1]
			if a[i-1] != b[j-1] {
				cost = 1 + min(last[j-1], last[j], row[j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					cost = min(cost, 1+before[j-2])
				}
			}
			row[j] = cost
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
