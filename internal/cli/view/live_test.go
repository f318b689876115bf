package view

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// screen is what a terminal of any width shows of text with the sequences that
// Live writes.
func screen(t *testing.T, text string) string {
	t.Helper()
	var lines []string
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexAny(rest, "AJ")
			if end < 0 {
				t.Fatalf("an unknown sequence in %q", rest)
			}
			if rest[end] == 'A' {
				n := 0
				for _, c := range rest[:end] {
					n = n*10 + int(c-'0')
				}
				lines = lines[:len(lines)-n]
			}
			text = strings.TrimPrefix(rest[end+1:], "\r")
			continue
		}
		next := strings.Index(text, "\x1b[")
		if next < 0 {
			next = len(text)
		}
		lines = append(lines, strings.SplitAfter(strings.TrimSuffix(text[:next], "\n"), "\n")...)
		if strings.HasSuffix(text[:next], "\n") {
			lines[len(lines)-1] += "\n"
		}
		text = text[next:]
	}
	return strings.Join(lines, "")
}

func TestLive(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	l := NewLive(&out, Style{}, func() int { return 40 }, func() time.Time { return now }, 20)
	for i := range 12 {
		l.Start("unit-"+string(rune('a'+i)), "planning")
		now = now.Add(time.Second)
	}
	l.Note("unit-a", "terraform_data.x: Creating and taking its time")
	if _, err := l.Write([]byte("a line of text\n")); err != nil {
		t.Fatal(err)
	}
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
  1 done (1 failed), 11 running, …  12s
`
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
