package module

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// StaticFunctions returns the functions that early evaluation may call.
type StaticFunctions func() map[string]function.Function

// Static evaluates an expression of a module before planning. It may only use variables,
// locals, path.* and terraform.workspace. This is OpenTofu's early evaluation.
func Static(n *Node, x hcl.Expression, o Options) (cty.Value, diag.List) {
	b := &builder{o: o}
	return b.static(n, x, "expression", "")
}

// StaticSource evaluates the source of a call in the module n, like Static.
func StaticSource(n *Node, call *config.Call, o Options) (cty.Value, diag.List) {
	return (&builder{o: o}).static(n, call.Source.Expr, "source", argumentOf(n, call, "source"))
}

// argumentOf returns the address of an argument of a call in the module n.
func argumentOf(n *Node, call *config.Call, argument string) string {
	return string(n.Path.Child(call.Name)) + "." + argument
}

// StaticValue is like Static, but the value may have marks and be unknown; the caller must
// handle that.
func StaticValue(n *Node, x hcl.Expression, o Options) (cty.Value, diag.List) {
	return (&builder{o: o}).value(n, x)
}

func (b *builder) value(n *Node, x hcl.Expression) (cty.Value, diag.List) {
	return lang.Eval(nil, &staticScope{b: b, node: n}, x, cty.DynamicPseudoType)
}

// static evaluates an expression. what is its kind, for messages. argument is the address of the
// argument that it is the value of; it may be "".
func (b *builder) static(n *Node, x hcl.Expression, what, argument string) (cty.Value, diag.List) {
	if _, diags := x.Value(nil); diags.HasErrors() { // it contains references
		b.asked = true
	}
	b.unset = nil
	v, ds := b.value(n, x)
	if ds.HasErrors() {
		return v, ds
	}
	at := x.Range()
	for _, m := range []any{value.Sensitive, value.Ephemeral} {
		if value.ContainsMark(v, m) {
			ds := diag.Errorf(diag.CodeModuleSecret, &at, "Invalid "+what, "The %s contains a %v value, which is not allowed here since it is stored and shown in plain text.", what, m)
			return cty.DynamicVal, ds
		}
	}
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() && argument != "" && len(b.unset) > 0 {
		return cty.DynamicVal, coded(CodeNotEarly, diag.Errorf(diag.CodeModuleNotEarly, &at, "Value not known early", "%s depends on %s which is not available, and must be known before anything is planned. Give a default or a value to the variable.", argument, strings.Join(b.unset, ", ")))
	}
	if !v.IsWhollyKnown() {
		return cty.DynamicVal, coded(CodeNotEarly, diag.Errorf(diag.CodeModuleNotEarly, &at, "Value not known early", "This %s must be known before anything is planned. Give a default or a value to the variables that it uses.", what))
	}
	return v, nil
}

// CodeNotEarly is the code of the error that a variable without a value is needed before
// planning.
const CodeNotEarly = diag.CodeModuleNotEarly

// staticScope resolves references for early evaluation. It evaluates them recursively and
// records the path to find cycles.
type staticScope struct {
	b     *builder
	node  *Node
	trail []string
}

func (s *staticScope) Functions(_ *demand.Task, provider []string) (map[string]function.Function, diag.List) {
	if len(provider) > 0 {
		return nil, diag.Errorf(diag.CodeModuleStaticFunction, nil, "Provider function in static context", "Unable to use %s here: this value is needed before providers are started.", provider[0])
	}
	if s.b.o.Functions == nil {
		return nil, nil
	}
	return s.b.o.Functions(), nil
}

func (s *staticScope) Resolve(_ *demand.Task, ref hcl.Traversal, place *source.Range) (cty.Value, int, diag.List) {
	at := *place
	name := ""
	if len(ref) > 1 {
		if a, ok := ref[1].(hcl.TraverseAttr); ok {
			name = a.Name
		}
	}
	if name == "" {
		return cty.DynamicVal, 1, diag.Errorf(diag.CodeEvalReference, &at, "Invalid reference", "A reference has at least two parts here, as in local.region. A text stands in quotes.")
	}
	switch ref.RootName() {
	case "var":
		v, ds := s.variable(name, at)
		return v, 2, ds
	case "local":
		v, ds := s.local(name, at)
		return v, 2, ds
	case "path":
		return s.path(name, at)
	case "terraform", "tofu":
		if name == "workspace" {
			return cty.StringVal(s.b.o.Workspace), 2, nil
		}
	case "module":
		return cty.DynamicVal, 2, s.because(noOutput(&at, name))
	}
	return cty.DynamicVal, 2, s.because(notStatic(&at, ref.RootName(), name))
}

func (s *staticScope) path(name string, at source.Range) (cty.Value, int, diag.List) {
	switch name {
	case "module":
		return cty.StringVal(s.node.Dir), 2, nil
	case "root", "cwd":
		root := s.node
		for root.Parent != nil {
			root = root.Parent
		}
		return cty.StringVal(root.Dir), 2, nil
	}
	return cty.DynamicVal, 2, diag.Errorf(diag.CodeEvalPathAttribute, &at, `Invalid "path" attribute`, "The \"path\" object has the attributes \"cwd\", \"module\" and \"root\" only.")
}

func (s *staticScope) step(what string, at source.Range) (*staticScope, diag.List) {
	id := string(s.node.Path) + "\x00" + what
	if slices.Contains(s.trail, id) {
		return nil, diag.Errorf(diag.CodeEvalCycle, &at, "Circular reference", "%s refers to itself, directly or through others, so its value can never be known.", what)
	}
	return &staticScope{b: s.b, node: s.node, trail: append(slices.Clone(s.trail), id)}, nil
}

func (s *staticScope) local(name string, at source.Range) (cty.Value, diag.List) {
	l := s.node.Config.Locals[name]
	if l == nil {
		return cty.DynamicVal, undeclared("local value", "local."+name, at, slices.Sorted(maps.Keys(s.node.Config.Locals)))
	}
	in, ds := s.step("local."+name, at)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	return lang.Eval(nil, in, l.Value.Expr, cty.DynamicPseudoType)
}

func (s *staticScope) variable(name string, at source.Range) (cty.Value, diag.List) {
	v := s.node.Config.Variables[name]
	if v == nil {
		return cty.DynamicVal, undeclared("input variable", "var."+name, at, slices.Sorted(maps.Keys(s.node.Config.Variables)))
	}
	if v.Const != nil && !*v.Const {
		return cty.DynamicVal, notConst(&at, name)
	}
	in, ds := s.step("var."+name, at)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	val := cty.NilVal
	if s.node.Parent == nil {
		if s.b.o.Variables != nil {
			val = s.b.o.Variables(v)
		}
	} else if x := callInput(s.node.Call, name); x != nil {
		up := &staticScope{b: s.b, node: s.node.Parent, trail: in.trail}
		if val, ds = lang.Eval(nil, up, x, cty.DynamicPseudoType); ds.HasErrors() {
			return val, ds
		}
	}
	if val == cty.NilVal || val.IsNull() && !v.Nullable {
		if v.Required() {
			if full := "var." + name; s.node.Parent == nil && !slices.Contains(s.b.unset, full) {
				s.b.unset = append(s.b.unset, full)
			}
			return cty.UnknownVal(v.Type.WithoutOptionalAttributesDeep()), nil
		}
		val = v.Default
	}
	if v.Defaults != nil && !val.IsNull() {
		val = v.Defaults.Apply(val)
	}
	out, err := value.Convert(val, v.Type)
	if err != nil {
		return cty.DynamicVal, diag.Errorf(diag.CodeEvalBadInput, &at, "Invalid value for input variable", "The value of var.%s is not suitable: %s.", name, lang.ErrorText(err))
	}
	if v.Sensitive {
		out = out.Mark(value.Sensitive)
	}
	if v.Ephemeral {
		out = out.Mark(value.Ephemeral)
	}
	return out, nil
}

func callInput(call *config.Call, name string) hcl.Expression {
	content, _, _ := call.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	if content == nil || content.Attributes[name] == nil {
		return nil
	}
	return content.Attributes[name].Expr
}

func (s *staticScope) because(ds diag.List) diag.List {
	if len(s.trail) > 0 {
		ds.Note(nil, "needed for %s", strings.ReplaceAll(s.trail[0], "\x00", ": "))
	}
	return ds
}

func undeclared(kind, name string, at source.Range, _ []string) diag.List {
	return diag.Errorf(diag.CodeEvalUndeclared, &at, "Reference to undeclared "+kind, "%s", fmt.Sprintf("No %s with the name %s has been declared in this module.", kind, name))
}
