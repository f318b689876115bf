package origin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// baseName is a function's name without the namespace of the built-in ones.
func baseName(name string) string { return strings.TrimPrefix(name, "core::") }

// call follows the functions that hand on a value instead of making one. ok is
// false for all others.
func (r *replay) call(c cursor, x *hclsyntax.FunctionCallExpr) (cursor, bool) {
	name := baseName(x.Name)
	switch name {
	case "merge":
		return r.merge(c, x)
	case "deep_merge":
		return r.deepMerge(c, x)
	case "sensitive", "nonsensitive", "tomap", "tolist", "toset", "tostring", "tonumber", "tobool", "ephemeralasnull", "convert":
		if len(x.Args) == 0 || name == "toset" && len(c.path) > 0 {
			return c, false
		}
		return cursor{c.f, x.Args[0], c.path}, true
	case "try":
		return r.first(c, x, func(cty.Value) bool { return true })
	case "coalesce":
		return r.first(c, x, func(v cty.Value) bool { return !v.IsNull() && !(v.Type() == cty.String && v.AsString() == "") })
	case "coalescelist":
		return r.first(c, x, func(v cty.Value) bool { return !v.IsNull() && v.CanIterateElements() && v.LengthInt() > 0 })
	case "lookup":
		return r.lookup(c, x)
	case "element":
		return r.element(c, x)
	case "concat":
		return r.concat(c, x)
	case "zipmap":
		return r.zipmap(c, x)
	case "one", "values", "flatten", "slice", "reverse", "compact", "distinct":
		return r.picked(c, x, name)
	case "min", "max":
		return r.same(c, x)
	}
	if c.f.unit != nil {
		if way, ok := c.f.unit.Read(x, relative(c.path)); ok {
			r.look(c)
			return r.take(way), true
		}
	}
	return c, false
}

// chosen adds the step of the argument that won.
func (r *replay) chosen(c cursor, x *hclsyntax.FunctionCallExpr, i int, lost ...cursor) (cursor, bool) {
	r.look(c)
	var replaces []Place
	for _, l := range lost {
		if p := r.lands(l); p != nil {
			replaces = append(replaces, *p)
		}
	}
	at := c.x.Range()
	r.add(&Step{
		Kind: Choice, Text: fmt.Sprintf("argument %d of %s wins", i+1, x.Name),
		At: r.place(at, r.hidden(c)), Replaces: replaces,
	})
	return c, true
}

// arg is one argument of a call: an expression, and the element of it that an
// expanded last argument (list...) stands for.
type arg struct {
	x     hcl.Expression
	path  []step
	value cty.Value
}

// args evaluates the arguments of a call. ok is false where one fails or a list
// that is expanded is not known.
func (r *replay) args(c cursor, x *hclsyntax.FunctionCallExpr) (out []arg, ok bool) {
	for i, a := range x.Args {
		v, ds := r.eval(c.f, a)
		if ds.HasErrors() {
			return nil, false
		}
		if !x.ExpandFinal || i < len(x.Args)-1 {
			out = append(out, arg{a, nil, v})
			continue
		}
		bare, marks := v.Unmark()
		if !bare.IsKnown() || bare.IsNull() || !bare.CanIterateElements() || bare.Type().IsSetType() {
			return nil, false
		}
		n := 0
		for it := bare.ElementIterator(); it.Next(); n++ {
			_, el := it.Element()
			out = append(out, arg{a, []step{indexStep(n)}, el.WithMarks(marks)})
		}
	}
	return out, true
}

// merge finds the last argument that has the first step of the path; those before
// it that have it, too, lost.
func (r *replay) merge(c cursor, x *hclsyntax.FunctionCallExpr) (cursor, bool) {
	if len(c.path) == 0 {
		return c, false
	}
	args, ok := r.args(c, x)
	if !ok {
		return c, false
	}
	winner, lost := -1, []cursor(nil)
	for i := len(args) - 1; i >= 0; i-- {
		a := args[i]
		bare, _ := a.value.Unmark()
		if winner < 0 && !bare.IsKnown() {
			return r.unknownArgument(cursor{c.f, a.x, nil}, x, i), true
		}
		if _, has := part(a.value, c.path[:1]); !has || !bare.IsKnown() {
			continue
		}
		if winner < 0 {
			winner = i
		} else if _, has := part(a.value, c.path); has {
			lost = append(lost, cursor{c.f, a.x, join(a.path, c.path)})
		}
	}
	if winner < 0 {
		return c, false
	}
	a := args[winner]
	return r.chosen(cursor{c.f, a.x, join(a.path, c.path)}, x, winner, lost...)
}

func (r *replay) unknownArgument(at cursor, x *hclsyntax.FunctionCallExpr, i int) cursor {
	return r.end(Unknown, at, fmt.Sprintf("argument %d of %s is not known, so whether it gives the value cannot be told", i+1, x.Name))
}

// deepMerge finds the arguments that have a part in the value: the last one wins,
// but maps are merged key by key and lists joined.
func (r *replay) deepMerge(c cursor, x *hclsyntax.FunctionCallExpr) (cursor, bool) {
	if len(c.path) == 0 {
		return c, false
	}
	args, ok := r.args(c, x)
	if !ok {
		return c, false
	}
	to := len(c.path) // up to the first list, whose elements the arguments share
	for i, s := range c.path {
		if _, isIndex := s.index(); isIndex && s.key.Type() == cty.Number {
			to = i
			break
		}
	}
	type giver struct {
		i int
		v cty.Value
	}
	var givers []giver // the last first
	for i := len(args) - 1; i >= 0; i-- {
		bare, _ := args[i].value.Unmark()
		if !bare.IsKnown() && len(givers) == 0 {
			return r.unknownArgument(cursor{c.f, args[i].x, nil}, x, i), true
		}
		if v, has := part(args[i].value, c.path[:to]); has && bare.IsKnown() && !unmark(v).IsNull() {
			givers = append(givers, giver{i, unmark(v)})
		}
	}
	if len(givers) == 0 {
		return c, false
	}
	at := func(g giver) cursor { return cursor{c.f, args[g.i].x, join(args[g.i].path, c.path)} }
	last := givers[0]
	ty := last.v.Type()
	switch {
	case ty.IsPrimitiveType():
		var lost []cursor
		for _, g := range givers[1:] {
			lost = append(lost, at(g))
		}
		return r.chosen(at(last), x, last.i, lost...)
	case to < len(c.path) && (ty.IsTupleType() || ty.IsListType()):
		want, _ := c.path[to].index()
		for i := len(givers) - 1; i >= 0; i-- {
			g := givers[i]
			if !g.v.IsKnown() || !g.v.CanIterateElements() {
				return c, false
			}
			if n := g.v.LengthInt(); want >= n {
				want -= n
				continue
			}
			path := join(args[g.i].path, join(c.path[:to], []step{indexStep(want)}))
			return r.chosen(cursor{c.f, args[g.i].x, join(path, c.path[to+1:])}, x, g.i)
		}
		return c, false
	case len(givers) == 1:
		return r.chosen(at(last), x, last.i)
	}
	r.look(c)
	s := &Step{Kind: Merged, Text: fmt.Sprintf("%d arguments of %s have a part in it", len(givers), x.Name), At: r.place(c.x.Range(), r.hidden(c)), Computed: true}
	for _, g := range givers {
		if p := r.lands(at(g)); p != nil {
			s.With = append(s.With, *p)
		}
	}
	r.add(s)
	return cursor{}, true
}

// first finds the first argument that evaluates without an error to a value
// that the function accepts.
func (r *replay) first(c cursor, x *hclsyntax.FunctionCallExpr, accept func(cty.Value) bool) (cursor, bool) {
	if x.ExpandFinal {
		return c, false
	}
	for i, a := range x.Args {
		v, ds := r.eval(c.f, a)
		if ds.HasErrors() {
			if baseName(x.Name) == "try" {
				continue
			}
			return c, false
		}
		at := cursor{c.f, a, c.path}
		bare, _ := v.Unmark()
		switch {
		case secretAt(v, nil) && baseName(x.Name) != "try":
			return c, false // which one it is would tell something of it
		case !bare.IsKnown():
			return r.unknownArgument(at, x, i), true
		case accept(bare):
			return r.chosen(at, x, i)
		}
	}
	return c, false
}

func (r *replay) lookup(c cursor, x *hclsyntax.FunctionCallExpr) (cursor, bool) {
	if len(x.Args) < 2 || x.ExpandFinal {
		return c, false
	}
	from, ds := r.eval(c.f, x.Args[0])
	key, more := r.eval(c.f, x.Args[1])
	if ds.HasErrors() || more.HasErrors() || !key.IsKnown() || key.IsNull() || key.IsMarked() || !unmark(from).IsKnown() {
		return c, false
	}
	if _, has := part(from, []step{keyStep(key)}); has {
		return r.chosen(cursor{c.f, x.Args[0], join([]step{keyStep(key)}, c.path)}, x, 0)
	}
	if len(x.Args) == 3 {
		return r.chosen(cursor{c.f, x.Args[2], c.path}, x, 2)
	}
	return c, false
}

func (r *replay) element(c cursor, x *hclsyntax.FunctionCallExpr) (cursor, bool) {
	if len(x.Args) != 2 || x.ExpandFinal {
		return c, false
	}
	list, ds := r.eval(c.f, x.Args[0])
	key, more := r.eval(c.f, x.Args[1])
	if ds.HasErrors() || more.HasErrors() {
		return c, false
	}
	list, _ = list.Unmark()
	if ty := list.Type(); !list.IsKnown() || list.IsNull() || !ty.IsListType() && !ty.IsTupleType() || list.LengthInt() == 0 ||
		!key.IsKnown() || key.IsNull() || key.IsMarked() || key.Type() != cty.Number {
		return c, false
	}
	i, accuracy := key.AsBigFloat().Int64()
	if accuracy != 0 {
		return c, false
	}
	n := int64(list.LengthInt())
	i = (i%n + n) % n
	return cursor{c.f, x.Args[0], join([]step{indexStep(int(i))}, c.path)}, true
}

// concat finds the list that an element comes from.
func (r *replay) concat(c cursor, x *hclsyntax.FunctionCallExpr) (cursor, bool) {
	if len(c.path) == 0 {
		return c, false
	}
	want, ok := c.path[0].index()
	args, fine := r.args(c, x)
	if !ok || !fine {
		return c, false
	}
	for i, a := range args {
		bare, _ := a.value.Unmark()
		if ty := bare.Type(); !bare.IsKnown() || bare.IsNull() || !ty.IsListType() && !ty.IsTupleType() {
			return c, false
		}
		if n := bare.LengthInt(); want >= n {
			want -= n
			continue
		}
		path := join(a.path, []step{indexStep(want)})
		return r.chosen(cursor{c.f, a.x, join(path, c.path[1:])}, x, i)
	}
	return c, false
}

// zipmap finds the value that a key stands for.
func (r *replay) zipmap(c cursor, x *hclsyntax.FunctionCallExpr) (cursor, bool) {
	if len(c.path) == 0 || len(x.Args) != 2 || x.ExpandFinal {
		return c, false
	}
	keys, ds := r.eval(c.f, x.Args[0])
	keys, _ = keys.Unmark()
	if ds.HasErrors() || !keys.IsKnown() || keys.IsNull() || !keys.CanIterateElements() {
		return c, false
	}
	found, n := -1, 0
	for it := keys.ElementIterator(); it.Next(); n++ {
		_, k := it.Element()
		if k, _ = k.Unmark(); !k.IsKnown() || k.IsNull() || !k.Type().IsPrimitiveType() {
			return c, false
		} else if keyStep(k).name() == c.path[0].name() {
			found = n
		}
	}
	if found < 0 {
		return c, false
	}
	at := cursor{c.f, x.Args[1], join([]step{indexStep(found)}, c.path[1:])}
	return r.named(at, fmt.Sprintf("element %d of the values of zipmap", found)), true
}

// named adds the step of the part of an argument that gives a value.
func (r *replay) named(c cursor, text string) cursor {
	r.look(c)
	r.add(&Step{Kind: Choice, Text: text, At: r.place(c.x.Range(), r.hidden(c))})
	return c
}

// picked follows an element through the functions that hand elements on in
// another order, or not all of them.
func (r *replay) picked(c cursor, x *hclsyntax.FunctionCallExpr, name string) (cursor, bool) {
	if len(x.Args) == 0 || x.ExpandFinal {
		return c, false
	}
	list, ds := r.eval(c.f, x.Args[0])
	list, _ = list.Unmark()
	if ds.HasErrors() || !list.IsKnown() || list.IsNull() || !list.CanIterateElements() {
		return c, false
	}
	if name == "one" {
		if list.LengthInt() != 1 {
			return c, false
		}
		if ty := list.Type(); ty.IsSetType() {
			return cursor{c.f, x.Args[0], nil}, len(c.path) == 0
		}
		return r.named(cursor{c.f, x.Args[0], join([]step{indexStep(0)}, c.path)}, "the only element that one has"), true
	}
	if len(c.path) == 0 || list.Type().IsSetType() {
		return c, false
	}
	want, ok := c.path[0].index()
	if !ok {
		return c, false
	}
	var at []step
	switch name {
	case "values":
		if at, ok = nthKey(list, want); !ok {
			return c, false
		}
	case "reverse":
		at = []step{indexStep(list.LengthInt() - 1 - want)}
	case "slice":
		from, ds := r.eval(c.f, x.Args[min(1, len(x.Args)-1)])
		from, _ = from.Unmark()
		if ds.HasErrors() || !from.IsKnown() || from.IsNull() || from.Type() != cty.Number {
			return c, false
		}
		first, _ := from.AsBigFloat().Int64()
		at = []step{indexStep(int(first) + want)}
	case "flatten":
		if at, ok = flatAt(list, &want); !ok {
			return c, false
		}
	default: // compact, distinct
		if at, ok = keptAt(list, want, name); !ok {
			return c, false
		}
	}
	return r.named(cursor{c.f, x.Args[0], join(at, c.path[1:])}, fmt.Sprintf("element %s of what %s is given", pathText(at), name)), true
}

// nthKey is the key of the nth element of a map, in the order of values().
func nthKey(m cty.Value, n int) ([]step, bool) {
	for it := m.ElementIterator(); it.Next(); n-- {
		if k, _ := it.Element(); n == 0 {
			return []step{keyStep(unmark(k))}, true
		}
	}
	return nil, false
}

// flatAt is where the nth element of a flattened list stands in the list.
func flatAt(list cty.Value, n *int) ([]step, bool) {
	i := 0
	for it := list.ElementIterator(); it.Next(); i++ {
		_, el := it.Element()
		el, _ = el.Unmark()
		if !el.IsKnown() {
			return nil, false
		}
		if ty := el.Type(); !el.IsNull() && (ty.IsTupleType() || ty.IsListType()) {
			if in, ok := flatAt(el, n); ok {
				return join([]step{indexStep(i)}, in), true
			}
			continue
		} else if !el.IsNull() && ty.IsSetType() {
			return nil, false
		}
		if *n == 0 {
			return []step{indexStep(i)}, true
		}
		*n--
	}
	return nil, false
}

// keptAt is where the nth element that compact or distinct keeps stands.
func keptAt(list cty.Value, n int, name string) ([]step, bool) {
	var before []cty.Value
	i := 0
	for it := list.ElementIterator(); it.Next(); i++ {
		_, el := it.Element()
		el = unmark(el)
		if !el.IsWhollyKnown() {
			return nil, false
		}
		gone := slices.ContainsFunc(before, el.RawEquals)
		if name == "compact" {
			gone = el.IsNull() || el.Type() == cty.String && el.AsString() == ""
		}
		before = append(before, el)
		if gone {
			continue
		}
		if n == 0 {
			return []step{indexStep(i)}, true
		}
		n--
	}
	return nil, false
}

// same finds the argument of min or max that is the result.
func (r *replay) same(c cursor, x *hclsyntax.FunctionCallExpr) (cursor, bool) {
	whole, ds := r.eval(c.f, x)
	args, ok := r.args(c, x)
	if ds.HasErrors() || !ok || secretAt(whole, nil) {
		return c, false
	}
	for i, a := range args {
		if v := unmark(a.value); v.IsKnown() && v.Type() == cty.Number && v.RawEquals(unmark(whole)) {
			return r.chosen(cursor{c.f, a.x, join(a.path, c.path)}, x, i)
		}
	}
	return c, false
}
