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
}
