package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
)

// TestStatusLine checks that text appears above the line, and that the line is never drawn
// inside of it.
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

// TestStatusLineOfANarrowerTerminal checks that lines are erased completely after the terminal
// became narrower.
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

// TestForeign checks that only text and colors of other programs reach the terminal.
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

// TestErrorsAboveTheView checks that errors on the same terminal appear above the view, and
// that other errors go to Errs.
func TestErrorsAboveTheView(t *testing.T) {
	for _, joined := range []bool{true, false} {
		var out, errs bytes.Buffer
		h := &Human{Out: &out, Errs: &errs, Printer: &diag.Printer{}, Joined: joined}
		l := NewLive(h.Out, func() int { return 20 }, func() int { return 24 }, func() time.Time { return time.Time{} }, 1)
		h.Redirect(l)
		l.Start("a", "planning")
		l.Refresh()
		h.Messages(diag.Errorf("", nil, "Trouble", "There is."))
		l.Refresh()
		if above := strings.Contains(out.String(), "\x1b[J\nError: Trouble"); above != joined || joined == strings.Contains(errs.String(), "Trouble") {
			t.Errorf("joined %v: %q, %q", joined, out.String(), errs.String())
		}
	}
}
