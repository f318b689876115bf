package origin

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/zclconf/go-cty/cty"
)

// reference continues at the definition to which a traversal refers.
func (r *replay) reference(c cursor, ref hcl.Traversal) cursor {
	path, ok := steps(ref)
	if !ok || c.f.mod == nil && c.f.unit == nil {
		return r.computed(c)
	}
	path = join(path, c.path)
	if it := c.f.iterator(path[0].name()); it != nil {
		return r.iterated(c, it, it.path(path))
	}
	if c.f.unit != nil {
		if way, ok := c.f.unit.Follow(traversal(path)); ok {
			return r.take(way)
		}
		return r.computed(c)
	}
	if len(path) < 2 {
		return r.computed(c)
	}
	name, rest := path[1].name(), path[2:]
	switch path[0].name() {
	case "local":
		return r.local(c.f.mod, name, rest, c)
	case "var":
		return r.variable(c.f.mod, name, rest, c)
	case "module":
		return r.module(c, name, rest)
	case "each", "count":
		return r.repeated(c, path)
	case "path", "terraform", "tofu":
		return r.context(c, path)
	case "self":
		if c.f.self == nil {
			return r.computed(c)
		}
		return r.argument(c.f.self, c.f.key, path[1:])
	}
	return r.resource(c, path)
}

func (r *replay) local(m *eval.Module, name string, path []step, c cursor) cursor {
	l := m.Node.Config.Locals[name]
	if l == nil || l.Value == nil {
		return r.computed(c)
	}
	return r.define(Local, named(m, "local."+name), l.Value, cursor{moduleFrame(m), l.Value.Expr, path})
}

func (r *replay) output(m *eval.Module, name string, path []step, c cursor) cursor {
	o := m.Node.Config.Outputs[name]
	if o == nil {
		return r.computed(c)
	}
	if o.Value == nil { // the block has an error, which a tolerant caller such as an editor has reported
		r.add(&Step{Kind: NotSet, Text: named(m, "output."+name) + ".value is not set", At: r.lines.header(o.At)})
		return cursor{}
	}
	r.weigh(evidence{declared: o.Sensitive})
	if o.Defaults != nil {
		given, ds := r.in.eval(moduleFrame(m), o.Value.Expr)
		if got, ok := m.Output(r.in.t, name); ok && !ds.HasErrors() && r.optional(o.Settings["type"], o.Defaults, given, got, named(m, "output."+name), path) {
			return cursor{}
		}
	}
	return r.define(Output, named(m, "output."+name), o.Value, cursor{moduleFrame(m), o.Value.Expr, path})
}

// named returns the address of an object in a module instance.
func named(m *eval.Module, what string) string {
	if m.Addr == "" {
		return what
	}
	return string(m.Addr) + "." + what
}

// module follows module.NAME[KEY].OUTPUT.
func (r *replay) module(c cursor, name string, path []step) cursor {
	call := c.f.mod.Call(name)
	switch {
	case call == nil:
		return r.computed(c)
	case call.Node == nil:
		return r.end(Unknown, c, named(c.f.mod, "module."+name)+" is not installed")
	}
	child, path := r.in.child(call, path)
	if child == nil || len(path) == 0 || child.Node.Config.Outputs[path[0].name()] == nil {
		return r.computed(c)
	}
	return r.output(child, path[0].name(), path[1:], c)
}

// child returns the module instance that a path selects, and the rest of the path. The instance is nil if
// the path needs a key and does not contain one that exists.
func (r *reader) child(call *eval.Call, path []step) (*eval.Module, []step) {
	ch, ok := call.Children(r.t)
	repeat, forEach := repetition(call.Config().Repeat)
	if repeat == nil {
		if ok && len(ch.All) == 1 {
			return ch.All[0], path
		}
		return call.AnyChild(), path
	}
	k, fits := keyOf(path, forEach)
	if !fits {
		return nil, path
	}
	if ok {
		if m := ch.Get(k); m != nil {
			return m, path[1:]
		}
		if len(ch.All) > 0 && !ch.Unknown {
			return nil, path
		}
	}
	return call.AnyChild(), path[1:]
}

// keyOf converts the first step of a path to an instance key.
func keyOf(path []step, forEach bool) (addr.Key, bool) {
	if len(path) == 0 {
		return addr.Key{}, false
	}
	if forEach {
		return addr.Str(path[0].name()), true
	}
	i, ok := path[0].index()
	return addr.Int(i), ok
}

// resource follows a reference to a resource into its block.
func (r *replay) resource(c cursor, path []step) cursor {
	a, rest, ok := resourceAddr(path)
	if !ok {
		return r.computed(c)
	}
	res := c.f.mod.Resource(a)
	if res == nil {
		return r.computed(c)
	}
	var k addr.Key
	if repeat, forEach := repetition(res.Config().Repeat); repeat != nil {
		if k, ok = keyOf(rest, forEach); !ok {
			return r.computed(c)
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return r.computed(c)
	}
	return r.argument(res, k, rest)
}

// resourceAddr splits a path into the address of a resource and the rest.
func resourceAddr(path []step) (a addr.Resource, rest []step, ok bool) {
	skip := 1
	switch path[0].name() {
	case "data":
		a.Mode = addr.Data
	case "ephemeral":
		a.Mode = addr.Ephemeral
	case "resource":
	default:
		skip = 0
	}
	if len(path) < skip+2 {
		return a, nil, false
	}
	a.Type, a.Name = path[skip].name(), path[skip+1].name()
	return a, path[skip+2:], true
}

// iterated continues from the key or the value of an iteration to the collection.
func (r *replay) iterated(c cursor, it *iteration, path []step) cursor {
	at := cursor{it.at, it.forEach, nil}
	if len(path) == 0 {
		return r.computed(c)
	}
	v, ds := r.in.eval(it.at, it.forEach)
	bare, _ := v.Unmark()
	set := !ds.HasErrors() && bare.IsKnown() && bare.Type().IsSetType()
	if path[0].name() == "value" && !set && it.key != cty.NilVal {
		at.path = join([]step{keyStep(it.key)}, path[1:])
		r.look(at)
		r.add(&Step{Kind: Repetition, Text: it.named("value") + " is an element of " + it.collection(), At: r.lines.place(it.forEach.Range(), r.hidden(at))})
		return at
	}
	return r.taken(at, it.named(path[0].name()), v, it.n, path)
}

// collection returns the name of the collection in texts.
func (it *iteration) collection() string {
	if it.name != "" {
		return "for_each"
	}
	return "this collection"
}

// taken adds a step for the collection that contains a key or an element of a set. It continues at the
// item if it can be located.
func (r *replay) taken(at cursor, name string, coll cty.Value, n int, path []step) cursor {
	r.weigh(evidence{value: coll})
	r.add(&Step{Kind: Repetition, Text: name + " is taken from this collection", At: r.lines.place(at.x.Range(), r.hidden(at))})
	el, ok := nth(coll, n, path[0].name() == "key")
	if v, has := part(el, path[1:]); ok && has {
		r.learn(v)
	}
	if bare, _ := coll.Unmark(); path[0].name() == "key" && (bare.Type().IsObjectType() || bare.Type().IsMapType()) && ok {
		return cursor{at.f, at.x, []step{keyStep(unmark(el))}} // the item with the key
	}
	if bare, _ := el.Unmark(); ok && !r.secret && !bare.IsNull() && bare.Type().IsPrimitiveType() {
		return r.inSet(at, keyStep(bare).name())
	}
	r.from(at)
	return cursor{}
}

// nth returns element n of a collection, or its key. ok is false if it is unknown.
func nth(coll cty.Value, n int, key bool) (cty.Value, bool) {
	bare, _ := coll.Unmark()
	if !bare.IsKnown() || bare.IsNull() || !bare.CanIterateElements() {
		return cty.DynamicVal, false
	}
	for it := bare.ElementIterator(); it.Next(); n-- {
		k, v := it.Element()
		switch {
		case n > 0:
		case key && !bare.Type().IsSetType():
			return k, k.IsKnown()
		default:
			return v, v.IsKnown()
		}
	}
	return cty.DynamicVal, false
}

// repeated follows each.value, each.key and count.index.
func (r *replay) repeated(c cursor, path []step) cursor {
	f := c.f
	name := path[0].name() + "." + path[1].name()
	if f.repeat == nil {
		return r.computed(c)
	}
	x := f.repeat.Expr
	up := &frame{mod: f.mod, scope: f.mod}
	at := cursor{up, x, nil}
	if f.key == (addr.Key{}) {
		p := r.lines.place(f.repeat.Range, r.hidden(at))
		r.add(&Step{Kind: Repetition, Text: fmt.Sprintf("%s has a value for each instance; name one to see where it comes from", name), At: p, Replaces: r.replaced(up, f.repeat, nil)})
		r.each = true
		r.from(at)
		return cursor{}
	}
	v, ds := r.in.eval(up, x)
	bare, _ := v.Unmark()
	fromSet := !ds.HasErrors() && bare.IsKnown() && bare.Type().IsSetType()
	if name == "each.value" && !fromSet {
		at.path = join([]step{keyStep(f.key.Value())}, path[2:])
		return r.define(Repetition, "each.value is for_each", f.repeat, at)
	}
	if f.key.Kind != addr.NoKey {
		r.learn(f.key.Value())
	}
	r.add(&Step{
		Kind: Repetition, Text: fmt.Sprintf("%s is the key of the instance %s", name, f.key),
		At: r.lines.place(f.repeat.Range, r.hidden(at)), Replaces: r.replaced(up, f.repeat, nil),
	})
	switch {
	case f.key.Kind != addr.StringKey:
		r.from(at)
		return cursor{}
	case fromSet:
		return r.inSet(at, f.key.Str)
	}
	at.path = []step{keyStep(f.key.Value())} // the item with the key
	return at
}

// inSet continues at the expression of an element of a set, if the set is a list constructor.
func (r *replay) inSet(c cursor, text string) cursor {
	x := unwrap(c.x)
	if call, ok := x.(*hclsyntax.FunctionCallExpr); ok && baseName(call.Name) == "toset" && len(call.Args) == 1 {
		x = unwrap(call.Args[0])
	}
	if isReference(x) {
		return c
	}
	if list, ok := x.(*hclsyntax.TupleConsExpr); ok {
		for _, el := range list.Exprs {
			v, ds := r.in.eval(c.f, el)
			if bare, _ := v.Unmark(); !ds.HasErrors() && bare.IsKnown() && !bare.IsNull() && bare.Type().IsPrimitiveType() && keyStep(bare).name() == text {
				return r.item(cursor{c.f, el, nil}, "element "+addr.Quote(text))
			}
		}
	}
	r.from(c)
	return cursor{}
}

// context ends the replay at a value that the run determines, such as terraform.workspace.
func (r *replay) context(c cursor, path []step) cursor {
	r.look(c)
	why := map[string]string{
		"module": "the directory of the module", "root": "the directory of the root module", "cwd": "the directory that the program was started in",
		"workspace": "the selected workspace", "applying": "whether this is an apply",
	}[path[1].name()]
	if why == "" {
		return r.computed(c)
	}
	return r.end(Context, c, fmt.Sprintf("%s.%s is %s", path[0].name(), path[1].name(), why))
}
