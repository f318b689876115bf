package view

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// screen is what a terminal shows of text with the sequences of StatusLine.
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
	l := NewLive(&out, func() int { return 40 }, func() time.Time { return now }, 20)
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
	l.Refresh()
	want := `a line of text
  ▸ unit-a: terraform_data.x: Cre…  12s
  ▸ unit-c: planning  10s
  ▸ unit-d: planning  9s
  ▸ unit-e: planning  8s
  ▸ unit-f: planning  7s
  ▸ unit-g: planning  6s
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
