package view

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is written goes above the line, which is drawn over again and never in
// the middle of what is written.
func TestStatusLine(t *testing.T) {
	var out bytes.Buffer
	l := &StatusLine{Out: &out, Width: func() int { return 10 }}
	write := func(s string) {
		if n, err := l.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	write("one\n")
	l.Set("50%")
	l.Set("50%")
	l.Set("much too long")
	write("two")
	l.Set("70%")
	write(" more\n")
	l.Set("")
	l.Set("")
	want := "one\n" + "50%" + eraseLine + "much too…" + eraseLine + "two" + " more\n" + "70%" + eraseLine
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// What a terminal wrapped because it became narrower is taken away as well.
func TestStatusLineOfANarrowerTerminal(t *testing.T) {
	var out bytes.Buffer
	width := 20
	l := &StatusLine{Out: &out, Width: func() int { return width }}
	l.Set("nineteen columns at\nthree")
	width = 8
	out.Reset()
	l.Set("short")
	if want := "\r\x1b[3A\x1b[Jshort"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	width = 20
	out.Reset()
	l.Set("")
	if want := eraseLine; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// Lines of other programs leave nothing behind on the terminal but text and colors.
func TestForeign(t *testing.T) {
	for line, want := range map[string]string{
		"plain\tünïcode":                 "plain\tünïcode",
		"\x1b[31mred":                    "\x1b[31mred\x1b[0m",
		"\x1b[2J\x1b[3Aup\x1b[K":         "up",
		"\x1b]0;title\aafter \b\x07bell": "after bell",
		"cut off \x1b[3":                 "cut off ",
	} {
		if got := Foreign(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
