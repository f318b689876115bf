package origin

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Inputs of sensitive variables
//
// A unit file does not mark an input as secret; the variable of the module does. Therefore, the inputs
// of all sensitive variables are followed first. All expressions and values on their ways are secret
// wherever the explanation meets them again.

// feeds contains the expressions in unit files that must not be shown. The zero value is empty.
type feeds struct {
	by    map[spot][][]step // secret parts of each expression
	texts *fedTexts         // values of those parts; nil means none
}

// fedTexts contains the values that flow into sensitive variables, and their source ranges.
type fedTexts struct {
	secrets
	at   []source.Range
	open []ending // values of variables that are not sensitive; nil until the first use
}

// A spot identifies an expression, or the block of an output, by its source range.
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

// traceInputs follows the inputs of all sensitive variables.
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

// A trace collects the expressions and values on the ways of the inputs of sensitive variables.
type trace struct {
	parts map[spot][][]step // parts of each expression
	texts *fedTexts
}

// way follows a way, and the ways that it replaces or merges, and records the expressions on them.
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

// visit records an expression on a way.
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

// references follows the references from which a sensitive value is computed. If there are several, it
// skips those that are also the value of a variable that is not sensitive. Every plan shows such values,
// for example the host name in a connection string.
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

// An ending is the last expression on a way, with the path of the requested part in its value.
type ending struct {
	at   spot
	path []step
}

// within reports whether an ending is o or a part of o.
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

// under returns the paths, relative to a part, of the values that flow into a sensitive variable. An
// empty path is the whole part.
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

// all reports whether the whole value of an expression flows into a sensitive variable.
func (r *feeds) all(at spot) bool {
	for _, fed := range r.by[at] {
		if len(fed) == 0 {
			return true
		}
	}
	return false
}

// mark marks the parts of an expression's value that flow into a sensitive variable, as parts of the
// expression or as items of an object constructor.
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

// items returns the paths of the items of an object constructor that flow into a sensitive variable. at
// is the path of the object.
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

// pathIn converts a path in a value. It stops at the first unknown or missing part.
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
