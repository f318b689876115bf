package origin

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # What feeds sensitive variables
//
// A unit file does not say that an input is secret: the module's variable does.
// So the ways of all inputs of sensitive variables are followed first, and what
// lies on them is taken for secret wherever it is found again.

// feeds are what of unit files must not be shown. The zero value is empty.
type feeds struct {
	by    map[spot][][]step // the parts of each expression
	texts *fedTexts         // the values of those parts; nil: there are none
}

// fedTexts are the values that feed sensitive variables, and where they stand.
type fedTexts struct {
	secrets
	at   []source.Range
	open []ending // what is the value of a variable that is not sensitive; nil: not looked at yet
}

// A spot is an expression, or the block of an output, by where it stands.
type spot struct {
	file     string
	from, to int
}

func spotOf(c cursor) spot {
	if c.x == nil {
		return spot{}
	}
	at := c.x.Range()
	return spot{at.Filename, at.Start.Byte, at.End.Byte}
}

// traceInputs follows the inputs of sensitive variables.
func (e *Explainer) traceInputs(t *demand.Task) *feeds {
	if e.Unit == nil || e.Eval == nil {
		return &feeds{}
	}
	tr := &trace{map[spot][][]step{}, &fedTexts{}}
	for _, v := range e.Eval.Root.Node.Config.Variables {
		if !v.Sensitive {
			continue
		}
		way, ok, ds := e.Unit.Part(inputAddress(v.Name))
		if !ok || ds.HasErrors() {
			continue
		}
		sub := newReplay(t, e, &feeds{texts: tr.texts})
		sub.weigh(evidence{declared: true})
		tr.way(sub, way)
	}
	return &feeds{tr.parts, tr.texts}
}

// A trace gathers what lies on the ways of the inputs of sensitive variables.
type trace struct {
	parts map[spot][][]step // of each expression
	texts *fedTexts
}

// way follows a way, and those that it replaces or merges, and notes what lies on them.
func (tr *trace) way(r *replay, w Way) {
	c := r.take(w)
	for i := range w.Stops {
		s := &w.Stops[i]
		if path, _ := steps(s.Path); s.Value != cty.NilVal {
			tr.note(spot{s.At.Filename, s.At.Start.Byte, s.At.End.Byte}, path)
		}
		for _, more := range slices.Concat(s.Replaces, s.With) {
			tr.way(r.aside(), more)
		}
	}
	r.seer = tr
	r.follow(c)
}

func (tr *trace) note(at spot, path []step) { tr.parts[at] = append(tr.parts[at], path) }

// visit notes an expression on a way.
func (tr *trace) visit(r *replay, c cursor) {
	tr.note(spotOf(c), c.path)
	if len(c.path) == 0 && !isReference(c.x) {
		tr.texts.at = append(tr.texts.at, secretText(c.x)...)
	}
	if v, ds := r.in.eval(c.f, c.x); !ds.HasErrors() {
		if v, ok := part(v, c.path); ok {
			tr.texts.add(v, true)
		}
	}
}

// references follows what a sensitive value is computed from. Of several references those
// that are also the value of a variable that is not sensitive are shown in every plan:
// the host in a connection string stays what it is.
func (tr *trace) references(r *replay, c cursor) {
	refs := c.x.Variables()
	for _, ref := range refs {
		if way, ok := c.f.unit.Follow(ref); ok && (len(refs) == 1 || !tr.isOpen(r, way)) {
			tr.way(r.aside(), way)
		}
	}
}

// isOpen reports whether a way leads to the value of a variable that is not sensitive.
func (tr *trace) isOpen(r *replay, w Way) bool {
	if tr.texts.open == nil {
		tr.texts.open = []ending{}
		for _, v := range r.in.e.Eval.Root.Node.Config.Variables {
			if way, ok, ds := r.in.e.Unit.Part(inputAddress(v.Name)); !v.Sensitive && ok && !ds.HasErrors() {
				tr.texts.open = append(tr.texts.open, r.endOf(way))
			}
		}
	}
	at := r.endOf(w)
	return at.at != spot{} && slices.ContainsFunc(tr.texts.open, at.within)
}

// An ending is the last expression on a way, and the part of its value that the way leads to.
type ending struct {
	at   spot
	path []step
}

// within reports whether an ending is another one, or a part of it.
func (e ending) within(o ending) bool {
	return e.at == o.at && len(o.path) <= len(e.path) &&
		slices.EqualFunc(o.path, e.path[:len(o.path)], func(a, b step) bool { return a.name() == b.name() })
}

func (r *replay) endOf(w Way) (end ending) {
	sub := r.aside()
	sub.seer = &end
	sub.follow(sub.take(w))
	return end
}

func (e *ending) visit(_ *replay, c cursor) { *e = ending{spotOf(c), c.path} }
func (*ending) references(*replay, cursor)  {}

func inputAddress(name string) hcl.Traversal {
	return hcl.Traversal{hcl.TraverseRoot{Name: "inputs"}, hcl.TraverseIndex{Key: cty.StringVal(name)}}
}

// under lists the parts of what is asked for that feed a sensitive variable, by
// their paths in it; an empty path is all of it.
func (r *feeds) under(at spot, path []step) (out [][]step) {
	for _, fed := range r.by[at] {
		n := min(len(fed), len(path))
		same := true
		for i := range n {
			same = same && fed[i].name() == path[i].name()
		}
		if same {
			out = append(out, fed[n:])
		}
	}
	return out
}

// all reports whether all of an expression feeds a sensitive variable.
func (r *feeds) all(at spot) bool {
	for _, fed := range r.by[at] {
		if len(fed) == 0 {
			return true
		}
	}
	return false
}

// mark marks what of an expression's value feeds a sensitive variable: as a whole,
// or by an item of an object that is written out.
func (r *feeds) mark(x hcl.Expression, v cty.Value) cty.Value {
	if len(r.by) == 0 || x == nil {
		return v
	}
	var paths []cty.Path
	for _, fed := range r.by[spotOf(cursor{x: x})] {
		paths = append(paths, pathIn(v, fed))
	}
	return value.MarkPaths(v, value.Sensitive, append(paths, r.items(x, nil)...)...)
}

// items are the paths of the items of an object constructor that feed a
// sensitive variable.
func (r *feeds) items(x hcl.Expression, at cty.Path) (out []cty.Path) {
	items, diags := hcl.ExprMap(x)
	if diags.HasErrors() {
		return nil
	}
	for _, kv := range items {
		key, diags := kv.Key.Value(nil)
		if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
			continue
		}
		p := at.Copy().GetAttr(key.AsString())
		if r.all(spotOf(cursor{x: kv.Value})) {
			out = append(out, p)
			continue
		}
		out = append(out, r.items(kv.Value, p)...)
	}
	return out
}

// pathIn is a path in a value; where it leads on through what is not known, up to there.
func pathIn(v cty.Value, path []step) (p cty.Path) {
	for _, s := range path {
		bare, _ := v.Unmark()
		next, ok := child(bare, s)
		if !ok || !bare.IsKnown() {
			return p
		}
		switch ty := bare.Type(); {
		case ty.IsObjectType():
			p = p.GetAttr(s.name())
		case ty.IsMapType():
			p = p.IndexString(s.name())
		default:
			i, _ := s.index()
			p = p.IndexInt(i)
		}
		v = next
	}
	return p
}
