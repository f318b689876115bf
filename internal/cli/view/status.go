package view

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// A StatusLine is a terminal with a line at the bottom, or several, that is drawn
// over again: what is written goes above it. Its methods may be called concurrently.
type StatusLine struct {
	Out   io.Writer  // the terminal
	Width func() int // its columns; nil or 0: unknown, then 80

	mu   sync.Mutex
	text string
	open bool // what was written last does not end with a line break
}

const eraseLine = "\r\x1b[K"

// Set draws the line, or the lines of a text; "" takes it away.
func (l *StatusLine) Set(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == l.text {
		return
	}
	if l.open {
		l.text = text // shown after the next line break
		return
	}
	erase := l.erase()
	l.text = text
	_, _ = io.WriteString(l.Out, erase+l.fit())
}

// Write writes above the line.
func (l *StatusLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if !l.open {
		if _, err := io.WriteString(l.Out, l.erase()); err != nil {
			return 0, err
		}
	}
	n, err := l.Out.Write(p)
	if l.open = p[len(p)-1] != '\n'; err == nil && !l.open {
		_, err = io.WriteString(l.Out, l.fit())
	}
	return n, err
}

// erase is what takes the text away that stands there now.
func (l *StatusLine) erase() string {
	n := strings.Count(l.text, "\n")
	switch {
	case l.text == "":
		return ""
	case n == 0:
		return eraseLine
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", n)
}

// fit is the text as far as it has room, line by line.
func (l *StatusLine) fit() string {
	width := 0
	if l.Width != nil {
		width = l.Width()
	}
	if width <= 0 {
		width = 80
	}
	var lines []string
	for line := range strings.SplitSeq(l.text, "\n") {
		lines = append(lines, cut(line, width-1))
	}
	return strings.Join(lines, "\n")
}

// cut shortens a line to so many columns.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width-1, 0)]) + "…"
}

// Redirect makes a view write to another place from now on, and returns the
// place that it wrote to before.
func (h *Human) Redirect(out io.Writer) io.Writer {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.Out
	h.Out = out
	return old
}
