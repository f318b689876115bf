package origin

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/zclconf/go-cty/cty"
)

// # Unit files
//
// The values of a root module's variables may come from a unit. Its files are
// another language with the same expressions. The replay continues there: a Unit
// follows imports, includes and merges, and a Scope evaluates the expressions in
// its files. Both describe the steps between two expressions by a Way. Therefore
// only this package contains rules about expressions and about secrets.

// traversal returns steps as an absolute reference.
func traversal(path []step) hcl.Traversal {
	out := make(hcl.Traversal, 0, len(path))
	for i, s := range path {
		switch {
		case i == 0 && !s.brackets:
			out = append(out, hcl.TraverseRoot{Name: s.name()})
		case s.brackets || s.key.Type() != cty.String:
			out = append(out, hcl.TraverseIndex{Key: s.key})
		default:
			out = append(out, hcl.TraverseAttr{Name: s.name()})
		}
	}
	return out
}

// relative returns steps as the part of a reference after its root.
func relative(path []step) hcl.Traversal {
	out := make(hcl.Traversal, 0, len(path))
	for _, s := range path {
		if s.brackets || s.key.Type() != cty.String {
			out = append(out, hcl.TraverseIndex{Key: s.key})
		} else {
			out = append(out, hcl.TraverseAttr{Name: s.name()})
		}
	}
	return out
}

// unitFrame returns the frame of expressions in a unit file.
func unitFrame(s Scope) *frame { return &frame{unit: s} }

// take adds the stops of a way to the explanation and returns the cursor at its end. The cursor is
// zero if the way ends at a stop.
func (r *replay) take(w Way) cursor {
	for i := range w.Stops {
		r.stop(&w.Stops[i])
	}
	if w.Next == nil {
		return cursor{}
	}
	path, ok := steps(w.Next.Path)
	if !ok {
		return cursor{}
	}
	c := cursor{unitFrame(w.Next.In), w.Next.Expr, path}
	r.look(c)
	return c
}

func (r *replay) stop(s *Stop) {
	r.lines.layers[s.At.Filename] = s.Layer
	path, _ := steps(s.Path)
	c := cursor{x: s.Expr, path: path}
	if s.Expr != nil {
		c.f = unitFrame(s.In)
		whole := cursor{f: c.f, x: s.Expr}
		if s.Of != nil {
			whole.x = s.Of()
		}
		r.lines.shows(whole, &guarded{guard: guard{byName: true}}) // the line may contain other items than the requested one
	}
	if s.Value != cty.NilVal {
		at := spot{s.At.Filename, s.At.Start.Byte, s.At.End.Byte}
		r.weigh(evidence{value: s.Value, declared: len(r.fed.under(at, path)) > 0})
		r.learn(s.Value)
	}
	r.weigh(evidence{declared: s.Expr != nil && r.fed.all(spotOf(c))})
	r.out.Whole = r.out.Whole || s.Whole
	step := &Step{Kind: s.Kind, Text: s.Text, Output: s.Output}
	switch {
	case s.At.Filename == "" && s.Layer != nil:
		step.At = &SourceLine{Layer: s.Layer.String()}
	case s.At.Filename == "":
	case s.Bare:
		step.At = r.lines.layered(r.lines.place(s.At, nil), s.Layer)
		step.At.Source, step.At.Part = "", ""
	case s.Expr == nil:
		step.At = r.lines.layered(r.lines.header(s.At), s.Layer)
	case s.Names:
		step.At = r.lines.layered(r.lines.place(s.At, writtenInNames(s.Expr)), s.Layer)
	default:
		step.At = r.lines.layered(r.lines.place(s.At, r.hidden(c)), s.Layer)
	}
	step.Replaces = r.ends(s.Replaces)
	step.With = r.ends(s.With)
	r.add(step)
}

// ends returns the last place of each way. It returns a place once, since several files may
// merge the same file.
func (r *replay) ends(ways []Way) (out []SourceLine) {
	for _, w := range ways {
		sub := r.aside()
		sub.follow(sub.take(w))
		if p := sub.lastPlace(); p != nil && !slices.Contains(out, *p) {
			out = append(out, *p)
		}
	}
	return out
}

// starts returns the first place of a way that is in a file, and the places that it replaces. This
// is the definition itself, and not the values that it refers to.
func (r *replay) starts(w Way) []SourceLine {
	sub := r.aside()
	sub.take(w)
	for _, s := range sub.out.Steps {
		if s.At != nil && s.At.File != "" {
			return slices.Concat([]SourceLine{*s.At}, s.With, s.Replaces)
		}
	}
	if p := sub.lastPlace(); p != nil {
		return []SourceLine{*p}
	}
	return nil
}

// lands returns the last place when a cursor is followed, or nil if there is none.
func (r *replay) lands(c cursor) *SourceLine {
	sub := r.aside()
	sub.item(c, "")
	sub.follow(c)
	return sub.lastPlace()
}

// generated continues in the generate block of the unit if the explanation ended in a file that
// this block writes.
func (r *replay) generated() {
	last := r.last()
	if r.in.e.Unit == nil || last == nil || last.At == nil || last.At.File == "" {
		return
	}
	f := r.in.e.Set.File(last.At.File)
	if f == nil || f.Bytes == nil {
		return
	}
	line := explanation.GeneratedLine{File: last.At.File, Text: f.Line(last.At.Line)}
	if x := r.in.ends; x != nil {
		is, known := x.generated[line.File]
		if !known {
			_, is = r.in.e.Unit.Generated(line)
			x.generated[line.File] = is
		}
		if !is {
			return
		}
	}
	for n := 1; n < last.At.Line; n++ {
		if bareText(f.Line(n)) == bareText(line.Text) {
			line.Earlier++
		}
	}
	if at := r.at; at.Filename == line.File && at.Start.Line == last.At.Line {
		start := f.LineStart(at.Start.Line)
		line.From, line.To = at.Start.Byte-start, min(at.End.Byte-start, len(line.Text))
	}
	if way, ok := r.in.e.Unit.Generated(line); ok {
		before := r.value
		r.follow(r.take(way))
		if before != cty.NilVal {
			r.value = before
		}
	}
}

// bareText returns a line without white space, since generated files are formatted.
func bareText(line string) string { return strings.Join(strings.Fields(line), "") }
