package console

import "testing"

func TestClosed(t *testing.T) {
	for text, want := range map[string]bool{
		"1\n": true, "{\n": false, "{\na = 1\n}\n": true, "foo(\n": false, "\"a${\n": false, "\"a${1}\"\n": true,
		"<<EOT\nx\n": false, "<<EOT\nx\nEOT\n": true, "\"(\"\n": true, ")\n": true, "# (\n": true, "[[1],\n": false,
	} {
		if got := closed(text); got != want {
			t.Errorf("closed(%q) = %v", text, got)
		}
	}
}

func TestCompleter(t *testing.T) {
	complete := completer([]string{"var.one", "var.only", "local.x", "upper("})
	for _, c := range []struct {
		line, want string
		choices    int
	}{
		{"upper(va", "upper(var.on", 0}, {"1 + var.on", "1 + var.on", 2}, {"[loc", "[local.x", 0}, {"up", "upper(", 0}, {"zz", "zz", 0}, {"1 + ", "1 + ", 0},
	} {
		line, pos, choices := complete(c.line, len(c.line))
		if line != c.want || pos != len(c.want) || len(choices) != c.choices {
			t.Errorf("%q: %q at %d, %q", c.line, line, pos, choices)
		}
	}
	if line, pos, _ := complete("loc + 1", 3); line != "local.x + 1" || pos != 7 {
		t.Errorf("in the middle: %q at %d", line, pos)
	}
}
