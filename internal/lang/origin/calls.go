package origin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// baseName returns the name of a function without the namespace "core::".
func baseName(name string) string { return strings.TrimPrefix(name, "core::") }

// # Function calls
//
// Some functions return a part of an argument instead of a new value: merge, try, element, and so on.
// The replay of such a call continues in that argument. A pick contains the argument and the step that
// the explanation shows.

// A call is a function call at a cursor.
type call struct {
	in *reader
	c  cursor // c.x is the call
	x  *hclsyntax.FunctionCallExpr
}

// A pick is the argument that contains the requested part of a call's value.
type pick struct {
	at   cursor   // cursor where the replay continues; the replay ends there if kind is Unknown or Merged
	kind Kind     // kind of the step; "" adds no step
	text string   // text of the step
	lost []cursor // arguments with the same part that are not used
	with []cursor // arguments that contribute to the value
}

// pick returns the argument that contains the requested part. ok is false if the function computes a
// new value, or if the argument cannot be determined.
func (r call) pick() (p pick, ok bool) {
	name := baseName(r.x.Name)
	switch name {
	case "merge":
		return r.merge()
	case "deep_merge":
		return r.deepMerge()
	case "sensitive", "nonsensitive", "tomap", "tolist", "toset", "tostring", "tonumber", "tobool", "ephemeralasnull", "convert":
		if len(r.x.Args) == 0 || name == "toset" && len(r.c.path) > 0 {
			return p, false
		}
		return r.argument(0, r.c.path), true
	case "try":
		return r.first(func(cty.Value) bool { return true })
	case "coalesce":
		return r.first(func(v cty.Value) bool { return !v.IsNull() && !(v.Type() == cty.String && v.AsString() == "") })
	case "coalescelist":
		return r.first(func(v cty.Value) bool { return !v.IsNull() && v.CanIterateElements() && v.LengthInt() > 0 })
	case "lookup":
		return r.lookup()
	case "element":
		return r.element()
	case "concat":
		return r.concat()
	case "zipmap":
		return r.zipmap()
	case "one", "values", "flatten", "slice", "reverse", "compact", "distinct":
		return r.ofList(name)
	case "min", "max":
		return r.same()
	}
	return p, false
}

// argument returns a pick of argument i without a step.
func (r call) argument(i int, path []step) pick { return pick{at: cursor{r.c.f, r.x.Args[i], path}} }

// chosen returns a pick of argument i with a step.
func (r call) chosen(at cursor, i int, lost ...cursor) (pick, bool) {
	return pick{at: at, kind: Choice, text: fmt.Sprintf("argument %d of %s wins", i+1, r.x.Name), lost: lost}, true
}

// arg is one argument of a call. If the last argument is expanded (list...), each of its elements is an
// arg with the path of the element.
type arg struct {
	x     hcl.Expression
	path  []step
	value cty.Value
}

// args evaluates the arguments of a call. ok is false if one of them has an error, or if an expanded
// list is unknown.
func (r call) args() (out []arg, ok bool) {
	c, x := r.c, r.x
	for i, a := range x.Args {
		v, ds := r.in.eval(c.f, a)
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

// merge picks the last argument that contains the first step of the path. Earlier arguments that
// contain the whole path are replaced.
func (r call) merge() (pick, bool) {
	c := r.c
	if len(c.path) == 0 {
		return pick{}, false
	}
	args, ok := r.args()
	if !ok {
		return pick{}, false
	}
	winner, lost := -1, []cursor(nil)
	for i := len(args) - 1; i >= 0; i-- {
		a := args[i]
		bare, _ := a.value.Unmark()
		if winner < 0 && !bare.IsKnown() {
			return r.unknown(a.x, nil, i)
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
		return pick{}, false
	}
	a := args[winner]
	return r.chosen(cursor{c.f, a.x, join(a.path, c.path)}, winner, lost...)
}

// unknown ends the replay at an argument with an unknown value.
func (r call) unknown(x hcl.Expression, path []step, i int) (pick, bool) {
	return pick{at: cursor{r.c.f, x, path}, kind: Unknown, text: fmt.Sprintf("argument %d of %s is not known, so it may or may not give the value", i+1, r.x.Name)}, true
}

// deepMerge picks the arguments that contribute to the value. The last one has precedence, but maps are
// merged by key and lists are concatenated.
func (r call) deepMerge() (pick, bool) {
	c, x := r.c, r.x
	if len(c.path) == 0 {
		return pick{}, false
	}
	args, ok := r.args()
	if !ok {
		return pick{}, false
	}
	to := len(c.path) // length of the path up to the first list, which is concatenated from several arguments
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
	var givers []giver // last argument first
	for i := len(args) - 1; i >= 0; i-- {
		bare, _ := args[i].value.Unmark()
		if !bare.IsKnown() && len(givers) == 0 {
			return r.unknown(args[i].x, nil, i)
		}
		if v, has := part(args[i].value, c.path[:to]); has && bare.IsKnown() && !unmark(v).IsNull() {
			givers = append(givers, giver{i, unmark(v)})
		}
	}
	if len(givers) == 0 {
		return pick{}, false
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
		return r.chosen(at(last), last.i, lost...)
	case to < len(c.path) && (ty.IsTupleType() || ty.IsListType()):
		want, _ := c.path[to].index()
		for i := len(givers) - 1; i >= 0; i-- {
			g := givers[i]
			if !g.v.IsKnown() || !g.v.CanIterateElements() {
				return pick{}, false
			}
			if n := g.v.LengthInt(); want >= n {
				want -= n
				continue
			}
			path := join(args[g.i].path, join(c.path[:to], []step{indexStep(want)}))
			return r.chosen(cursor{c.f, args[g.i].x, join(path, c.path[to+1:])}, g.i)
		}
		return pick{}, false
	case len(givers) == 1:
		return r.chosen(at(last), last.i)
	}
	out := pick{at: c, kind: Merged, text: fmt.Sprintf("%d arguments of %s have a part in it", len(givers), x.Name)}
	for _, g := range givers {
		out.with = append(out.with, at(g))
	}
	return out, true
}

// first picks the first argument whose value accept returns true for. try skips arguments with errors.
func (r call) first(accept func(cty.Value) bool) (pick, bool) {
	c, x := r.c, r.x
	if x.ExpandFinal {
		return pick{}, false
	}
	for i, a := range x.Args {
		v, ds := r.in.eval(c.f, a)
		if ds.HasErrors() {
			if baseName(x.Name) == "try" {
				continue
			}
			return pick{}, false
		}
		at := cursor{c.f, a, c.path}
		bare, _ := v.Unmark()
		switch {
		case secretAt(v, nil) && baseName(x.Name) != "try":
			return pick{}, false // the choice would reveal something about the secret value
		case !bare.IsKnown():
			return r.unknown(a, r.c.path, i)
		case accept(bare):
			return r.chosen(at, i)
		}
	}
	return pick{}, false
}

func (r call) lookup() (pick, bool) {
	c, x := r.c, r.x
	if len(x.Args) < 2 || x.ExpandFinal {
		return pick{}, false
	}
	from, ds := r.in.eval(c.f, x.Args[0])
	key, more := r.in.eval(c.f, x.Args[1])
	if ds.HasErrors() || more.HasErrors() || !key.IsKnown() || key.IsNull() || key.IsMarked() || !unmark(from).IsKnown() {
		return pick{}, false
	}
	if _, has := part(from, []step{keyStep(key)}); has {
		return r.chosen(cursor{c.f, x.Args[0], join([]step{keyStep(key)}, c.path)}, 0)
	}
	if len(x.Args) == 3 {
		return r.chosen(cursor{c.f, x.Args[2], c.path}, 2)
	}
	return pick{}, false
}

func (r call) element() (pick, bool) {
	c, x := r.c, r.x
	if len(x.Args) != 2 || x.ExpandFinal {
		return pick{}, false
	}
	list, ds := r.in.eval(c.f, x.Args[0])
	key, more := r.in.eval(c.f, x.Args[1])
	if ds.HasErrors() || more.HasErrors() {
		return pick{}, false
	}
	list, _ = list.Unmark()
	if ty := list.Type(); !list.IsKnown() || list.IsNull() || !ty.IsListType() && !ty.IsTupleType() || list.LengthInt() == 0 ||
		!key.IsKnown() || key.IsNull() || key.IsMarked() || key.Type() != cty.Number {
		return pick{}, false
	}
	i, accuracy := key.AsBigFloat().Int64()
	if accuracy != 0 {
		return pick{}, false
	}
	n := int64(list.LengthInt())
	i = (i%n + n) % n
	return r.argument(0, join([]step{indexStep(int(i))}, c.path)), true
}

// concat picks the list that contains the requested element.
func (r call) concat() (pick, bool) {
	c := r.c
	if len(c.path) == 0 {
		return pick{}, false
	}
	want, ok := c.path[0].index()
	args, fine := r.args()
	if !ok || !fine {
		return pick{}, false
	}
	for i, a := range args {
		bare, _ := a.value.Unmark()
		if ty := bare.Type(); !bare.IsKnown() || bare.IsNull() || !ty.IsListType() && !ty.IsTupleType() {
			return pick{}, false
		}
		if n := bare.LengthInt(); want >= n {
			want -= n
			continue
		}
		path := join(a.path, []step{indexStep(want)})
		return r.chosen(cursor{c.f, a.x, join(path, c.path[1:])}, i)
	}
	return pick{}, false
}

// zipmap picks the value with the requested key.
func (r call) zipmap() (pick, bool) {
	c, x := r.c, r.x
	if len(c.path) == 0 || len(x.Args) != 2 || x.ExpandFinal {
		return pick{}, false
	}
	keys, ds := r.in.eval(c.f, x.Args[0])
	keys, _ = keys.Unmark()
	if ds.HasErrors() || !keys.IsKnown() || keys.IsNull() || !keys.CanIterateElements() {
		return pick{}, false
	}
	found, n := -1, 0
	for it := keys.ElementIterator(); it.Next(); n++ {
		_, k := it.Element()
		if k, _ = k.Unmark(); !k.IsKnown() || k.IsNull() || !k.Type().IsPrimitiveType() {
			return pick{}, false
		} else if keyStep(k).name() == c.path[0].name() {
			found = n
		}
	}
	if found < 0 {
		return pick{}, false
	}
	at := cursor{c.f, x.Args[1], join([]step{indexStep(found)}, c.path[1:])}
	return r.named(at, fmt.Sprintf("element %d of the values of zipmap", found)), true
}

// named returns a pick with the given text.
func (r call) named(c cursor, text string) pick { return pick{at: c, kind: Choice, text: text} }

// ofList picks an element for functions that return the elements of a collection in another order, or
// some of them.
func (r call) ofList(name string) (pick, bool) {
	c, x := r.c, r.x
	if len(x.Args) == 0 || x.ExpandFinal {
		return pick{}, false
	}
	list, ds := r.in.eval(c.f, x.Args[0])
	list, _ = list.Unmark()
	if ds.HasErrors() || !list.IsKnown() || list.IsNull() || !list.CanIterateElements() {
		return pick{}, false
	}
	if name == "one" {
		if list.LengthInt() != 1 {
			return pick{}, false
		}
		if ty := list.Type(); ty.IsSetType() {
			return r.argument(0, nil), len(c.path) == 0
		}
		return r.named(cursor{c.f, x.Args[0], join([]step{indexStep(0)}, c.path)}, "the only element that one has"), true
	}
	if len(c.path) == 0 || list.Type().IsSetType() {
		return pick{}, false
	}
	want, ok := c.path[0].index()
	if !ok {
		return pick{}, false
	}
	var at []step
	switch name {
	case "values":
		if at, ok = nthKey(list, want); !ok {
			return pick{}, false
		}
	case "reverse":
		at = []step{indexStep(list.LengthInt() - 1 - want)}
	case "slice":
		from, ds := r.in.eval(c.f, x.Args[min(1, len(x.Args)-1)])
		from, _ = from.Unmark()
		if ds.HasErrors() || !from.IsKnown() || from.IsNull() || from.Type() != cty.Number {
			return pick{}, false
		}
		first, _ := from.AsBigFloat().Int64()
		at = []step{indexStep(int(first) + want)}
	case "flatten":
		if at, ok = flatAt(list, &want); !ok {
			return pick{}, false
		}
	default: // compact, distinct
		if at, ok = keptAt(list, want, name); !ok {
			return pick{}, false
		}
	}
	return r.named(cursor{c.f, x.Args[0], join(at, c.path[1:])}, fmt.Sprintf("element %s of what %s is given", pathText(at), name)), true
}

// nthKey returns the key of element n of a map, in the order of values().
func nthKey(m cty.Value, n int) ([]step, bool) {
	for it := m.ElementIterator(); it.Next(); n-- {
		if k, _ := it.Element(); n == 0 {
			return []step{keyStep(unmark(k))}, true
		}
	}
	return nil, false
}

// flatAt returns the path, in a nested list, of element n of the flattened list. It decrements n for
// each element before that one.
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

// keptAt returns the path, in a list, of element n of the result of compact or distinct.
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

// same picks the argument of min or max that equals the result.
func (r call) same() (pick, bool) {
	c, x := r.c, r.x
	whole, ds := r.in.eval(c.f, x)
	args, ok := r.args()
	if ds.HasErrors() || !ok || secretAt(whole, nil) {
		return pick{}, false
	}
	for i, a := range args {
		if v := unmark(a.value); v.IsKnown() && v.Type() == cty.Number && v.RawEquals(unmark(whole)) {
			return r.chosen(cursor{c.f, a.x, join(a.path, c.path)}, i)
		}
	}
	return pick{}, false
}
