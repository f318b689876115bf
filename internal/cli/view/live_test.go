package view

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/wrap"
)

// screen returns the content of a terminal after text with the escape sequences of StatusLine.
func screen(t *testing.T, text string) string {
	t.Helper()
	lines := []string{""}
	for text != "" {
		last := len(lines) - 1
		up := 0
		switch {
		case strings.HasPrefix(text, eraseLine):
			lines[last], text = "", text[len(eraseLine):]
		case strings.HasPrefix(text, "\r\x1b["):
			if _, err := fmt.Sscanf(text, "\r\x1b[%dA", &up); err != nil {
				t.Fatalf("an unknown sequence in %q", text)
			}
			lines = append(lines[:last-up], "")
			_, text, _ = strings.Cut(text, "\x1b[J")
		case text[0] == '\n':
			lines, text = append(lines, ""), text[1:]
		default:
			lines[last], text = lines[last]+text[:1], text[1:]
		}
	}
	return strings.Join(lines, "\n")
}

func TestLive(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	size := func(n int) func() int { return func() int { return n } }
	l := NewLive(&out, size(40), size(0), func() time.Time { return now }, 20)
	for i := range 12 {
		l.Start("unit-"+string(rune('a'+i)), "planning")
		now = now.Add(time.Second)
	}
	l.Note("unit-a", "terraform_data.x: Creating and taking its time")
	if _, err := l.Write([]byte("a line of text\n")); err != nil {
		t.Fatal(err)
	}
	l.Refresh()
	l.End("unit-b", true)
	l.Meanwhile("unit-c", "hook tidy")
	l.Meanwhile("unit-d", "hook gone")
	l.Meanwhile("unit-d", "")
	for _, unit := range []string{"unit-e", "unit-f", "unit-g"} {
		l.Activity(unit, "x", "x: Creating")
		l.Activity(unit, "y", "y: Creating")
	}
	l.Activity("unit-e", "x", "x: Still")
	l.Over("unit-f", "y", "y: Made")
	l.Over("unit-g", "y", "y: Made")
	l.Over("unit-g", "x", "")
	l.Refresh()
	want := `a line of text
  ▸ unit-a: terraform_data.x: Cre…  12s
  ▸ unit-c: hook tidy  10s
  ▸ unit-d: planning  9s
  ▸ unit-e: x: Still (and 1 more)  8s
  ▸ unit-f: x: Creating  7s
  ▸ unit-g: y: Made  6s
  ▸ unit-h: planning  5s
  ▸ unit-i: planning  4s
  ▸ and 3 more
  1 done (1 failed), 11 running, …  12s`
	if got := screen(t, out.String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	l.Hide()
	if _, err := l.Write([]byte("Enter a value: ")); err != nil {
		t.Fatal(err)
	}
	if got := screen(t, out.String()); got != "a line of text\nEnter a value: " {
		t.Errorf("hidden: %q", got)
	}
	var none *Live
	none.Start("a", "")
	none.Note("a", "")
	none.End("a", false)
	none.Hide()
	none.Refresh()
}

// TestLiveOnSmallTerminals checks that the view leaves room above it, copies no escape
// sequences, and fits the columns of the terminal.
func TestLiveOnSmallTerminals(t *testing.T) {
	now := time.Unix(0, 0)
	var height int
	l := NewLive(&bytes.Buffer{}, func() int { return 40 }, func() int { return height }, func() time.Time { return now }, 20)
	for i := range 7 {
		l.Start(fmt.Sprint("unit-", i), "\x1b[31mred\x1b[0m\tline\r\nnext \x1b]0;title\a日本語日本語日本語日本語")
	}
	for _, c := range []struct{ height, want int }{{0, 8}, {24, 8}, {12, 8}, {11, 8}, {10, 7}, {6, 3}, {5, 1}, {3, 1}, {1, 1}} {
		height = c.height
		text := l.text()
		if n := strings.Count(text, "\n") + 1; n != c.want {
			t.Errorf("%d rows: %d lines, want %d:\n%s", c.height, n, c.want, text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if wrap.Columns(line) > 39 || strings.ContainsAny(line, "\x1b\t\r\a") {
				t.Errorf("%d rows: %q has %d columns", c.height, line, wrap.Columns(line))
			}
		}
	}
	height = 24
	want := "  ▸ unit-0: red line  next 日本語…  0s"
	if got, _, _ := strings.Cut(l.text(), "\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
