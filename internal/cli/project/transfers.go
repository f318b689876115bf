package project

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/provider/install"
)

// redraw is the shortest time between two updates of the line about transfers.
const redraw = 100 * time.Millisecond

// transfers shows the current downloads and their sizes in a line at the bottom of a terminal.
// Its methods may be called concurrently. The methods do nothing if t is nil.
type transfers struct {
	Call *command.Call
	line *view.StatusLine

	mu    sync.Mutex
	drawn time.Time
	count int
	items map[string]transferItem
}

type transferItem struct {
	done, total int64 // in bytes; total is 0 if unknown
	order       int   // position in the line
}

// NewTransfers begins to show transfers. The caller must call End. It returns nil if the
// output is not a terminal.
func NewTransfers(c *command.Call) *transfers {
	if c.Report.Human == nil || !c.Report.Redraws() {
		return nil
	}
	line := &view.StatusLine{Width: c.System.Terminal.Width}
	line.Out = c.Report.Human.Redirect(line)
	return &transfers{Call: c, line: line, items: map[string]transferItem{}}
}

// End removes the line.
func (t *transfers) End() {
	if t != nil {
		t.line.Set("")
		t.Call.Report.Human.Redirect(t.line.Out)
	}
}

// Provider handles an event of a provider installation.
func (t *transfers) Provider(e install.Event) {
	switch e.Kind {
	case install.Transfer:
		t.moved(e.Provider.Display(), e.Done, e.Total)
	case install.Installed, install.InstalledAt, install.Retrieved, install.Finished:
		t.ended(e.Provider.Display())
	}
}

// Module handles the progress of a module download.
func (t *transfers) Module(p fetch.Progress) {
	if p.Ended {
		t.ended(p.Key)
		return
	}
	t.moved(p.Key, p.Done, p.Total)
}

// moved records that done of total bytes have arrived.
func (t *transfers) moved(name string, done, total int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	it, ok := t.items[name]
	if !ok {
		t.count++
		it.order = t.count
	}
	it.done, it.total = done, total
	t.items[name] = it
	if now := t.Call.Now(); now.Sub(t.drawn) >= redraw {
		t.drawn = now
		t.line.Set(t.text())
	}
}

// ended removes a transfer from the line.
func (t *transfers) ended(name string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.items[name]; ok {
		delete(t.items, name)
		t.line.Set(t.text())
	}
}

// text returns the content of the line: all transfers, the oldest first.
func (t *transfers) text() string {
	names := slices.SortedFunc(maps.Keys(t.items), func(a, b string) int { return cmp.Compare(t.items[a].order, t.items[b].order) })
	var parts []string
	for _, name := range names {
		it := t.items[name]
		part := name + " " + size(it.done)
		if it.total > 0 {
			part += fmt.Sprintf(" of %s (%d%%)", size(it.total), it.done*100/it.total)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// size formats a number of bytes.
func size(n int64) string {
	const kilo = 1000
	switch {
	case n < kilo:
		return fmt.Sprintf("%d B", n)
	case n < kilo*kilo:
		return fmt.Sprintf("%d kB", n/kilo)
	case n < kilo*kilo*kilo:
		return fmt.Sprintf("%.1f MB", float64(n)/(kilo*kilo))
	}
	return fmt.Sprintf("%.2f GB", float64(n)/(kilo*kilo*kilo))
}
