package origin

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/zclconf/go-cty/cty"
)

// loop continues in a for expression, at the iteration that produces the requested item. The result is
// false if that iteration is not known.
func (r *replay) loop(c cursor, x *hclsyntax.ForExpr) (cursor, bool) {
	if len(c.path) == 0 {
		return c, false
	}
	coll, ds := r.in.eval(c.f, x.CollExpr)
	bare, marks := coll.Unmark()
	if ds.HasErrors() || !bare.IsKnown() || bare.IsNull() || !bare.CanIterateElements() {
		return c, false
	}
	want, path := c.path[0].name(), c.path[1:]
	left := 0 // number of items in a list or group before the requested one
	if x.KeyExpr == nil || x.Group {
		at := c.path[0]
		if x.Group {
			if len(path) == 0 {
				return c, false
			}
			at, path = path[0], path[1:]
		}
		var ok bool
		if left, ok = at.index(); !ok {
			return c, false
		}
	}
	n := -1
	for el := bare.ElementIterator(); el.Next(); {
		n++
		k, v := el.Element()
		f, it := c.turn(x, n, k.WithMarks(marks), v.WithMarks(marks), bare.Type().IsSetType())
		made, ok := r.in.makes(f, x, want)
		if !ok {
			return c, false
		}
		if !made {
			continue
		}
		if left--; left >= 0 {
			continue
		}
		text := "element " + c.path[0].name()
		if x.KeyExpr != nil {
			text = "item " + addr.Quote(want)
		}
		if text += " is made here"; it.key != cty.NilVal {
			text += " from element " + pathText([]step{keyStep(it.key)})
		}
		next := cursor{f, x.ValExpr, path}
		r.look(next)
		r.add(&Step{Kind: Item, Text: text, At: r.lines.place(x.ValExpr.Range(), r.hidden(next))})
		return next, true
	}
	return c, false
}

// turn returns the frame of iteration n of a for expression. k and v are the key and the value. set means
// that the collection is a set.
func (c cursor) turn(x *hclsyntax.ForExpr, n int, k, v cty.Value, set bool) (*frame, *iteration) {
	it := &iteration{keyVar: x.KeyVar, valVar: x.ValVar, forEach: x.CollExpr, at: c.f, n: n}
	if set {
		k = v
	} else {
		it.key = unmark(k)
	}
	names := map[string]cty.Value{x.ValVar: v}
	if x.KeyVar != "" {
		names[x.KeyVar] = k
	}
	return c.f.inside(it, names), it
}

// makes reports whether an iteration produces an item with the requested key. Lists have no keys. ok is
// false if the answer is unknown or secret.
func (r *reader) makes(f *frame, x *hclsyntax.ForExpr, want string) (made, ok bool) {
	plain := func(v cty.Value) bool { return v.IsKnown() && !v.IsMarked() && !v.IsNull() }
	if x.CondExpr != nil {
		cond, ds := r.eval(f, x.CondExpr)
		if ds.HasErrors() || !plain(cond) {
			return false, false
		}
		if !isTrue(cond) {
			return false, true
		}
	}
	if x.KeyExpr == nil {
		return true, true
	}
	key, ds := r.eval(f, x.KeyExpr)
	if ds.HasErrors() || !plain(key) || !key.Type().IsPrimitiveType() {
		return false, false
	}
	return keyStep(key).name() == want, true
}
