package view

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/terrace-iac/terrace/internal/base/wrap"
)

// A StatusLine writes to a terminal and redraws one or more lines at its bottom. Written text
// appears above them. Its methods may be called concurrently.
type StatusLine struct {
	Out   io.Writer  // the terminal
	Width func() int // number of columns; nil or 0 means 80

	mu    sync.Mutex
	text  string
	drawn []int // columns of each drawn line
	open  bool  // the last write did not end with a line break
}

const eraseLine = "\r\x1b[K"

// Set draws one or more lines. "" removes them.
func (l *StatusLine) Set(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == l.text {
		return
	}
	if l.open {
		l.text = text // drawn after the next line break
		return
	}
	erase := l.erase()
	l.text = text
	_, _ = io.WriteString(l.Out, erase+l.draw())
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
		_, err = io.WriteString(l.Out, l.draw())
	}
	return n, err
}

// erase returns the escape sequences that clear the drawn lines. It counts the rows into which
// a terminal that became narrower has wrapped them.
func (l *StatusLine) erase() string {
	rows, width := 0, l.width()
	for _, columns := range l.drawn {
		rows += max(1, (columns+width-1)/width)
	}
	l.drawn = nil
	switch rows {
	case 0:
		return ""
	case 1:
		return eraseLine
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", rows-1)
}

func (l *StatusLine) width() int {
	if l.Width != nil {
		if n := l.Width(); n > 0 {
			return n
		}
	}
	return 80
}

// draw returns the text cut to the width of the terminal, and records its columns.
func (l *StatusLine) draw() string {
	if l.text == "" {
		return ""
	}
	var lines []string
	for line := range strings.SplitSeq(l.text, "\n") {
		line = cut(line, l.width()-1)
		lines = append(lines, line)
		l.drawn = append(l.drawn, wrap.Columns(line))
	}
	return strings.Join(lines, "\n")
}

// cut shortens a line to room columns.
func cut(line string, room int) string {
	if wrap.Columns(line) <= room {
		return line
	}
	left := room - 1
	for i, r := range line {
		if left -= wrap.Of(r); left < 0 {
			return line[:i] + "…"
		}
	}
	return line
}

// Foreign returns a line of another program that can be printed above redrawn lines. It keeps
// escape sequences for colors only, and resets the colors at the end.
func Foreign(line string) string {
	if !strings.ContainsFunc(line, unicode.IsControl) {
		return line
	}
	var b strings.Builder
	colored := false
	for i := 0; i < len(line); {
		if n := wrap.Escape(line[i:]); n > 0 {
			if seq := line[i : i+n]; strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") {
				b.WriteString(seq)
				colored = true
			}
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(line[i:])
		if i += n; r == '\t' || !unicode.IsControl(r) {
			b.WriteRune(r)
		}
	}
	if colored {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// Redirect makes the view write to out, and returns the previous writer.
func (h *Human) Redirect(out io.Writer) io.Writer {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.Out
	h.Out = out
	return old
}
