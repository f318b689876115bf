package origin

import (
	"cmp"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Results of a replay
//
// A replay stores its results in an account: the steps, the source lines of the steps, the value,
// and the decision whether the value is secret.

// An account is an unfinished explanation.
type account struct {
	in    *reader
	fed   *feeds
	lines *listing
	trail
	secrecy
	found
}

// found is the value that a replay has found: the first known value on the way.
type found struct {
	value       cty.Value // NilVal if none is known
	valueSecret bool      // value must not be shown
	each        bool      // no value is known, because each instance has its own
}

// A trail contains the steps of an explanation.
type trail struct{ out *Explanation }

func (r trail) add(s *Step) *Step {
	r.out.Steps = append(r.out.Steps, s)
	return s
}

// last returns the last step, or nil if there is none.
func (r trail) last() *Step {
	if n := len(r.out.Steps); n > 0 {
		return r.out.Steps[n-1]
	}
	return nil
}

// lastPlace returns the last place that is in a file. If there is none, it returns the last place of
// any kind, or nil. Conditions are ignored.
func (r trail) lastPlace() *SourceLine {
	var found *SourceLine
	for _, s := range r.out.Steps {
		if s.At != nil && s.Kind != Condition && (found == nil || s.At.File != "") {
			found = s.At
		}
	}
	return found
}

// eachPlace calls f for every place in the explanation. f may modify the place.
func (r trail) eachPlace(f func(p *SourceLine)) {
	each := func(all []SourceLine) {
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

// shown replaces the names and layers of files by those that Explainer.Show returns.
func (r *account) shown() {
	r.eachPlace(func(p *SourceLine) {
		if p.File == "" || r.in.e.Show == nil {
			return
		}
		file, layer := r.in.e.Show(p.File)
		p.File, p.Layer = file, cmp.Or(layer, p.Layer)
	})
}

// define adds a step for a definition and returns c, the cursor at its expression.
func (r *account) define(kind Kind, text string, s *config.Setting, c cursor) cursor {
	return r.defineIn(kind, text, s, c, nil)
}

// defineIn is like define, for an argument of a block. args is the guard of the argument.
func (r *account) defineIn(kind Kind, text string, s *config.Setting, c cursor, args *guarded) cursor {
	r.look(c)
	r.lines.shows(cursor{f: c.f, x: s.Expr}, args)
	p := r.lines.layered(r.lines.place(s.Range, r.hidden(c)), s.Layer)
	r.add(&Step{Kind: kind, Text: text + pathText(c.path), At: p, Replaces: r.replaced(c.f, s, args)})
	return c
}

// look evaluates the part at a cursor. It stores the value if it is known, and decides whether the
// value is secret.
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

// learn stores the first known value. Later values are ignored: they are the same value, at most before
// a conversion.
func (r *account) learn(v cty.Value) {
	if r.value == cty.NilVal && v.IsWhollyKnown() {
		r.value, r.valueSecret = v, r.secret
	}
}

// end adds the last step and returns the zero cursor, which ends the replay.
func (r *account) end(kind Kind, c cursor, text string) cursor {
	r.add(&Step{Kind: kind, Text: text, At: r.lines.place(c.x.Range(), r.hidden(c))})
	return cursor{}
}

func (r *account) fail(c cursor, text string) cursor { return r.end(Failed, c, text) }

// noPart ends the replay at a value that does not contain the requested part. It suggests a similar
// name unless the value is secret.
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

// item continues at an item of an object or list constructor. It adds a step if the item is on another
// line than the last step, or if the last step is a choice or a repetition.
func (r *account) item(c cursor, text string) cursor {
	r.look(c)
	at := c.x.Range()
	if l := r.last(); l == nil || l.At == nil || l.At.File != at.Filename || l.At.Line != at.Start.Line || l.Kind == Repetition || l.Kind == Choice {
		r.add(&Step{Kind: Item, Text: text + pathText(c.path), At: r.lines.place(at, r.hidden(c))})
	}
	return c
}

// hidden returns the source ranges to hide because the requested part is secret: all text of the
// expression except references. It returns nil if the part is not secret.
func (r *account) hidden(c cursor) []source.Range {
	if c.x == nil {
		return nil
	}
	if !r.secret {
		return nil
	}
	return written(c.x)
}

// replaced returns the places of the settings that a setting replaced, nearest first.
func (r *account) replaced(f *frame, s *config.Setting, args *guarded) (out []SourceLine) {
	if s == nil || r.in.ends != nil {
		return nil
	}
	for u := s.Replaced; u != nil; u = u.Replaced {
		r.lines.shows(cursor{f: f, x: u.Expr}, args)
		out = append(out, *r.lines.layered(r.lines.place(u.Range, r.hidden(cursor{x: u.Expr})), u.Layer))
	}
	return out
}

// places converts the places of replaced blocks and arguments. It hides their text if the requested part
// is secret.
func (r *account) places(gone []config.Overridden) (out []SourceLine) {
	for _, g := range gone {
		var hide []source.Range
		if r.secret {
			hide = []source.Range{g.At}
		}
		out = append(out, *r.lines.layered(r.lines.place(g.At, hide), g.Layer))
	}
	return out
}

// block adds a step for a block. parts are the headers of the merged blocks, gone those of the replaced
// blocks.
func (r *account) block(kind Kind, text string, parts, gone []config.Overridden) {
	r.add(&Step{
		Kind: kind, Text: text, At: r.lines.layered(r.lines.header(parts[0].At), parts[0].Layer),
		With: r.lines.headers(parts[1:]), Replaces: r.places(gone),
	})
}

// holdsBlock adds a nested block to the parts of the explained block.
func (r *account) holdsBlock(name string, parts, gone []config.Overridden) {
	r.out.Parts = append(r.out.Parts, Part{
		Name: name, At: *r.lines.layered(r.lines.header(parts[0].At), parts[0].Layer), With: r.lines.headers(parts[1:]), Replaces: r.places(gone),
	})
}
