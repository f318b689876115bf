package similar

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"paln", "plan"}, {"inptu", "input"}, {"outpu", "output"}, {"trigger_replaces", "triggers_replace"}, {"get_evn", "get_env"},
		{"zebra", ""}, {"", ""}, {"ma", "man"}, {"pn", ""},
	} {
		names := slices.Values([]string{"man", "plan", "input", "output", "triggers_replace", "get_env"})
		if got := Nearest(c.given, names); got != c.want {
			t.Errorf("%q: got %q, want %q", c.given, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"abc", "abd", 1}, {"abc", "bc", 1}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"abcdef", "fedcba", 4}} {
		if got := distance(c.a, c.b, 3); got != c.want {
			t.Errorf("%q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
