package wrap

import "testing"

func TestLines(t *testing.T) {
	tests := []struct {
		in    string
		limit int
		want  string
	}{
		{"", 10, ""},
		{"one two three", 7, "one two\nthree"},
		{"one two three", 8, "one two\nthree"},
		{"one  two", 8, "one  two"},
		{"one  two", 7, "one\ntwo"},
		{"ééé ééé", 7, "ééé ééé"},
		{"a\n\n  list item that is long\nb c", 3, "a\n\n  list item that is long\nb c"},
		{"\ttab that is long", 5, "\ttab that is long"},
		{"averylongword and", 5, "averylongword\nand"},
		{"an averylongword", 5, "an\naverylongword"},
		{"trailing ", 8, "trailing "},
	}
	for _, tt := range tests {
		if got := Lines(tt.in, tt.limit); got != tt.want {
			t.Errorf("Lines(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

// Fit joins only lines that were broken because they were full.
func TestFit(t *testing.T) {
	const legend = "Terrace used the selected providers to generate the following execution\nplan. Resource actions are indicated with the following symbols:\n  + create, in a line of a table that is longer than the terminal is wide\n"
	const interrupt = "\nInterrupt received.\nPlease wait for Terrace to exit: what is under way ends first.\nGracefully shutting down...\n"
	for _, tt := range []struct {
		in            string
		columns, from int
		want          string
	}{
		{legend, 0, 0, legend},
		{legend, 78, 0, legend},
		{legend, 60, 0, "Terrace used the selected providers to generate the\nfollowing execution plan. Resource actions are indicated\nwith the following symbols:\n  + create, in a line of a table that is longer than the terminal is wide\n"},
		{interrupt, 60, 0, "\nInterrupt received.\nPlease wait for Terrace to exit: what is under way ends\nfirst.\nGracefully shutting down...\n"},
		{"To perform these actions, run:\n    terrace apply \"a plan with a long name\"\n", 30, 0, "To perform these actions,\nrun:\n    terrace apply \"a plan with a long name\"\n"},
		{" is valid, and more follows.\n", 20, 14, " is\nvalid, and more\nfollows.\n"},
		{" is valid.\n", 30, 14, " is valid.\n"},
		{"\x1b[1ma bold word\x1b[0m and others", 21, 0, "\x1b[1ma bold word\x1b[0m and\nothers"},
		{"一二三四 五六七八 一二", 21, 0, "一二三四 五六七八\n一二"},
		{"short", 5, 0, "short"},
		{"", 60, 0, ""},
	} {
		if got := Fit(tt.in, tt.columns, tt.from); got != tt.want {
			t.Errorf("Fit(%q, %d, %d) = %q, want %q", tt.in, tt.columns, tt.from, got, tt.want)
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain é\n\ta\r\nb\r":   "plain é\n\ta\r\nb\r",
		"a\rb\x1b[31mred\u009b": `a\x0db\x1b[31mred\x9b`,
		"a\u202eb\u2066c":       `a\u202eb\u2066c`,
		"\u05d0\u200f":          "\u05d0\u200f",
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}
