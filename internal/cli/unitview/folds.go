package unitview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/plan"
)

// # The plans of many units as one
//
// The plan of an estate lists changes, and lists a change that is the same in many units once.
// Changes that belong to the same set of units form a section. Sections with more units come
// first, so that changes common to all units are at the top, and changes of single units are at
// the end.

// Folds collects the changes of many plans. Its methods may be called concurrently.
type Folds struct {
	mu   sync.Mutex
	all  map[foldKey]*folded
	unit map[string][]*folded // changes of each unit, in the order of its plan

	origins map[string][]view.Origin // of the changes of each unit
}

// folded is a change, with the units that have it.
type folded struct {
	view.Piece
	units  []string
	shown  bool
	differ bool // the texts of the units differ; only the heads are equal
}

// text returns the text to print.
func (x *folded) text() string {
	if x.differ {
		return x.Head
	}
	return x.Text
}

// keyOf returns the part of a change by which equal changes are found: the head if there is
// one, and otherwise the text.
func keyOf(p view.Piece) foldKey {
	k := foldKey{p.Kind, p.Op, p.Type, p.Head, p.Head != ""}
	if p.Head == "" {
		k.text = p.Text
	}
	return k
}

// foldKey identifies changes that are printed once.
type foldKey struct {
	kind      view.PieceKind
	op        plan.Op
	typ, text string
	short     bool // text is the head
}

// NewFolds returns empty Folds.
func NewFolds() *Folds {
	return &Folds{all: map[foldKey]*folded{}, unit: map[string][]*folded{}, origins: map[string][]view.Origin{}}
}

// AddOrigins sets the origins of the values of a unit.
func (f *Folds) AddOrigins(unit string, of []view.Origin) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.origins[unit] = of
}

// OriginsOf returns the origins of the values of a unit.
func (f *Folds) OriginsOf(unit string) []view.Origin {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.origins[unit]
}

// Add sets the changes of a unit. It replaces those of an earlier call for the unit.
func (f *Folds) Add(unit string, pieces []view.Piece) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, have := range f.unit[unit] {
		have.units = slices.DeleteFunc(have.units, func(u string) bool { return u == unit })
	}
	list := make([]*folded, 0, len(pieces))
	for _, p := range pieces {
		x := f.all[keyOf(p)]
		if x == nil {
			x = &folded{Piece: p}
			f.all[keyOf(p)] = x
		} else if len(x.units) == 0 && x.Text != p.Text { // the unit was planned again
			x.Piece, x.differ, x.shown = p, false, false
		}
		x.differ = x.differ || x.Text != p.Text
		if n := len(x.units); n == 0 || x.units[n-1] != unit {
			x.units = append(x.units, unit)
		}
		list = append(list, x)
	}
	f.unit[unit] = list
}

// Of returns the changes of a unit.
func (f *Folds) Of(unit string) []view.Piece {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []view.Piece
	for _, x := range f.unit[unit] {
		out = append(out, x.Piece)
	}
	return out
}

// A section is a list of changes that belong to the same set of units.
type section struct {
	units  []string
	pieces []*folded
}

// sections returns the changes of the given units, in sections. Sections with more units come
// first. Sections with the same number of units are in the order in which the units mention
// them. Each change is returned by one call only.
func (f *Folds) sections(units []string) []*section {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*section
	by := map[string]*section{}
	for _, u := range units {
		for _, x := range f.unit[u] {
			if x.shown {
				continue
			}
			x.shown = true
			slices.Sort(x.units)
			key := x.units[0]
			if len(x.units) > 1 {
				key = strings.Join(x.units, "\x00")
			}
			s := by[key]
			if s == nil {
				s = &section{units: x.units}
				by[key] = s
				out = append(out, s)
			}
			s.pieces = append(s.pieces, x)
		}
	}
	slices.SortStableFunc(out, func(a, b *section) int { return len(b.units) - len(a.units) })
	return out
}

// title returns the heading of the section. all is the number of units with changes.
func (s *section) title(all int) string {
	switch n := len(s.units); {
	case n == 1:
		return "# Unit " + s.units[0]
	case n == all && n > view.MostNames:
		return fmt.Sprintf("# The same in all %d units", n)
	default:
		return fmt.Sprintf("# The same in %d units: %s", n, view.ShortList(s.units))
	}
}

// Write prints the changes of the given units that no earlier call printed. It prints about limit
// lines and counts the other changes by type; 0 means no limit.
func (f *Folds) Write(h *view.Human, units []string, limit int) {
	sections := f.sections(units)
	var ops []plan.Op
	with := map[string]bool{}
	drift := false
	for _, s := range sections {
		for _, u := range s.units {
			with[u] = true
		}
		for _, p := range s.pieces {
			drift = drift || p.Kind == view.DriftPiece
			if p.Kind == view.ChangePiece {
				ops = append(ops, p.Op)
			}
		}
	}
	var b strings.Builder
	view.Legend(&b, h.Style, ops)
	if drift {
		b.WriteString("\n" + h.Style.Names.Product() + " detected changes made outside of it since the last apply, which are\nnoted below. Unless the plan is refresh-only, it may include actions to undo\nor respond to them.\n")
	}
	h.Say(b.String())
	left := newRemainder(limit)
	for _, s := range sections {
		if !left.fits(s.pieces[0].text()) {
			left.add(s, s.pieces)
			continue
		}
		h.Say("\n")
		h.Strong(s.title(len(with)) + "\n")
		b.Reset()
		slices.SortStableFunc(s.pieces, func(x, y *folded) int { return int(x.Kind) - int(y.Kind) })
		last := view.ChangePiece
		for i, p := range s.pieces {
			if !left.fits(p.text()) {
				left.add(s, s.pieces[i:])
				break
			}
			left.take(p.text())
			switch {
			case p.Kind == last:
			case p.Kind == view.DriftPiece:
				view.DriftTitle(&b, h.Style)
			case p.Kind == view.OutputPiece:
				b.WriteString("\nChanges to Outputs:\n")
			case last == view.DriftPiece:
				b.WriteString("\nPlanned:\n")
			}
			last = p.Kind
			b.WriteString(p.text())
		}
		h.Copy(b.String())
	}
	h.Say(left.text())
}

// A remainder counts the changes that are not printed because the plan is long.
type remainder struct {
	limited bool
	room    int // lines that may still be printed
	lines   int // lines that are not printed
	units   map[string]bool
	counts  map[remains]int
}

// remains is a kind of change.
type remains struct{ typ, op string }

func newRemainder(limit int) *remainder {
	return &remainder{limited: limit > 0, room: limit, units: map[string]bool{}, counts: map[remains]int{}}
}

func (r *remainder) fits(text string) bool {
	return !r.limited || r.lines == 0 && strings.Count(text, "\n") <= r.room
}

func (r *remainder) take(text string) { r.room -= strings.Count(text, "\n") }

// add adds changes of a section that are not printed.
func (r *remainder) add(s *section, pieces []*folded) {
	for _, u := range s.units {
		r.units[u] = true
	}
	for _, p := range pieces {
		r.lines += max(1, strings.Count(p.text(), "\n"))
		if p.Type != "" {
			r.counts[remains{p.Type, p.Op.String()}] += len(s.units)
		}
	}
}

// mostRemains is the number of lines about changes that are not printed.
const mostRemains = 20

// text returns the text about what is not printed.
func (r *remainder) text() string {
	if r.lines == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n# Not shown, because the plan is long: %d lines about %d units\n\n", r.lines, len(r.units))
	keys := slices.SortedFunc(maps.Keys(r.counts), func(x, y remains) int {
		return cmp.Or(cmp.Compare(r.counts[y], r.counts[x]), cmp.Compare(x.typ, y.typ), cmp.Compare(x.op, y.op))
	})
	for i, k := range keys {
		if i == mostRemains {
			fmt.Fprintf(&b, "  and %d more types of changes\n", len(keys)-i)
			break
		}
		fmt.Fprintf(&b, "  %s: %d to %s\n", k.typ, r.counts[k], k.op)
	}
	b.WriteString("\nPrint all changes with --all-changes, or write a page with --html FILE.\n")
	return b.String()
}
