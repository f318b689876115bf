package view

import (
	"io"
	"sync"
	"unicode/utf8"
)

// A StatusLine is a terminal with a line at the bottom that is drawn over again:
// what is written goes above it. Its methods may be called concurrently.
type StatusLine struct {
	Out   io.Writer  // the terminal
	Width func() int // its columns; nil or 0: unknown, then 80

	mu   sync.Mutex
	text string
	open bool // what was written last does not end with a line break
}

const eraseLine = "\r\x1b[K"

// Set draws the line; "" takes it away.
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
	erase := ""
	if l.text != "" {
		erase = eraseLine
	}
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
	if l.text != "" && !l.open {
		if _, err := io.WriteString(l.Out, eraseLine); err != nil {
			return 0, err
		}
	}
	n, err := l.Out.Write(p)
	if l.open = p[len(p)-1] != '\n'; err == nil && !l.open {
		_, err = io.WriteString(l.Out, l.fit())
	}
	return n, err
}

// fit is the text as far as it has room in one line.
func (l *StatusLine) fit() string {
	width := 0
	if l.Width != nil {
		width = l.Width()
	}
	if width <= 0 {
		width = 80
	}
	if utf8.RuneCountInString(l.text) < width {
		return l.text
	}
	return string([]rune(l.text)[:max(width-2, 0)]) + "…"
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
