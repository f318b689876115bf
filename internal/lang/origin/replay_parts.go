package origin

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/zclconf/go-cty/cty"
)

// scalar ends the replay at a literal string, number or bool.
func (r *replay) scalar(c cursor) cursor {
	if len(c.path) > 0 {
		return r.noPart(c)
	}
	return cursor{}
}

// partsOf returns the attributes of an object or the elements of a map, by name. It returns nil for
// other values.
func partsOf(v cty.Value) map[string]cty.Value {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return nil
	}
	return v.AsValueMap()
}

// literal ends the replay at an object or list constructor. Its items may be computed from
// references.
func (r *replay) literal(c cursor) cursor {
	if len(c.x.Variables()) > 0 {
		r.from(c)
	}
	return cursor{}
}

func (r *replay) object(c cursor, x *hclsyntax.ObjectConsExpr) cursor {
	name := c.path[0].name()
	for i := len(x.Items) - 1; i >= 0; i-- { // of equal keys, the last one wins
		key, ds := r.in.eval(c.f, x.Items[i].KeyExpr)
		if ds.HasErrors() || !key.IsKnown() {
			return r.end(Unknown, cursor{c.f, x.Items[i].KeyExpr, nil}, "this key is not known, so this may or may not be the item")
		}
		if bare, _ := key.Unmark(); !bare.IsNull() && bare.Type().IsPrimitiveType() && keyStep(bare).name() == name {
			return r.item(cursor{c.f, x.Items[i].ValueExpr, c.path[1:]}, "item "+addr.Quote(name))
		}
	}
	if r.secret {
		return r.fail(c, "the object has no attribute of a name that is not shown")
	}
	return r.fail(c, fmt.Sprintf("the object has no attribute %q%s", name, r.in.near(c, name)))
}

// near returns a suggestion for a name that the value of an expression does not have, such as
// ".name", or "".
func (r *reader) near(c cursor, name string) string {
	v, ds := r.eval(c.f, c.x)
	if ds.HasErrors() {
		return ""
	}
	if near := lang.Suggest(name, partsOf(v)); near != "" {
		return "." + near
	}
	return ""
}

func (r *replay) conditional(c cursor, x *hclsyntax.ConditionalExpr) cursor {
	cond, ds := r.in.eval(c.f, x.Condition)
	at := cursor{c.f, x.Condition, nil}
	switch {
	case ds.HasErrors():
		return r.failWith(at, ds)
	case secretAt(cond, nil):
		return r.end(Unknown, at, "the condition is sensitive, so which branch it takes is not shown")
	case !cond.IsKnown():
		out := r.end(Unknown, at, "the condition is not known from configuration, so either branch may give the value")
		r.refers(r.last(), cursor{c.f, x, nil})
		return out
	}
	cond, _ = cond.Unmark()
	branch, word := x.FalseResult, "false"
	if isTrue(cond) {
		branch, word = x.TrueResult, "true"
	}
	r.add(&Step{Kind: Condition, Text: "the condition is " + word, At: r.lines.place(x.Condition.Range(), r.hidden(at))})
	next := cursor{c.f, branch, c.path}
	r.look(next)
	r.add(&Step{Kind: Item, Text: "the value if " + word, At: r.lines.place(branch.Range(), r.hidden(next))})
	return next
}

func isTrue(v cty.Value) bool {
	return !v.IsNull() && (v.Type() == cty.Bool && v.True() || v.Type() == cty.String && v.AsString() == "true")
}

// splat returns the cursor at the source of one element of a.*.b. ok is false if the path does not
// select an element.
func (r *replay) splat(c cursor, x *hclsyntax.SplatExpr) (cursor, bool) {
	if len(c.path) == 0 {
		return c, false
	}
	i, ok := c.path[0].index()
	if !ok {
		return c, false
	}
	each := []step(nil)
	switch e := x.Each.(type) {
	case *hclsyntax.AnonSymbolExpr:
	case *hclsyntax.RelativeTraversalExpr:
		if _, plain := e.Source.(*hclsyntax.AnonSymbolExpr); !plain {
			return c, false
		}
		if each, ok = steps(e.Traversal); !ok {
			return c, false
		}
	default:
		return c, false
	}
	src, ds := r.in.eval(c.f, x.Source)
	if ds.HasErrors() {
		return c, false
	}
	path := join(each, c.path[1:])
	if ty := src.Type(); ty.IsTupleType() || ty.IsListType() {
		path = join([]step{indexStep(i)}, path)
	} else if !src.IsKnown() || ty.IsSetType() {
		return c, false
	}
	return cursor{c.f, x.Source, path}, true
}

// json follows a JSON expression: an object, a list, or a string, which is parsed as a template.
func (r *replay) json(c cursor) cursor {
	if items, diags := hcl.ExprMap(c.x); !diags.HasErrors() {
		return r.jsonObject(c, items)
	}
	if items, diags := hcl.ExprList(c.x); !diags.HasErrors() {
		if len(c.path) == 0 {
			return r.literal(c)
		}
		if i, ok := c.path[0].index(); ok && i < len(items) {
			return r.item(cursor{c.f, items[i], c.path[1:]}, fmt.Sprintf("element %d", i))
		}
		if len(items) == 1 { // JSON syntax of a single block
			return r.item(cursor{c.f, items[0], c.path}, "element 0")
		}
		return r.fail(c, "there is no such element")
	}
	v, diags := c.x.Value(nil)
	if diags.HasErrors() || v.Type() != cty.String || v.IsNull() || c.f.scope == nil && c.f.unit == nil {
		return r.scalar(c)
	}
	start := c.x.Range().Start
	start.Column++
	start.Byte++
	inner, diags := hclsyntax.ParseTemplate([]byte(v.AsString()), c.x.Range().Filename, start)
	if diags.HasErrors() {
		return r.failWith(c, diag.FromHCL(diags))
	}
	return cursor{c.f, inner, c.path}
}

func (r *replay) jsonObject(c cursor, items []hcl.KeyValuePair) cursor {
	if len(c.path) == 0 {
		return r.literal(c)
	}
	name := c.path[0].name()
	for i := len(items) - 1; i >= 0; i-- {
		key, ds := r.in.eval(c.f, items[i].Key)
		if !ds.HasErrors() && key.IsKnown() && !key.IsNull() && keyStep(unmark(key)).name() == name {
			return r.item(cursor{c.f, items[i].Value, c.path[1:]}, "item "+addr.Quote(name))
		}
	}
	if i, ok := c.path[0].index(); ok && i == 0 { // JSON syntax of a single block
		return cursor{c.f, c.x, c.path[1:]}
	}
	return r.fail(c, fmt.Sprintf("the object has no attribute %q", name))
}

func unmark(v cty.Value) cty.Value {
	v, _ = v.UnmarkDeep()
	return v
}

// computed ends the replay at an expression that computes its result, and lists its references.
func (r *replay) computed(c cursor) cursor {
	if c.x == nil { // the requested address itself has no expression
		return cursor{}
	}
	if v, ds := r.in.eval(c.f, c.x); ds.HasErrors() {
		return r.failWith(c, ds)
	} else if _, ok := part(v, c.path); !ok {
		return r.noPart(c)
	}
	r.from(c)
	return cursor{}
}

// call follows a function call that returns a part of an argument or the content of a file. ok is
// false for functions that compute a new value.
func (r *replay) call(c cursor, x *hclsyntax.FunctionCallExpr) (next cursor, ok bool) {
	p, ok := call{r.in, c, x}.pick()
	if ok {
		return r.picked(p), true
	}
	way, ok := r.readBy(c, x)
	if !ok {
		return c, false
	}
	if v, ds := r.in.eval(c.f, x); !ds.HasErrors() {
		if _, ok := part(v, c.path); !ok {
			return c, false // the file does not contain the requested part
		}
	}
	r.look(c)
	return r.take(way), true
}

// readBy returns the way into the file that a call reads and decodes.
func (r *replay) readBy(c cursor, x *hclsyntax.FunctionCallExpr) (Way, bool) {
	switch {
	case c.f.unit != nil:
		return c.f.unit.Read(x, relative(c.path))
	case r.in.e.File != nil:
		return r.in.dataFiles(c.f).Decoded(x, relative(c.path))
	}
	return Way{}, false
}

// picked adds a step for the argument that a call returned, and returns the cursor at that argument.
func (r *replay) picked(p pick) cursor {
	switch p.kind {
	case "":
		return p.at
	case Unknown:
		out := r.end(Unknown, p.at, p.text)
		r.refers(r.last(), p.at)
		return out
	}
	r.look(p.at)
	s := &Step{Kind: p.kind, Text: p.text, At: r.lines.place(p.at.x.Range(), r.hidden(p.at))}
	for _, l := range p.lost {
		if at := r.lands(l); at != nil {
			s.Replaces = append(s.Replaces, *at)
		}
	}
	for _, w := range p.with {
		if at := r.lands(w); at != nil {
			s.With = append(s.With, *at)
		}
	}
	r.add(s)
	if p.kind == Merged {
		s.Computed = true
		return cursor{}
	}
	return p.at
}
