package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A Live shows at the bottom of a terminal what runs, what waits and what is done,
// with the time that it takes. Text that is written to it goes above. Its methods
// may be called concurrently; a nil Live shows nothing.
type Live struct {
	out   io.Writer
	width func() int
	now   func() time.Time
	style Style

	mu      sync.Mutex
	total   int
	done    int
	failed  int
	running map[string]*liveRow
	begun   time.Time
	lines   int  // that stand at the bottom
	hidden  bool // nothing is shown for the moment
	ragged  bool // the text above does not end with a line
}

type liveRow struct {
	name, what string
	since      time.Time
}

// mostLive is how many of those that run are shown.
const mostLive = 8

// NewLive makes a view of so many units on a terminal.
func NewLive(out io.Writer, style Style, width func() int, now func() time.Time, total int) *Live {
	return &Live{out: out, style: style, width: width, now: now, total: total, running: map[string]*liveRow{}, begun: now()}
}

// Start says that a unit has its turn.
func (l *Live) Start(unit, what string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[unit] = &liveRow{unit, what, l.now()}
}

// Note says what a unit is doing now.
func (l *Live) Note(unit, what string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.running[unit]; r != nil {
		r.what = what
	}
}

// End says that a unit is done.
func (l *Live) End(unit string, failed bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, unit)
	l.done++
	if failed {
		l.failed++
	}
}

// Write writes text above the view.
func (l *Live) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	n, err := l.out.Write(b)
	if n > 0 {
		l.ragged = b[n-1] != '\n'
	}
	l.draw()
	return n, err
}

// Refresh draws the view anew.
func (l *Live) Refresh() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	l.draw()
}

// Hide takes the view away until Show, for a question to the user.
func (l *Live) Hide() { l.hide(true) }

// Show brings the view back.
func (l *Live) Show() { l.hide(false) }

func (l *Live) hide(yes bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	l.hidden = yes
	l.draw()
}

func (l *Live) erase() {
	if l.lines > 0 {
		_, _ = fmt.Fprintf(l.out, "\x1b[%dA\r\x1b[J", l.lines)
		l.lines = 0
	}
}

func (l *Live) draw() {
	if l.hidden || l.ragged {
		return
	}
	now := l.now()
	width := l.width()
	rows := make([]*liveRow, 0, len(l.running))
	for _, r := range l.running {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *liveRow) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name)) })
	var b strings.Builder
	line := func(style, text, time string) {
		text = strings.TrimRight(cut(text, width-3-len(time))+"  "+time, " ")
		if l.style.Color {
			text = style + text + reset
		}
		b.WriteString(text + "\n")
		l.lines++
	}
	more := len(rows) - mostLive
	for _, r := range rows[:min(len(rows), mostLive)] {
		line(cyan, "  ▸ "+r.name+": "+r.what, elapsed(now.Sub(r.since)))
	}
	if more > 0 {
		line(cyan, fmt.Sprintf("  ▸ and %d more", more), "")
	}
	failed := ""
	if l.failed > 0 {
		failed = fmt.Sprintf(" (%d failed)", l.failed)
	}
	line(bold, fmt.Sprintf("  %d done%s, %d running, %d waiting", l.done, failed, len(rows), l.total-l.done-len(rows)), elapsed(now.Sub(l.begun)))
	_, _ = io.WriteString(l.out, b.String())
}

// elapsed is a time in whole seconds.
func elapsed(d time.Duration) string { return d.Truncate(time.Second).String() }

// cut shortens a line so that a terminal does not break it.
func cut(text string, width int) string {
	if width < 1 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}
