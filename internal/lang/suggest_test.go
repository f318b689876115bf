package lang

import "testing"

func TestSuggest(t *testing.T) {
	names := map[string]bool{"input": true, "output": true, "triggers_replace": true}
	for name, want := range map[string]string{
		"inptu": ` Did you mean "input"?`, "outpu": ` Did you mean "output"?`, "zebra": "", "": "", "trigger_replaces": ` Did you mean "triggers_replace"?`,
	} {
		if got := Suggest(name, names); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"abc", "abd", 1}, {"abc", "bc", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
