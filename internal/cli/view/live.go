package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/wrap"
)

// A Live shows the running units at the bottom of a terminal, with their durations, and the
// numbers of finished and waiting units. Text written to it appears above at the next Refresh.
// Its methods may be called concurrently. All methods except Write do nothing if l is nil.
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
	hidden  bool // the view is not shown, and Write prints immediately
	pending []byte
}

type liveRow struct {
	name, what string
	meanwhile  string // activity outside of the turn, such as a hook; "" for none
	objects    []liveObject
	since      time.Time
}

// A liveObject is an object in progress, with its activity.
type liveObject struct{ name, what string }

// mostLive is the largest number of units shown. aboveLive is the number of lines that remain
// for text above the view.
const (
	mostLive  = 8
	aboveLive = 3
)

// NewLive returns a view for total units. It calls width and height for the size of the
// terminal at each refresh; 0 means 80 columns and 24 rows.
func NewLive(out io.Writer, width, height func() int, now func() time.Time, total int) *Live {
	return &Live{line: StatusLine{Out: out, Width: width}, height: height, now: now, total: total, running: map[string]*liveRow{}, begun: now()}
}

// Start shows that a unit runs, with its first activity.
func (l *Live) Start(unit, what string) {
	l.change(func() { l.running[unit] = &liveRow{name: unit, what: what, since: l.now()} })
}

// Note sets the activity of a unit, and ends the activities of its objects.
func (l *Live) Note(unit, what string) {
	l.change(func() {
		if r := l.running[unit]; r != nil {
			r.what, r.objects = what, nil
		}
	})
}

// Activity sets the activity of one of a unit's objects, until Over. The oldest activity is
// shown.
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

// Over ends the activity of an object. what, unless it is "", is shown until the next
// activity.
func (l *Live) Over(unit, object, what string) {
	l.change(func() {
		if r := l.running[unit]; r != nil {
			r.objects = slices.DeleteFunc(r.objects, func(o liveObject) bool { return o.name == object })
			r.what = cmp.Or(what, r.what)
		}
	})
}

// now returns the activity to show.
func (r *liveRow) now() string {
	if len(r.objects) == 0 || r.meanwhile != "" {
		return cmp.Or(r.meanwhile, r.what)
	}
	if more := len(r.objects) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", r.objects[0].what, more)
	}
	return r.objects[0].what
}

// Meanwhile sets an activity that hides the others, such as a hook. "" ends it.
func (l *Live) Meanwhile(unit, what string) {
	l.change(func() {
		if r := l.running[unit]; r != nil {
			r.meanwhile = what
		}
	})
}

// End shows that a unit is finished.
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

// Hide removes the view until Show, so that a prompt can be shown.
func (l *Live) Hide() {
	l.change(func() { l.hidden = true })
	l.Refresh()
}

// Show shows the view again.
func (l *Live) Show() {
	l.change(func() { l.hidden = false })
	l.Refresh()
}

// Refresh draws the current state of the view.
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
		shown = max(0, room-1) // one line is for the number of the others
	}
	for _, r := range rows[:shown] {
		line("  ▸ "+wrap.OneLine(r.name+": "+r.now()), r.since)
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
