package origin

import (
	"fmt"
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
		return r.merge(c, x, 1)
	case "deep_merge":
		return r.merge(c, x, len(c.path))
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
	}
	return c, false
}

// chosen adds the step of the argument that won.
func (r *replay) chosen(c cursor, x *hclsyntax.FunctionCallExpr, i int) (cursor, bool) {
	r.look(c)
	at := c.x.Range()
	r.add(&Step{
		Kind: Choice, Text: fmt.Sprintf("argument %d of %s wins", i+1, x.Name),
		At: r.place(at, r.hidden(c)),
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

// merge finds the last argument that has the first steps of the path.
func (r *replay) merge(c cursor, x *hclsyntax.FunctionCallExpr, n int) (cursor, bool) {
	if len(c.path) == 0 {
		return c, false
	}
	args, ok := r.args(c, x)
	if !ok {
		return c, false
	}
	for i := len(args) - 1; i >= 0; i-- {
		a := args[i]
		bare, _ := a.value.Unmark()
		if !bare.IsKnown() {
			at := cursor{c.f, a.x, nil}
			return r.end(Undecided, at, fmt.Sprintf("argument %d of %s is not known, so whether it gives the value cannot be told", i+1, x.Name)), true
		}
		v, has := part(a.value, c.path[:n])
		if has && (n == 1 || !unmark(v).IsNull()) {
			return r.chosen(cursor{c.f, a.x, join(a.path, c.path)}, x, i)
		}
	}
	return c, false
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
			return r.end(Undecided, at, fmt.Sprintf("argument %d of %s is not known, so whether it gives the value cannot be told", i+1, x.Name)), true
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
