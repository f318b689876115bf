package origin

import (
	"cmp"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # What an explanation tells
//
// Whatever a replay follows, it tells here: the steps, the lines that they show, the value
// that was found, and what was decided about its secrecy.

// An account is an explanation in the making.
type account struct {
	in    *reader
	fed   *feeds
	lines *listing
	trail
	secrecy
	found
}

// found is the value that a replay has found: the first that is known on the way.
type found struct {
	value       cty.Value // NilVal if none is known
	valueSecret bool      // value must not be shown
	each        bool      // no value is known, since each instance has another one
}

// A trail is the steps of an explanation.
type trail struct{ out *Explanation }

func (r trail) add(s *Step) *Step {
	r.out.Steps = append(r.out.Steps, s)
	return s
}

// last is the step that was added last, or nil.
func (r trail) last() *Step {
	if n := len(r.out.Steps); n > 0 {
		return r.out.Steps[n-1]
	}
	return nil
}

// lastPlace is the last place of the way in a file, or else the last.
func (r trail) lastPlace() *Place {
	var found *Place
	for _, s := range r.out.Steps {
		if s.At != nil && s.Kind != Condition && (found == nil || s.At.File != "") {
			found = s.At
		}
	}
	return found
}

// eachPlace calls f with every place of the explanation.
func (r trail) eachPlace(f func(p *Place)) {
	each := func(all []Place) {
		for i := range all {
			f(&all[i])
		}
	}
	for _, s := range r.out.Steps {
		if s.At != nil {
			f(s.At)
		}
		each(s.With)
		each(s.Replaces)
		for i := range s.From {
			if at := s.From[i].At; at != nil {
				f(at)
			}
		}
	}
	for i := range r.out.Parts {
		p := &r.out.Parts[i]
		f(&p.At)
		each(p.With)
		each(p.Replaces)
	}
}

// shown gives files the names that the reader knows them by.
func (r *account) shown() {
	r.eachPlace(func(p *Place) {
		if p.File == "" || r.in.e.Show == nil {
			return
		}
		file, layer := r.in.e.Show(p.File)
		p.File, p.Layer = file, cmp.Or(layer, p.Layer)
	})
}

// define adds the step of a definition, whose expression is where to go on.
func (r *account) define(kind Kind, text string, s *config.Setting, c cursor) cursor {
	return r.defineIn(kind, text, s, c, nil)
}

// defineIn is define for an argument of a block that is guarded.
func (r *account) defineIn(kind Kind, text string, s *config.Setting, c cursor, args *guarded) cursor {
	r.look(c)
	r.lines.shows(cursor{f: c.f, x: s.Expr}, args)
	p := r.lines.layered(r.lines.place(s.Range, r.hidden(c)), s.Layer)
	r.add(&Step{Kind: kind, Text: text + pathText(c.path), At: p, Replaces: r.replaced(c.f, s, args)})
	return c
}

// look evaluates the part, for its value and for whether it may be shown.
func (r *account) look(c cursor) {
	v, ds := r.in.eval(c.f, c.x)
	v = r.fed.mark(c.x, v)
	r.weigh(evidence{value: v, path: c.path})
	if ds.HasErrors() {
		return
	}
	if v, ok := part(v, c.path); ok {
		r.learn(v)
		r.each = r.each || !v.IsWhollyKnown() && c.f.repeat != nil && c.f.key == (addr.Key{})
	}
}

// learn keeps the first value that is known: those before it were not, or
// lacked a conversion at most.
func (r *account) learn(v cty.Value) {
	if r.value == cty.NilVal && v.IsWhollyKnown() {
		r.value, r.valueSecret = v, r.secret
	}
}

// end adds a last step.
func (r *account) end(kind Kind, c cursor, text string) cursor {
	r.add(&Step{Kind: kind, Text: text, At: r.lines.place(c.x.Range(), r.hidden(c))})
	return cursor{}
}

func (r *account) fail(c cursor, text string) cursor { return r.end(Failed, c, text) }

// noPart ends at a value that lacks what is asked for, and proposes what is near.
func (r *account) noPart(c cursor) cursor {
	text := "the value has no such part"
	v, ds := r.in.eval(c.f, c.x)
	if r.secret || ds.HasErrors() || secretAt(v, nil) {
		return r.fail(c, text)
	}
	for i, s := range c.path {
		next, ok := part(v, c.path[i:i+1])
		if !ok {
			if near := lang.Suggest(s.name(), partsOf(v)); near != "" {
				text += "." + near
			}
			break
		}
		v = next
	}
	return r.fail(c, text)
}

// item goes on inside a constructor; it is a step of its own if it stands on
// another line than the last step, or was picked from what that shows.
func (r *account) item(c cursor, text string) cursor {
	r.look(c)
	at := c.x.Range()
	if l := r.last(); l == nil || l.At == nil || l.At.File != at.Filename || l.At.Line != at.Start.Line || l.Kind == Repetition || l.Kind == Choice {
		r.add(&Step{Kind: Item, Text: text + pathText(c.path), At: r.lines.place(at, r.hidden(c))})
	}
	return c
}

// hidden lists what of a setting must not be shown though it need not be secret by
// itself: all of its expression where what is asked for is secret and the
// expression is more than a reference.
func (r *account) hidden(c cursor) []source.Range {
	if c.x == nil {
		return nil
	}
	if !r.secret {
		return nil
	}
	return written(c.x)
}

// replaced lists what a setting of a frame replaced, nearest first.
func (r *account) replaced(f *frame, s *config.Setting, args *guarded) (out []Place) {
	if s == nil {
		return nil
	}
	for u := s.Under; u != nil; u = u.Under {
		r.lines.shows(cursor{f: f, x: u.Expr}, args)
		out = append(out, *r.lines.layered(r.lines.place(u.Range, r.hidden(cursor{x: u.Expr})), u.Layer))
	}
	return out
}

// places are those of what was replaced; it may be arguments, whose text is
// then not shown if the value must not be.
func (r *account) places(gone []config.Place) (out []Place) {
	for _, g := range gone {
		var hide []source.Range
		if r.secret {
			hide = []source.Range{g.At}
		}
		out = append(out, *r.lines.layered(r.lines.place(g.At, hide), g.Layer))
	}
	return out
}

// block adds the step of a block.
func (r *account) block(kind Kind, text string, parts, gone []config.Place) {
	r.add(&Step{
		Kind: kind, Text: text, At: r.lines.layered(r.lines.header(parts[0].At), parts[0].Layer),
		With: r.lines.headers(parts[1:]), Replaces: r.places(gone),
	})
}

// holdsBlock adds a nested block to what a block holds.
func (r *account) holdsBlock(name string, parts, gone []config.Place) {
	r.out.Parts = append(r.out.Parts, Part{
		Name: name, At: *r.lines.layered(r.lines.header(parts[0].At), parts[0].Layer), With: r.lines.headers(parts[1:]), Replaces: r.places(gone),
	})
}
