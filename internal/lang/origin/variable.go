package origin

import (
	"slices"

	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// variable continues at the source of a variable's value: the module call, the unit's input, a variable
// file, the environment, a flag, or the default.
func (r *replay) variable(m *eval.Module, name string, path []step, c cursor) cursor {
	v := m.Node.Config.Variables[name]
	if v == nil {
		return r.computed(c)
	}
	label := named(m, "var."+name)
	got, ok := m.Variable(r.in.t, name)
	e := evidence{declared: v.Sensitive}
	if ok {
		e.value, e.path = got, path
	}
	r.weigh(e)
	p, has := part(got, path)
	if has = ok && has; has {
		r.learn(p)
	}
	if m.Parent() != nil {
		return r.input(m, v, label, path)
	}
	in, given := r.in.e.Eval.Input(name)
	if !given || in.Value == cty.NilVal || r.in.defaulted(v, in.Value) {
		return r.defaultOf(v, label, path)
	}
	if r.in.fromUnit(v.Name) {
		if ok && r.optional(v.Settings["type"], v.Defaults, in.Value, got, label, path) {
			return cursor{}
		}
		if way, found := r.in.unitInput(v.Name, path, has, r.secret); found {
			if len(way.Stops) > 0 {
				way.Stops[0].Text = label + pathText(path)
			}
			n := len(r.out.Steps)
			next := r.take(way)
			if d := r.defaultPlace(v); d != nil && len(r.out.Steps) > n {
				r.out.Steps[n].Replaces = append(r.out.Steps[n].Replaces, *d)
			}
			return next
		}
	}
	if in.From == "" && in.At == nil && !in.Value.IsKnown() {
		return r.notGiven(v, label)
	}
	if ok && r.optional(v.Settings["type"], v.Defaults, in.Value, got, label, path) {
		return cursor{}
	}
	return r.given(v, in, label, path)
}

// fromUnit reports whether the value of a root variable comes from the unit's inputs, because no source
// with a higher precedence sets it.
func (r *reader) fromUnit(name string) bool {
	if r.e.Unit == nil {
		return false
	}
	switch l, known := r.e.Layers[name]; l.Kind {
	case source.VarFile, source.Environment, source.Flag, source.Prompt:
		return false
	default:
		return known
	}
}

// unitInput returns the way to the unit's input for a variable. has means that the value of the variable
// contains the requested part, possibly because of a type conversion. If the input does not contain the
// part, the way ends at the nearest part around it, with the reason. If secret is set, the reason does
// not contain names from the value.
func (r *reader) unitInput(name string, path []step, has, secret bool) (Way, bool) {
	input := []step{nameStep("inputs"), nameStep(name)}
	way, ok, ds := r.e.Unit.Part(traversal(join(input, path)))
	if !ok || !ds.HasErrors() || len(path) == 0 {
		return way, ok && !ds.HasErrors()
	}
	if has { // the conversion to the variable's type has added the part
		way, ok, ds = r.e.Unit.Part(traversal(input))
		return way, ok && !ds.HasErrors()
	}
	for n := len(path) - 1; n >= 0; n-- {
		way, ok, some := r.e.Unit.Part(traversal(join(input, path[:n])))
		if !ok || some.HasErrors() || len(way.Stops) == 0 {
			continue
		}
		why := "the value has no such part"
		if !secret {
			why = ds.Errors()[0].Detail
		}
		whole := way.Stops[0]
		whole.Value = cty.NilVal // the value is not that of the requested part
		return Way{Stops: []Stop{whole, {Kind: Failed, Text: why}}}, true
	}
	return Way{}, false
}

// defaulted reports whether a given null means the default of the variable.
func (r *reader) defaulted(v *config.Variable, given cty.Value) bool {
	bare, _ := given.Unmark()
	return !v.Nullable && bare.IsNull() && !v.Required()
}

// input continues at the argument of a module call that sets a variable.
func (r *replay) input(m *eval.Module, v *config.Variable, label string, path []step) cursor {
	call := m.CalledBy()
	s := m.Parent().Node.Config.Setting(call.Config().Body, v.Name)
	if s == nil {
		if v.Required() {
			return r.notGiven(v, label)
		}
		return r.defaultOf(v, label, path)
	}
	c := cursor{inputFrame(m), s.Expr, path}
	given, ds := r.in.eval(c.f, c.x)
	if !ds.HasErrors() {
		if r.in.defaulted(v, given) {
			return r.defaultOf(v, label, path)
		}
		if got, ok := m.Variable(r.in.t, v.Name); ok && r.optional(v.Settings["type"], v.Defaults, given, got, label, path) {
			return cursor{}
		}
	}
	return r.define(ModuleInput, label, s, c)
}

func (r *replay) defaultOf(v *config.Variable, label string, path []step) cursor {
	s := v.Settings["default"]
	if s == nil {
		return r.notGiven(v, label)
	}
	if got := v.Default; got != cty.NilVal {
		raw, diags := s.Expr.Value(nil)
		if !diags.HasErrors() && r.optional(v.Settings["type"], v.Defaults, raw, got, label, path) {
			return cursor{}
		}
	}
	return r.define(Default, label, s, cursor{&frame{}, s.Expr, path})
}

func (r *account) notGiven(v *config.Variable, label string) cursor {
	r.add(&Step{Kind: NotGiven, Text: label + " is required and has no value", At: r.lines.place(v.At, nil)})
	return cursor{}
}

// optional ends the replay at the type of a variable or an output, and returns true, if the requested
// part is the default of an optional attribute that the given value omits. s is the type argument.
func (r *account) optional(s *config.Setting, defaults *typeexpr.Defaults, given, got cty.Value, label string, path []step) bool {
	if defaults == nil || s == nil || len(path) == 0 {
		return false
	}
	g, has := part(given, path)
	bare, _ := g.Unmark()
	if has && !(bare.IsKnown() && bare.IsNull()) {
		return false
	}
	p, has := part(got, path)
	if bare, _ := p.Unmark(); !has || !bare.IsKnown() || bare.IsNull() {
		return false
	}
	r.learn(p)
	c := cursor{&frame{}, optionalDefault(s.Expr, path), nil}
	if c.x == nil {
		c.x = s.Expr
	}
	r.add(&Step{
		Kind: Default, Text: label + pathText(path) + " is the default of an optional attribute",
		At: r.lines.place(c.x.Range(), r.hidden(c)), Replaces: r.replaced(c.f, s, nil),
	})
	return true
}

// optionalDefault returns the optional(…) call with a default for the attribute at a path in a type
// expression, or nil if there is none.
func optionalDefault(x hcl.Expression, path []step) hcl.Expression {
	var found hcl.Expression
	for x != nil {
		call, ok := unwrap(x).(*hclsyntax.FunctionCallExpr)
		if !ok {
			return found
		}
		switch {
		case call.Name == "optional" && len(call.Args) > 0:
			if len(call.Args) == 2 {
				found = call
			}
			x = call.Args[0]
		case call.Name == "object" && len(call.Args) == 1 && len(path) > 0:
			obj, ok := unwrap(call.Args[0]).(*hclsyntax.ObjectConsExpr)
			if !ok {
				return found
			}
			x = nil
			for _, it := range obj.Items {
				if hcl.ExprAsKeyword(it.KeyExpr) == path[0].name() {
					x, path = it.ValueExpr, path[1:]
					break
				}
			}
		case (call.Name == "map" || call.Name == "list" || call.Name == "set") && len(call.Args) == 1 && len(path) > 0:
			x, path = call.Args[0], path[1:]
		default:
			return found
		}
	}
	return found
}

// given continues at the source that sets a root variable: a variable file, a flag or the environment.
func (r *replay) given(v *config.Variable, in eval.Input, label string, path []step) cursor {
	layer, known := r.in.e.Layers[v.Name]
	way, named := r.in.namedBy(v, in, layer)
	if named && layer.Kind != source.Environment {
		r.take(way)
	}
	s := &Step{Kind: givenKind(layer, in), Text: label + pathText(path)}
	if !known && in.From != "" {
		s.Text += ", given by " + in.From
	}
	r.add(s)
	for _, g := range r.in.lost(v.Name) {
		s.Replaces = append(s.Replaces, r.givenPlace(g))
	}
	if r.in.e.Unit != nil {
		if way, ok := r.in.unitInput(v.Name, path, true, r.secret); ok {
			s.Replaces = append(s.Replaces, r.starts(way)...)
		}
	}
	if d := r.defaultPlace(v); d != nil {
		s.Replaces = append(s.Replaces, *d)
	}
	if in.At == nil {
		if known {
			s.At = &SourceLine{Layer: layer.String()}
		}
		if named && layer.Kind == source.Environment {
			return r.take(way)
		}
		return cursor{}
	}
	x, at := valueInFile(r.in.e.Set.File(in.At.Filename), v.Name)
	if x == nil {
		s.At = r.lines.place(*in.At, []source.Range{*in.At})
		return cursor{}
	}
	c := cursor{&frame{}, x, path}
	r.lines.shows(cursor{f: c.f, x: x}, nil)
	s.At = r.lines.place(at, r.hidden(c))
	return c
}

// defaultPlace returns the place of a variable's default, or nil if it has none.
func (r *account) defaultPlace(v *config.Variable) *SourceLine {
	d := v.Settings["default"]
	if d == nil {
		return nil
	}
	p := r.lines.place(d.Range, r.hidden(cursor{x: d.Expr}))
	p.Layer = "default"
	return p
}

// namedBy returns the way to the unit's block that names the variable file, or that sets the environment
// variable.
func (r *reader) namedBy(v *config.Variable, in eval.Input, layer source.Layer) (Way, bool) {
	if r.e.Unit == nil {
		return Way{}, false
	}
	if layer.Kind == source.Flag && slices.ContainsFunc(r.lost(v.Name), func(g Given) bool { return g.Layer.Kind == source.Flag }) {
		return Way{}, false // the flag on the command line has precedence over the block
	}
	name := v.Name
	if in.At != nil {
		name = in.At.Filename
	}
	return r.e.Unit.Given(layer, name)
}

func (r *reader) lost(name string) []Given {
	if r.e.Lost == nil {
		return nil
	}
	return r.e.Lost(name)
}

func (r *account) givenPlace(g Given) SourceLine {
	if g.At == nil {
		return SourceLine{Layer: g.Layer.String()}
	}
	hide := []source.Range(nil)
	if r.secret {
		hide = []source.Range{*g.At}
	}
	p := r.lines.place(*g.At, hide)
	p.Layer = g.Layer.String()
	return *p
}

func givenKind(l source.Layer, in eval.Input) Kind {
	switch l.Kind {
	case source.Environment:
		return Environment
	case source.Flag:
		return Flag
	case source.Prompt:
		return Prompt
	}
	if in.At == nil {
		return Flag
	}
	return VarFile
}

// valueInFile returns the expression of a variable in a variable file, and the range of the whole
// argument. The expression is nil if the file does not set the variable.
func valueInFile(f *source.File, name string) (hcl.Expression, source.Range) {
	if f == nil || f.Bytes == nil {
		return nil, source.Range{}
	}
	var file *hcl.File
	if strings.HasSuffix(f.Path, ".json") {
		file, _ = json.Parse(f.Bytes, f.Path)
	} else {
		file, _ = hclnative.ParseConfig(f.Bytes, f.Path)
	}
	if file == nil {
		return nil, source.Range{}
	}
	attrs, _ := file.Body.JustAttributes()
	if a := attrs[name]; a != nil {
		return a.Expr, a.Range
	}
	return nil, source.Range{}
}
