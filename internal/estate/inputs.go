package estate

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/fetch"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Values are the values of a module's variables for a unit: those that the user
// gives by other ways, then the unit's inputs. waits are the inputs that hold
// something unknown.
func (e *Estate) values(t *demand.Task, u *Unit, root *config.Module) (values map[string]engine.InputValue, waits []*unit.Setting, ds diag.List) {
	declared := root.Variables
	values = map[string]engine.InputValue{}
	settings, ds := u.Inputs(t, func(name string) bool { return declared[name] != nil })
	for _, s := range settings {
		if s.Name == "" { // the inputs as a whole are not known
			for name := range declared {
				values[name] = engine.InputValue{Value: cty.DynamicVal, At: s.At}
			}
			waits = append(waits, s)
			continue
		}
		if !s.Value.IsWhollyKnown() {
			waits = append(waits, s)
		}
		in, more := inputOf(declared[s.Name], s.Value, s.At, s.Layer)
		ds = append(ds, more...)
		values[s.Name] = in
	}
	given, more := e.given(u, declared)
	ds = append(ds, more...)
	maps.Copy(values, given)
	for name := range given {
		waits = slices.DeleteFunc(waits, func(w *unit.Setting) bool { return w.Name == name })
	}
	return values, waits, ds
}

// given are the values that come by other ways than inputs.
func (e *Estate) given(u *Unit, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	out := map[string]engine.InputValue{}
	at := Folder{Env: e.environ(u)}
	if p := u.place; p != nil && p.hasValues() {
		at.Dir, at.Files = p.dir, p.files
	}
	if e.o.Host.Values != nil {
		return e.o.Host.Values(at, u.extra(e.o.Request.Command).vars, declared)
	}
	for name := range declared {
		if text, ok := at.Env.Lookup("TF_VAR_" + name); ok {
			out[name] = engine.InputValue{Text: &text, From: source.Layer{Kind: source.Environment}}
		}
	}
	return out, nil
}

// hasValues reports whether there are variable files that are taken by themselves.
func (p *place) hasValues() bool {
	entries, err := p.files.ReadDir(".")
	if err != nil {
		return false
	}
	for _, en := range entries {
		if isValues(en.Name()) {
			return true
		}
	}
	return false
}

// inputOf is an input as the value of a variable. What passing it through the
// environment allowed stays allowed: text for a variable that is not primitive is
// parsed as an expression, a string variable or one without a type gets what is not
// primitive as JSON text, and one without a type all else as text.
func inputOf(v *config.Variable, val cty.Value, at *source.Range, layer *source.Layer) (engine.InputValue, diag.List) {
	in := engine.InputValue{Value: val, At: at}
	if layer != nil {
		in.From = *layer
	}
	bare, marks := val.Unmark()
	if v.Literal && v.Type == cty.DynamicPseudoType && bare.Type() != cty.String && (bare.Type().IsPrimitiveType() || !bare.IsKnown()) {
		in.Value = asText(bare).WithMarks(marks)
		return in, nil
	}
	if !bare.IsKnown() || bare.IsNull() {
		return in, nil
	}
	switch {
	case v.Literal && (v.Type == cty.DynamicPseudoType || v.Type == cty.String) && !bare.Type().IsPrimitiveType():
		return jsonText(v, in)
	case !v.Literal && bare.Type() == cty.String:
		x, diags := hclsyntax.ParseExpression([]byte(bare.AsString()), "<value for var."+v.Name+">", hcl.InitialPos)
		if !diags.HasErrors() {
			if parsed, diags := x.Value(nil); !diags.HasErrors() {
				in.Value = parsed.WithMarks(marks)
			}
		}
	}
	return in, fits(v, in)
}

// asText is what a variable without a type gets of a number or a boolean, and of what
// is not known yet: text, as from the environment.
func asText(v cty.Value) cty.Value {
	if v.IsKnown() {
		if text, err := value.Convert(v, cty.String); err == nil {
			return text
		}
	}
	return cty.UnknownVal(cty.String)
}

// jsonText gives a variable without a type what is not primitive as JSON text.
func jsonText(v *config.Variable, in engine.InputValue) (engine.InputValue, diag.List) {
	bare, paths := in.Value.UnmarkDeepWithPaths()
	if !bare.IsWhollyKnown() {
		in.Value = cty.UnknownVal(cty.String)
		return in, nil
	}
	b, err := ctyjson.Marshal(bare, bare.Type())
	if err != nil {
		return in, diag.Errorf(in.At, "Invalid value for input variable", "The input %q cannot be written as JSON: %s.", v.Name, err)
	}
	text := cty.StringVal(string(b))
	for _, p := range paths {
		text = text.WithMarks(p.Marks)
	}
	in.Value = text
	kind := "has no type"
	if v.Type == cty.String {
		kind = "is a string"
	}
	ds := diag.Warnf(in.At, "Input given as JSON text", "The variable %q of the module %s, so it gets this value as JSON text, as it always did. Give the variable a type that fits to have it as a value.", v.Name, kind).Note(&v.At, "the variable is declared here")
	ds[0].Code = "estate/json-input"
	return in, ds
}

// fits says whether a value can become one of the variable's type.
func fits(v *config.Variable, in engine.InputValue) diag.List {
	if v.Type == cty.NilType {
		return nil
	}
	bare, _ := in.Value.UnmarkDeep()
	if v.Defaults != nil && !bare.IsNull() && bare.IsKnown() {
		bare = v.Defaults.Apply(bare)
	}
	_, err := value.Convert(bare, v.Type)
	if err == nil {
		return nil
	}
	ds := diag.Errorf(in.At, "Invalid value for input variable", "The input %q does not fit the type of the module's variable: %s.", v.Name, describe(err)).Note(&v.At, "the variable is declared here")
	ds[0].Code = "estate/input-type"
	return ds
}

func describe(err error) string {
	if pe, ok := err.(cty.PathError); ok && len(pe.Path) > 0 { //nolint:errorlint // cty returns it unwrapped
		return fmt.Sprintf("%s (at %s)", pe.Error(), pathText(pe.Path))
	}
	return err.Error()
}

func pathText(p cty.Path) string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + s.Name)
		case cty.IndexStep:
			if s.Key.Type() == cty.String {
				fmt.Fprintf(&b, "[%q]", s.Key.AsString())
			} else if s.Key.Type() == cty.Number {
				b.WriteString("[" + s.Key.AsBigFloat().String() + "]")
			}
		}
	}
	return b.String()
}

// missing are errors about required variables without a value.
func missing(u *Unit, root *config.Module, values map[string]engine.InputValue) diag.List {
	var ds diag.List
	for _, name := range slices.Sorted(maps.Keys(root.Variables)) {
		v := root.Variables[name]
		if _, ok := values[name]; ok || v.Default != cty.NilVal {
			continue
		}
		at := &source.Range{Filename: u.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
		more := diag.Errorf(at, "Missing input", "The module's variable %q is required, and neither the inputs of the unit %s nor anything else gives it a value.", name, u.Name).Note(&v.At, "the variable is declared here")
		more[0].Code = "estate/missing-input"
		ds = append(ds, more...)
	}
	return ds
}

// wanted tells which inputs a unit's module takes, nil where that cannot be told
// without fetching the module.
func (e *Estate) wanted(ctx context.Context, u *Unit) func(string) bool {
	local := e.localModule(e.task(ctx), u)
	if local == nil {
		return nil
	}
	return func(name string) bool {
		if local.Variables[name] != nil {
			return true
		}
		m := e.laid(ctx, u)
		return m.root == nil || !m.whole || m.root.Variables[name] != nil
	}
}

// unknowable stands for outputs where none are to be fetched.
func unknowable(*demand.Task, string, source.Range) (cty.Value, bool, diag.List) {
	return cty.DynamicVal, true, nil
}

// localModule is the root module of a unit where it lies on this machine, nil
// otherwise.
func (e *Estate) localModule(t *demand.Task, u *Unit) *config.Module {
	if l := e.localTree(t, u); l != nil {
		return l.root
	}
	return nil
}

// A localTree is a module on this machine, read without what units add to it.
type localTree struct {
	root  *config.Module
	needs *moduleNeeds
}

// localTree reads the modules of a unit where they lie on this machine. It
// fetches no outputs.
func (e *Estate) localTree(t *demand.Task, u *Unit) *localTree {
	tf, ds := u.In(e.blind).Terraform(t)
	if ds.HasErrors() {
		return nil
	}
	src, ds := e.sourceOf(u, tf)
	if ds.HasErrors() {
		return nil
	}
	pkg, sub := u.Dir, ""
	if src.text != "" {
		if pkg, sub, ds = e.packageOf(t.Context(), u, src, false); ds.HasErrors() || pkg == "" {
			return nil
		}
	}
	dir := filepath.Join(pkg, sub)
	return e.shared.modules.Do(dir, func() *localTree {
		f, err := newFiles(pkg, sub, pkg, dir, copyRules{})
		if err != nil {
			return nil
		}
		o := module.Options{ // by the names that files have in a run
			Config: config.Options{FS: f, Set: &source.Set{}, Parses: &e.shared.parses}, Loads: &module.Loads{}, Canonical: fetch.Canonical,
		}
		m, ds := o.Loads.Load(".", o.Config)
		if ds.HasErrors() {
			return nil
		}
		root := *m
		root.Dir = dir
		out := &localTree{root: &root}
		if tree, ds := module.Build(t.Context(), ".", o); tree.Constant && !ds.HasErrors() {
			out.needs = needsOf(tree)
		}
		return out
	})
}

// below puts the places in a module that was read by names of its own where they
// are.
func below(dir string, ds diag.List) diag.List {
	return placed(ds, func(name string) string { return filepath.Join(dir, name) })
}
