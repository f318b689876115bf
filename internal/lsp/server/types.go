package server

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// maxTyped is the number of expressions that are read to find the type of one name, and maxTypedAll that for
// all names of a request. The types of local values that repeat each other would otherwise grow without
// limit, and completion would be slow.
const (
	maxTyped    = 500
	maxTypedAll = 20_000
)

// A typer finds the types of names and expressions without evaluating them. A type that the files do not
// determine is cty.DynamicPseudoType.
type typer struct {
	s    *Server
	ctx  context.Context
	left int // expressions that may still be read for the name
	all  int // the same for the request
}

// typer returns the typer of the request, for the type of another name.
func (w *completer) typer() *typer {
	if w.types == nil {
		w.types = &typer{s: w.s, ctx: w.ctx, all: maxTypedAll}
	}
	w.types.left = min(maxTyped, w.types.all)
	return w.types
}

// read counts one expression. It reports whether the limit permits it.
func (t *typer) read() bool {
	t.left--
	t.all--
	return t.left >= 0
}

// A scope resolves the beginning of a reference. rest contains the steps that are left.
type scope func(t hcl.Traversal) (ty cty.Type, rest hcl.Traversal)

// expression returns the type of an expression.
func (t *typer) expression(x hcl.Expression, in scope) cty.Type {
	if !t.read() {
		return cty.DynamicPseudoType
	}
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		return x.Val.Type()
	case *hclsyntax.TemplateExpr:
		return cty.String
	case *hclsyntax.TemplateWrapExpr:
		return t.expression(x.Wrapped, in)
	case *hclsyntax.ParenthesesExpr:
		return t.expression(x.Expression, in)
	case *hclsyntax.UnaryOpExpr:
		return x.Op.Type
	case *hclsyntax.BinaryOpExpr:
		return x.Op.Type
	case *hclsyntax.ConditionalExpr:
		if ty, _ := convert.Unify([]cty.Type{t.expression(x.TrueResult, in), t.expression(x.FalseResult, in)}); ty != cty.NilType {
			return ty
		}
	case *hclsyntax.ScopeTraversalExpr:
		ty, rest := in(x.Traversal)
		return steps(ty, rest)
	case *hclsyntax.RelativeTraversalExpr:
		return steps(t.expression(x.Source, in), x.Traversal)
	case *hclsyntax.IndexExpr:
		if ty := t.expression(x.Collection, in); ty.IsCollectionType() {
			return ty.ElementType()
		}
	case *hclsyntax.TupleConsExpr:
		types := make([]cty.Type, len(x.Exprs))
		for i, e := range x.Exprs {
			types[i] = t.expression(e, in)
		}
		return cty.Tuple(types)
	case *hclsyntax.ObjectConsExpr:
		types := map[string]cty.Type{}
		for _, item := range x.Items {
			key, ds := item.KeyExpr.Value(nil)
			if ds.HasErrors() || key.IsNull() || !key.IsKnown() || key.Type() != cty.String {
				return cty.DynamicPseudoType
			}
			types[key.AsString()] = t.expression(item.ValueExpr, in)
		}
		return cty.Object(types)
	case *hclsyntax.FunctionCallExpr:
		f, ok := functionTable()[strings.TrimPrefix(x.Name, "core::")]
		if !ok || x.ExpandFinal {
			break
		}
		types := make([]cty.Type, len(x.Args))
		for i, a := range x.Args {
			types[i] = t.expression(a, in)
		}
		if ty, err := f.ReturnType(types); err == nil {
			return ty
		}
	}
	return cty.DynamicPseudoType
}

// steps returns the type behind steps.
func steps(ty cty.Type, rest hcl.Traversal) cty.Type {
	for _, s := range rest {
		name := ""
		switch s := s.(type) {
		case hcl.TraverseAttr:
			name = s.Name
		case hcl.TraverseIndex:
			if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
				name = s.Key.AsString()
			}
		}
		switch {
		case ty.IsMapType() || ty.IsListType():
			ty = ty.ElementType()
		case ty.IsObjectType() && ty.HasAttribute(name):
			ty = ty.AttributeType(name)
		default:
			return cty.DynamicPseudoType
		}
	}
	return ty
}

// variable returns the type of a variable of a module.
func variable(m *workspace.Module, name string) cty.Type {
	if v := m.Config.Variables[name]; v != nil {
		return v.Type.WithoutOptionalAttributesDeep()
	}
	return cty.DynamicPseudoType
}

// local returns the type of a local value of a module.
func (t *typer) local(m *workspace.Module, name string) cty.Type {
	if l := m.Config.Locals[name]; l != nil && l.Value != nil {
		return t.expression(l.Value.Expr, t.inModule(m))
	}
	return cty.DynamicPseudoType
}

// output returns the type of an output of the module in a directory.
func (t *typer) output(dir, name string) cty.Type {
	if dir == "" || !t.read() {
		return cty.DynamicPseudoType
	}
	m := t.s.Session.Module(t.ctx, dir)
	if m == nil {
		return cty.DynamicPseudoType
	}
	o := m.Config.Outputs[name]
	switch {
	case o == nil:
	case o.Type != cty.NilType && o.Type != cty.DynamicPseudoType:
		return o.Type.WithoutOptionalAttributesDeep()
	case o.Value != nil:
		return t.expression(o.Value.Expr, t.inModule(m))
	}
	return cty.DynamicPseudoType
}

// inModule resolves references of a module.
func (t *typer) inModule(m *workspace.Module) scope {
	return func(tr hcl.Traversal) (cty.Type, hcl.Traversal) {
		var names []string // up to the first index, at most three
		for _, s := range tr[:min(len(tr), 3)] {
			switch s := s.(type) {
			case hcl.TraverseRoot:
				names = append(names, s.Name)
			case hcl.TraverseAttr:
				names = append(names, s.Name)
			}
		}
		if len(names) < 2 {
			return cty.DynamicPseudoType, nil
		}
		switch names[0] {
		case "var":
			return variable(m, names[1]), tr[2:]
		case "local":
			return t.local(m, names[1]), tr[2:]
		case "path":
			return cty.String, tr[2:]
		case "count":
			return cty.Number, tr[2:]
		case "each", "terraform", "tofu":
			if names[1] == "key" || names[1] == "workspace" {
				return cty.String, tr[2:]
			}
			return cty.DynamicPseudoType, nil
		case "module":
			call := m.Config.Calls[names[1]]
			rest := tr[2:]
			if call == nil {
				return cty.DynamicPseudoType, nil
			}
			if call.Repeat.Count != nil || call.Repeat.ForEach != nil {
				if len(rest) == 0 {
					return cty.DynamicPseudoType, nil
				}
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return cty.DynamicPseudoType, nil
			}
			if name, ok := rest[0].(hcl.TraverseAttr); ok {
				return t.output(t.s.calledBy(m.Dir, names[1]), name.Name), rest[1:]
			}
			return cty.DynamicPseudoType, nil
		}
		a, rest := addr.Resource{Mode: addr.Managed, Type: names[0], Name: names[1]}, tr[2:]
		if names[0] == "data" || names[0] == "ephemeral" {
			if len(names) < 3 {
				return cty.DynamicPseudoType, nil
			}
			a, rest = addr.Resource{Mode: modeOf(names[0]), Type: names[1], Name: names[2]}, tr[3:]
		}
		r := m.Config.Resources[a]
		if r == nil {
			return cty.DynamicPseudoType, nil
		}
		if r.Repeat.Count != nil || r.Repeat.ForEach != nil {
			if len(rest) == 0 {
				return cty.DynamicPseudoType, nil
			}
			rest = rest[1:]
		}
		if rs := m.Resource(t.ctx, a.Mode, a.Type, localName(r)); rs != nil {
			return rs.Block.ImpliedType(), rest
		}
		return cty.DynamicPseudoType, nil
	}
}

// calledBy returns the directory of the module that a call in a directory refers to, or "".
func (s *Server) calledBy(dir, call string) string {
	for _, f := range s.Session.Index.Dir(dir) {
		if f.Kind.OfModule() {
			return s.Session.Index.Target(f, "module."+call)
		}
	}
	return ""
}

// inUnit resolves the local values of a unit file and the outputs of its dependencies.
func (t *typer) inUnit(path string, f *index.File) scope {
	body, _ := index.Parse(path, t.s.Session.Files.Text(path).Bytes)
	var in scope
	in = func(tr hcl.Traversal) (cty.Type, hcl.Traversal) {
		if len(tr) < 2 || body == nil {
			return cty.DynamicPseudoType, nil
		}
		name, ok := tr[1].(hcl.TraverseAttr)
		if !ok {
			return cty.DynamicPseudoType, nil
		}
		switch tr.RootName() {
		case "local":
			for _, b := range body.Blocks {
				if a := b.Body.Attributes[name.Name]; b.Type == "locals" && a != nil {
					return t.expression(a.Expr, in), tr[2:]
				}
			}
		case "dependency":
			if len(tr) < 4 {
				break
			}
			outputs, ok := tr[2].(hcl.TraverseAttr)
			output, named := tr[3].(hcl.TraverseAttr)
			if ok && named && outputs.Name == "outputs" {
				return t.output(t.s.moduleOfUnit(t.ctx, t.s.target(t.ctx, f, "dependency."+name.Name)), output.Name), tr[4:]
			}
		}
		return cty.DynamicPseudoType, nil
	}
	return in
}

// moduleOfUnit returns the directory of the module of a unit file. It is "" if path is "".
func (s *Server) moduleOfUnit(ctx context.Context, path string) string {
	if path == "" {
		return ""
	}
	x := s.Session.Index
	if f := x.File(path); x.OwnModule(f) == "" {
		return s.target(ctx, f, "terraform")
	}
	return filepath.Dir(path)
}

// # What fits
//
// References whose type fits are first. None is left out, since a type may be unknown, and since a part
// of a value or a function of it may fit.

// fits returns the beginning of the sort text of a value with a type, where the type want is expected.
func fits(of, want cty.Type) string {
	switch {
	case want == cty.NilType || want == cty.DynamicPseudoType || of == cty.NilType || of == cty.DynamicPseudoType:
		return "1"
	case of.Equals(want.WithoutOptionalAttributesDeep()):
		return "00"
	case convert.GetConversion(of, want) != nil:
		return "01"
	case convert.GetConversionUnsafe(of, want) != nil, inside(of, want, 0):
		return "1"
	}
	return "2"
}

// inside reports whether a part of a value with the type of may have the type want.
func inside(of, want cty.Type, depth int) bool {
	if depth > 10 {
		return true
	}
	part := func(ty cty.Type) bool {
		return ty == cty.DynamicPseudoType || ty.Equals(want) || convert.GetConversion(ty, want) != nil || inside(ty, want, depth+1)
	}
	switch {
	case of.IsMapType() || of.IsListType():
		return part(of.ElementType())
	case of.IsObjectType():
		for _, ty := range of.AttributeTypes() {
			if part(ty) {
				return true
			}
		}
	case of.IsTupleType():
		for _, ty := range of.TupleElementTypes() {
			if part(ty) {
				return true
			}
		}
	}
	return false
}

// oneLine returns the text of a type in one line, or "" if the type is unknown or its text is long.
func oneLine(ty cty.Type) string {
	if ty == cty.NilType || ty == cty.DynamicPseudoType {
		return ""
	}
	if text := strings.Join(strings.Fields(funcs.TypeString(ty)), " "); len(text) <= 60 {
		return text
	}
	return ty.FriendlyName()
}

// expected returns the type of the value at the cursor, or cty.NilType if it is not known.
func (w *completer) expected(dir string) cty.Type {
	if index.IsJSON(w.path) {
		return cty.NilType
	}
	before := w.text.Bytes[:w.at-len(w.cursor.text)]
	tokens, _ := hclsyntax.LexConfig(before, "", hcl.InitialPos)
	type opening struct {
		token hclsyntax.TokenType
		name  string // of the function
		list  bool   // brackets that are the whole value of an argument
		index int    // commas before the cursor
	}
	var open []opening
	last, value := hclsyntax.TokenEOF, false
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenEOF, hclsyntax.TokenNewline, hclsyntax.TokenComment:
			continue
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOBrace, hclsyntax.TokenTemplateInterp:
			o := opening{token: t.Type, list: t.Type == hclsyntax.TokenOBrack && value}
			if t.Type == hclsyntax.TokenOParen && i > 0 && tokens[i-1].Type == hclsyntax.TokenIdent {
				o.name = string(tokens[i-1].Bytes)
			}
			open = append(open, o)
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenTemplateSeqEnd:
			open = open[:max(len(open)-1, 0)]
		case hclsyntax.TokenComma:
			if len(open) > 0 {
				open[len(open)-1].index++
			}
		}
		last, value = t.Type, t.Type == hclsyntax.TokenEqual || t.Type == hclsyntax.TokenColon
	}
	switch last {
	case hclsyntax.TokenEqual:
		return w.argumentType(dir)
	case hclsyntax.TokenTemplateInterp:
		return cty.String
	case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenComma:
		o := open[len(open)-1]
		switch {
		case o.list:
			if ty := w.argumentType(dir); ty != cty.NilType && (ty.IsListType() || ty.IsSetType()) {
				return ty.ElementType()
			}
		case o.token == hclsyntax.TokenOParen:
			f, ok := functionTable()[o.name]
			if !ok {
				break
			}
			if params := f.Params(); o.index < len(params) {
				return params[o.index].Type
			}
			if v := f.VarParam(); v != nil {
				return v.Type
			}
		}
	}
	return cty.NilType
}

// argumentType returns the type of the argument, or of the key of an object in an argument, that the
// cursor is in, or cty.NilType.
func (w *completer) argumentType(dir string) cty.Type {
	blocks := w.cursor.block()
	keys := []string{}
	for _, b := range w.cursor.blocks[len(blocks):] {
		keys = append(keys, b.typ)
	}
	keys = append(keys, w.cursor.name)
	ty := w.typeOfArgument(dir, blocks, &keys)
	for _, key := range keys {
		switch {
		case ty == cty.NilType:
			return ty
		case ty.IsMapType():
			ty = ty.ElementType()
		case ty.IsObjectType() && ty.HasAttribute(key):
			ty = ty.AttributeType(key)
		default:
			return cty.NilType
		}
	}
	return ty
}

// typeOfArgument returns the type of an argument in blocks, or cty.NilType. It removes the keys that
// lead to the argument.
func (w *completer) typeOfArgument(dir string, blocks []enclosing, keys *[]string) cty.Type {
	next := func() (key string) {
		if len(*keys) > 0 {
			key, *keys = (*keys)[0], (*keys)[1:]
		}
		return key
	}
	in := func(dir, name string) cty.Type { // a variable of the module in a directory
		if dir != "" {
			if m := w.s.Session.Module(w.ctx, dir); m != nil && m.Config.Variables[name] != nil {
				return m.Config.Variables[name].Type
			}
		}
		return cty.NilType
	}
	name := next()
	if w.file.Kind == index.Unit {
		switch {
		case len(blocks) == 0 && name == "inputs" && len(*keys) > 0:
			return in(w.s.moduleOfUnit(w.ctx, w.path), next())
		case len(blocks) == 1 && blocks[0].typ == "module" && len(blocks[0].labels) == 1 && name == "inputs" && len(*keys) > 0:
			return in(w.target("module."+blocks[0].labels[0]), next())
		case len(blocks) == 1 && blocks[0].typ == "module" && len(blocks[0].labels) == 1 && !slices.Contains(index.ModuleArguments, name):
			return in(w.target("module."+blocks[0].labels[0]), name)
		}
		return cty.NilType
	}
	if !w.file.Kind.OfModule() || len(blocks) == 0 {
		return cty.NilType
	}
	outer, inner := blocks[0], blocks[len(blocks)-1]
	switch {
	case name == "count" && len(blocks) == 1:
		return cty.Number
	case name == "condition":
		return cty.Bool
	case name == "error_message":
		return cty.String
	case inner.typ == "dynamic":
		return cty.NilType
	case outer.typ == "module" && len(blocks) == 1 && len(outer.labels) == 1:
		return in(w.target("module."+outer.labels[0]), name)
	case outer.typ == "output" && len(blocks) == 1 && len(outer.labels) == 1 && name == "value":
		if m := w.s.Session.Module(w.ctx, dir); m != nil && m.Config.Outputs[outer.labels[0]] != nil {
			return m.Config.Outputs[outer.labels[0]].Type
		}
	case len(outer.labels) == 2, outer.typ == "provider" && len(outer.labels) == 1:
		if b := w.schemaOf(dir, blocks); b != nil && b.Attributes[name] != nil {
			return b.Attributes[name].Type
		}
	}
	return cty.NilType
}

// rank puts the items from an index on that fit the expected type first, and adds the types to their
// details. of returns the type of a name.
func (w *completer) rank(from int, want cty.Type, of func(name string) cty.Type) {
	for i := from; i < len(w.items); i++ {
		item := &w.items[i]
		ty := of(item.Label)
		if text := oneLine(ty); text != "" {
			item.Detail = strings.TrimSuffix(text+", "+item.Detail, ", ")
		}
		item.SortText = fits(ty, want) + item.Label
	}
}
