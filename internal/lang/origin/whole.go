package origin

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/source"
)

// A whole is a block that is explained as a whole.
type whole struct {
	text   string
	at     source.Range        // range of the header; used if origin is zero
	origin config.Origin       // arguments and blocks that the language defines
	gone   []config.Overridden // blocks that it replaced
	f      *frame              // frame of its arguments
	body   hcl.Body            // other arguments and blocks; may be nil
	secret func(name string) bool
}

// wholeOf adds a step for a block, with the blocks from which it was merged, and adds its content to the
// parts of the explanation.
func (r blocks) wholeOf(w whole) {
	r.out.Whole = true
	parts := w.origin.Parts()
	if len(parts) == 0 {
		parts = []config.Overridden{{At: w.at, Layer: r.in.e.Set.LayerOf(w.at)}}
	}
	r.block(Block, w.text, parts, w.gone)
	settings := w.origin.Settings()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		r.holds(w, name, settings[name], nil)
	}
	for _, b := range w.origin.Blocks() {
		r.holdsBlock(strings.Join(append([]string{b.Type}, b.Labels...), " "), b.Parts(), b.Replaced)
	}
	if w.body != nil {
		r.wholeBody(w)
	}
	slices.SortStableFunc(r.out.Parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
}

func (r blocks) wholeBody(w whole) {
	m := w.f.mod.Node.Config
	attrs, _ := w.body.JustAttributes()
	for name := range attrs { // wholeOf sorts the parts by place
		if s := m.Setting(w.body, name); s != nil {
			r.holds(w, name, s, m.Replaced(w.body, name))
		}
	}
	for _, name := range m.BlockTypes(w.body) {
		gone := m.Replaced(w.body, name)
		for _, b := range nestedBlocks(w.body, name) {
			r.holdsBlock(name, []config.Overridden{{At: b.DefRange, Layer: m.Set.LayerOf(b.DefRange)}}, gone)
			gone = nil // reported once
		}
	}
}

// holds adds an argument to the parts of the explanation.
func (r blocks) holds(w whole, name string, s *config.Setting, gone []config.Overridden) {
	c := cursor{f: w.f, x: s.Expr}
	before := r.secrecy
	args := &guarded{w.f.guard, []step{nameStep(name)}}
	if w.origin.Setting(name) == s {
		args = nil
	} else {
		r.weigh(evidence{declared: w.secret != nil && w.secret(name)})
		r.guarded(w.f, s, args.path)
	}
	if args != nil || !static(name) {
		r.lines.shows(c, args)
	}
	p := Part{Name: name, At: *r.lines.layered(r.lines.place(s.Range, r.hidden(c)), s.Layer), Replaces: r.replaced(w.f, s, args)}
	if len(p.Replaces) == 0 {
		p.Replaces = r.places(gone)
	}
	r.out.Parts = append(r.out.Parts, p)
	r.secrecy = before // the decision about one argument does not apply to the next
}

func (r *listing) headers(at []config.Overridden) (out []SourceLine) {
	for _, p := range at {
		out = append(out, *r.layered(r.header(p.At), p.Layer))
	}
	return out
}

func (r *listing) layered(p *SourceLine, l *source.Layer) *SourceLine {
	p.Layer, p.Of = l.String(), l
	return p
}
