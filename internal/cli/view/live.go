package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Live shows at the bottom of a terminal which units run, how many wait and how
// many are done, with the time that it takes. What is written to it goes above, when
// the view is drawn next. Its methods may be called concurrently; a nil Live shows
// nothing.
type Live struct {
	line   StatusLine
	height func() int
	now    func() time.Time

	mu      sync.Mutex
	total   int
	done    int
	failed  int
	running map[string]*liveRow
	begun   time.Time
	hidden  bool // nothing is shown for the moment, and text goes through at once
	pending []byte
}

type liveRow struct {
	name, what string
	meanwhile  string // what is done in between, if anything
	objects    []liveObject
	since      time.Time
}

// A liveObject is one that something is being done with, and what.
type liveObject struct{ name, what string }

// mostLive is how many of those that run are shown, and aboveLive how many lines of
// the terminal are left to what stands above.
const (
	mostLive  = 8
	aboveLive = 3
)

// NewLive makes a view of so many units on a terminal whose columns and rows are
// asked for each time; 0 stands for 80 and 24.
func NewLive(out io.Writer, width, height func() int, now func() time.Time, total int) *Live {
	return &Live{line: StatusLine{Out: out, Width: width}, height: height, now: now, total: total, running: map[string]*liveRow{}, begun: now()}
}

// Start says that a unit has its turn, and what it does first.
func (l *Live) Start(unit, what string) {
	l.change(func() { l.running[unit] = &liveRow{name: unit, what: what, since: l.now()} })
}

// Note says what a unit is doing now, with none of its objects.
func (l *Live) Note(unit, what string) {
	l.change(func() {
		if r := l.running[unit]; r != nil {
			r.what, r.objects = what, nil
		}
	})
}

// Activity says what a unit is doing with one of its objects, until Over. The one that
// takes longest is shown.
func (l *Live) Activity(unit, object, what string) {
	l.change(func() {
		r := l.running[unit]
		if r == nil {
			return
		}
		for i := range r.objects {
			if r.objects[i].name == object {
				r.objects[i].what = what
				return
			}
		}
		r.objects = append(r.objects, liveObject{object, what})
	})
}

// Over says that nothing is being done with an object any more; what was, if it is
// not "", is shown until something else is done.
func (l *Live) Over(unit, object, what string) {
	l.change(func() {
		if r := l.running[unit]; r != nil {
			r.objects = slices.DeleteFunc(r.objects, func(o liveObject) bool { return o.name == object })
			r.what = cmp.Or(what, r.what)
		}
	})
}

// now is what the row tells.
func (r *liveRow) now() string {
	if len(r.objects) == 0 || r.meanwhile != "" {
		return cmp.Or(r.meanwhile, r.what)
	}
	if more := len(r.objects) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", r.objects[0].what, more)
	}
	return r.objects[0].what
}

// Meanwhile says what is done for a unit in between; "" ends it.
func (l *Live) Meanwhile(unit, what string) {
	l.change(func() {
		if r := l.running[unit]; r != nil {
			r.meanwhile = what
		}
	})
}

// End says that a unit is done.
func (l *Live) End(unit string, failed bool) {
	l.change(func() {
		delete(l.running, unit)
		l.done++
		if failed {
			l.failed++
		}
	})
}

func (l *Live) change(f func()) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// Write writes text above the view.
func (l *Live) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hidden {
		return l.line.Write(b)
	}
	l.pending = append(l.pending, b...)
	return len(b), nil
}

// Hide takes the view away until Show, for a question to the user.
func (l *Live) Hide() {
	l.change(func() { l.hidden = true })
	l.Refresh()
}

// Show brings the view back.
func (l *Live) Show() {
	l.change(func() { l.hidden = false })
	l.Refresh()
}

// Refresh draws the view as things are now.
func (l *Live) Refresh() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) > 0 {
		l.line.Set("")
		_, _ = l.line.Write(l.pending)
		l.pending = l.pending[:0]
	}
	l.line.Set(l.text())
}

func (l *Live) text() string {
	if l.hidden {
		return ""
	}
	now := l.now()
	rows := make([]*liveRow, 0, len(l.running))
	for _, r := range l.running {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *liveRow) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name)) })
	width := l.line.width()
	var b strings.Builder
	line := func(text string, since time.Time) {
		time := "  " + now.Sub(since).Truncate(time.Second).String()
		b.WriteString(cut(text, max(1, width-1-len(time))) + time)
	}
	shown := min(len(rows), mostLive)
	if room := cmp.Or(l.height(), 24) - aboveLive - 1; shown > room || len(rows) > shown && shown == room {
		shown = max(0, room-1) // and the line about the others
	}
	for _, r := range rows[:shown] {
		line("  ▸ "+oneLine(r.name+": "+r.now()), r.since)
		b.WriteByte('\n')
	}
	if more := len(rows) - shown; more > 0 && shown > 0 {
		fmt.Fprintf(&b, "  ▸ and %d more\n", more)
	}
	failed := ""
	if l.failed > 0 {
		failed = fmt.Sprintf(" (%d failed)", l.failed)
	}
	line(fmt.Sprintf("  %d done%s, %d running, %d waiting", l.done, failed, len(rows), l.total-l.done-len(rows)), l.begun)
	return b.String()
}
