package origin

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Unit files
//
// The values of a root module's variables may come from a unit, whose files are
// another language with the same expressions. The replay goes on there: a Unit
// says where its parts lead, through imports, includes and merges, and a Scope
// evaluates the expressions on the way. Both tell by a Way what lies between two
// expressions, so that every rule about expressions, and about what is shown,
// stands here alone.

// A Unit is what gives the root module its inputs.
type Unit interface {
	// Part leads to a part of the unit, such as inputs.tags.team. ok is false if
	// the address is none of a unit; ds says that the unit has no such part.
	Part(address hcl.Traversal) (w Way, ok bool, ds diag.List)
	// Given leads to the block that names a variable file, or sets an environment
	// variable, for a command on the unit. ok is false if none does.
	Given(by source.Layer, name string) (w Way, ok bool)
	// Generated leads to what writes a line of a file. ok is false if the unit does
	// not generate it.
	Generated(file, line string) (w Way, ok bool)
}

// A Scope is a unit file, or one that it reads, in one evaluation. Scopes of the
// same evaluation are equal.
type Scope interface {
	// Eval evaluates an expression of the file. names are what iterations around
	// it define.
	Eval(x hcl.Expression, names map[string]cty.Value) (cty.Value, diag.List)
	// Follow leads to what a reference names. ok is false where that is no text.
	Follow(ref hcl.Traversal) (w Way, ok bool)
	// Read leads into the file that a call reads, at a path in it. ok is false for
	// calls that read none.
	Read(call *hclsyntax.FunctionCallExpr, path hcl.Traversal) (w Way, ok bool)
}

// A Way is what lies between two expressions.
type Way struct {
	Stops []Stop
	Next  *Target // where it goes on; nil where it ends
}

// A Target is a part of an expression.
type Target struct {
	In   Scope
	Expr hcl.Expression
	Path hcl.Traversal
}

// A Stop is a definition or block on a way.
type Stop struct {
	Kind     Kind
	Text     string
	At       source.Range
	Layer    *source.Layer
	In       Scope          // with Expr
	Expr     hcl.Expression // what is written there; nil for the header of a block
	Of       hcl.Expression // the whole definition that Expr is an item of; nil: Expr
	Value    cty.Value      // of the part that is asked for, if it is known here; or NilVal
	Path     hcl.Traversal  // with Value: which part of what stands there it is
	Whole    bool           // a block as a whole is asked for
	Replaces []Way          // to what lost against this
	With     []Way          // to what has a part in the value as well
}

// traversal writes steps as a reference.
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

// relative writes steps as the rest of a reference.
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

// unitFrame is where expressions of a unit file stand.
func unitFrame(s Scope) *frame { return &frame{unit: s} }

// take adds the stops of a way and goes on where it leads.
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
	r.layers[s.At.Filename] = s.Layer
	path, _ := steps(s.Path)
	c := cursor{x: s.Expr, path: path}
	if s.Expr != nil {
		c.f = unitFrame(s.In)
		whole := cursor{f: c.f, x: s.Expr}
		if s.Of != nil {
			whole.x = s.Of
		}
		var args *guarded
		if r.names {
			args = &guarded{guard: guard{byName: true}}
		}
		r.shows(whole, args)
	}
	if s.Value != cty.NilVal {
		at := spot{s.At.Filename, s.At.Start.Byte, s.At.End.Byte}
		if len(r.under(at, path)) > 0 {
			r.secret = true
		}
		r.secret = r.secret || secretAt(s.Value, nil)
		r.learn(s.Value)
	}
	if w := s.Expr; w != nil && r.feedsAll(spotOf(c)) {
		r.secret = true
	}
	r.out.Whole = r.out.Whole || s.Whole
	step := &Step{Kind: s.Kind, Text: s.Text}
	switch {
	case s.At.Filename == "" && s.Layer != nil:
		step.At = &Place{Layer: s.Layer.String()}
	case s.At.Filename == "":
	case s.Expr == nil:
		step.At = r.layered(r.header(s.At), s.Layer)
	default:
		step.At = r.layered(r.place(s.At, r.hidden(c)), s.Layer)
	}
	step.Replaces = r.ends(s.Replaces)
	step.With = r.ends(s.With)
	r.add(step)
}

// ends are the places that ways lead to.
func (r *replay) ends(ways []Way) (out []Place) {
	for _, w := range ways {
		sub := r.aside()
		sub.follow(sub.take(w))
		if p := sub.lastPlace(); p != nil {
			out = append(out, *p)
		}
	}
	return out
}

// lands is the place that a cursor leads to, nil if there is none.
func (r *replay) lands(c cursor) *Place {
	sub := r.aside()
	sub.item(c, "")
	sub.follow(c)
	return sub.lastPlace()
}

// aside is a replay that starts here and whose steps are nobody's.
func (r *replay) aside() *replay {
	sub := *r
	sub.out = &Explanation{}
	sub.seen, sub.settings = map[visit]bool{}, map[string][]setting{}
	for file, s := range r.settings {
		sub.settings[file] = s[:len(s):len(s)]
	}
	for v := range r.seen {
		sub.seen[v] = true
	}
	return &sub
}

// lastPlace is the last place of the way in a file, or else the last.
func (r *replay) lastPlace() *Place {
	var found *Place
	for _, s := range r.out.Steps {
		if s.At != nil && s.Kind != Condition && (found == nil || s.At.File != "") {
			found = s.At
		}
	}
	return found
}

// # What feeds sensitive variables
//
// A unit file does not say that an input is secret: the module's variable does.
// So the ways of all inputs of sensitive variables are followed first, and what
// lies on them is taken for secret wherever it is met again.

// fedTexts are the values that feed sensitive variables, and where they stand.
type fedTexts struct {
	secrets
	at   []source.Range
	open map[spot]bool // what is the value of a variable that is not sensitive; nil: not looked at yet
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

// feeds follows the inputs of sensitive variables.
func (r *replay) feeds() {
	if r.e.Unit == nil || r.e.Eval == nil {
		return
	}
	out, texts := map[spot][][]step{}, &fedTexts{}
	for _, v := range r.e.Eval.Root.Node.Config.Variables {
		if !v.Sensitive {
			continue
		}
		way, ok, ds := r.e.Unit.Part(inputAddress(v.Name))
		if !ok || ds.HasErrors() {
			continue
		}
		sub := &replay{
			t: r.t, e: r.e, out: &Explanation{}, seen: map[visit]bool{}, settings: map[string][]setting{}, secret: true,
			layers: map[string]*source.Layer{}, texts: texts,
		}
		sub.trace(way, out)
	}
	r.fed, r.texts = out, texts
}

// trace follows a way, and those that it hides, and notes what lies on them.
func (r *replay) trace(w Way, out map[spot][][]step) {
	c := r.take(w)
	for i := range w.Stops {
		s := &w.Stops[i]
		if path, _ := steps(s.Path); s.Value != cty.NilVal {
			at := spot{s.At.Filename, s.At.Start.Byte, s.At.End.Byte}
			out[at] = append(out[at], path)
		}
		for _, more := range append(append([]Way{}, s.Replaces...), s.With...) {
			r.aside().trace(more, out)
		}
	}
	r.onVisit = func(c cursor) {
		out[spotOf(c)] = append(out[spotOf(c)], c.path)
		if len(c.path) == 0 && !isReference(c.x) {
			r.texts.at = append(r.texts.at, c.x.Range())
		}
		if v, ds := r.eval(c.f, c.x); !ds.HasErrors() {
			if v, ok := part(v, c.path); ok {
				r.texts.add(v, true)
			}
		}
	}
	r.fedBy = out
	r.follow(c)
}

// feedsFrom follows what a sensitive value is computed from. Of several references
// those that are the value of another variable, too, which is not sensitive, are
// shown in every plan: the host in a connection string stays what it is.
func (r *replay) feedsFrom(c cursor) {
	refs := c.x.Variables()
	for _, ref := range refs {
		if way, ok := c.f.unit.Follow(ref); ok && (len(refs) == 1 || !r.isOpen(way)) {
			r.aside().trace(way, r.fedBy)
		}
	}
}

// isOpen reports whether what a way leads to is the value of a variable that is not
// sensitive.
func (r *replay) isOpen(w Way) bool {
	if r.texts.open == nil {
		r.texts.open = map[spot]bool{}
		for _, v := range r.e.Eval.Root.Node.Config.Variables {
			if way, ok, ds := r.e.Unit.Part(inputAddress(v.Name)); !v.Sensitive && ok && !ds.HasErrors() {
				r.texts.open[r.endOf(way)] = true
			}
		}
	}
	at := r.endOf(w)
	return at != spot{} && r.texts.open[at]
}

// endOf is the last expression on a way.
func (r *replay) endOf(w Way) (at spot) {
	sub := r.aside()
	sub.onVisit = func(c cursor) { at = spotOf(c) }
	sub.fedBy = nil
	sub.follow(sub.take(w))
	return at
}

func inputAddress(name string) hcl.Traversal {
	return hcl.Traversal{hcl.TraverseRoot{Name: "inputs"}, hcl.TraverseIndex{Key: cty.StringVal(name)}}
}

// under lists the parts of what is asked for that feed a sensitive variable, by
// their paths in it; an empty path is all of it.
func (r *replay) under(at spot, path []step) (out [][]step) {
	for _, fed := range r.fed[at] {
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

// feedsAll reports whether all of an expression feeds a sensitive variable.
func (r *replay) feedsAll(at spot) bool {
	for _, fed := range r.fed[at] {
		if len(fed) == 0 {
			return true
		}
	}
	return false
}

// marked marks what of an expression's value feeds a sensitive variable: as a whole,
// or by an item of an object that is written out.
func (r *replay) marked(x hcl.Expression, v cty.Value) cty.Value {
	if len(r.fed) == 0 || x == nil {
		return v
	}
	var paths []cty.Path
	for _, fed := range r.fed[spotOf(cursor{x: x})] {
		paths = append(paths, pathIn(v, fed))
	}
	return value.MarkPaths(v, value.Sensitive, append(paths, r.fedItems(x, nil)...)...)
}

// fedItems are the paths of the items of an object constructor that feed a
// sensitive variable.
func (r *replay) fedItems(x hcl.Expression, at cty.Path) (out []cty.Path) {
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
		if r.feedsAll(spotOf(cursor{x: kv.Value})) {
			out = append(out, p)
			continue
		}
		out = append(out, r.fedItems(kv.Value, p)...)
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

// withoutFed marks in a value that several files have a part in what feeds a
// sensitive variable: inputs by the names of variables, and parts by what they are.
func (r *replay) withoutFed(v cty.Value) cty.Value {
	if v == cty.NilVal || r.e.Unit == nil || v.Type().IsPrimitiveType() {
		return v
	}
	if r.texts != nil && (len(r.texts.texts) > 0 || len(r.texts.others) > 0) {
		long := &secrets{texts: slices.DeleteFunc(slices.Clone(r.texts.texts), func(s string) bool { return len(s) < shortest })}
		v, _ = cty.Transform(v, func(_ cty.Path, in cty.Value) (cty.Value, error) { // the function returns no error
			if long.repeats(in) {
				return in.Mark(value.Sensitive), nil
			}
			return in, nil
		})
	}
	bare, _ := v.Unmark()
	if !r.inputs || !bare.IsKnown() || bare.IsNull() || !bare.Type().IsObjectType() {
		return v
	}
	for name := range bare.Type().AttributeTypes() {
		secret := secretName(name)
		if r.e.Eval != nil {
			d := r.e.Eval.Root.Node.Config.Variables[name]
			secret = d != nil && d.Sensitive
		}
		if secret {
			v = value.MarkPaths(v, value.Sensitive, cty.GetAttrPath(name))
		}
	}
	return v
}

// generated goes on at what writes the file in which the way ends, if the unit
// generates it.
func (r *replay) generated() {
	last := r.last()
	if r.e.Unit == nil || last == nil || last.At == nil || last.At.File == "" {
		return
	}
	f := r.e.Set.File(last.At.File)
	if f == nil || f.Bytes == nil {
		return
	}
	if way, ok := r.e.Unit.Generated(last.At.File, f.Line(last.At.Line)); ok {
		before := r.value
		r.follow(r.take(way))
		if before != cty.NilVal {
			r.value = before
		}
	}
}
