package server

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

func (s *Server) hover(ctx context.Context, p *protocol.HoverParams) (*protocol.Hover, error) {
	path, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	offset := text.Offset(p.Position, s.encoding)
	answer := func(start, end int, parts ...string) *protocol.Hover {
		r := text.Range(start, end, s.encoding)
		var some []string
		for _, part := range parts {
			if part != "" {
				some = append(some, part)
			}
		}
		if len(some) == 0 {
			return nil
		}
		return &protocol.Hover{Contents: protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: strings.Join(some, "\n\n")}, Range: &r}
	}
	if o := f.At(offset); o != nil {
		return answer(o.Start, o.End, s.described(ctx, f, o), s.explained(ctx, path, address(f, o), moduleAt(f, o))), ctx.Err()
	}
	if a := f.ArgumentAt(offset); a != nil {
		explained := ""
		if !a.Nested {
			explained = s.explained(ctx, path, a.Address(), "")
		}
		return answer(a.Start, a.End, s.argumentText(ctx, f, a), explained), ctx.Err()
	}
	if start, end, name := callAt(text, offset); name != "" {
		return answer(start, end, s.functionText(path, name)), nil
	}
	return nil, nil
}

// address returns the address of an occurrence as explain takes it, or "".
func address(f *index.File, o *index.Occurrence) string {
	kind, name, _ := strings.Cut(o.Addr, ".")
	via, _, _ := strings.Cut(o.Via, ".")
	if first, next, chained := strings.Cut(o.Via, " "); chained {
		return first + "." + next + ".outputs." + name + o.Part
	}
	switch {
	case via == "read": // a function call has no address
		return ""
	case (kind == "dependency" || kind == "module") && via != "": // of another unit file
		return o.Via + "." + o.Addr + o.Part
	case via == "":
		if kind == "input" {
			return "inputs." + name
		}
		return o.Addr + o.Part
	case via == "terraform", via == "module" && f.Kind == index.Unit && kind == "var":
		return "inputs." + name
	case via == "values":
		return o.Addr + o.Part
	case via == "unit" || via == "stack": // a value that a stack gives
		return o.Via + ".values." + name + o.Part
	case via == "local" && kind == "key":
		return o.Via + "." + name + o.Part
	case via == "dependency":
		return o.Via + ".outputs." + name + o.Part
	case via == "module" && f.Kind.OfModule():
		return o.Via + "." + o.Addr + o.Part
	}
	return strings.TrimSuffix(o.Via, ".") + "." + kind + "s." + name + o.Part
}

// moduleAt returns the module of an environment file that a name is in, or "".
func moduleAt(f *index.File, o *index.Occurrence) string {
	if f.Kind != index.Unit {
		return ""
	}
	for i := range f.Names {
		if m := &f.Names[i]; m.Role == index.Declares && m.WholeStart <= o.Start && o.End <= m.WholeEnd {
			if name, ok := strings.CutPrefix(m.Addr, "module."); ok {
				return name
			}
		}
	}
	return ""
}

// explain returns the explanation of an address in a file, or nil. module is the module of an environment
// file, or "".
func (s *Server) explain(ctx context.Context, path, address, module string) *explanation.Explanation {
	x, _ := s.explainFrom(ctx, path, address, module, s.seenFrom(ctx, path))
	return x
}

// explainFrom is explain from a view of the file. alone reports that the view has errors, so that a module is seen
// alone.
func (s *Server) explainFrom(ctx context.Context, path, address, module string, from view) (x *explanation.Explanation, alone bool) {
	if address == "" {
		return nil, false
	}
	var ds diag.List
	switch index.KindOf(path) {
	case index.Module, index.Values, index.JSON:
		dir := filepath.Dir(path)
		chosen := from
		if own := s.Session.UnitFile(dir); index.KindOf(path) == index.Values && s.Session.Files.Exists(own) {
			chosen = view{at: own} // the file may give variables to the module of the unit
		}
		if chosen.isUnit() {
			if u := s.Session.Unit(ctx, chosen.at); u != nil {
				x, ds = u.Explain(ctx, "", chosen.address(address), "")
			}
		} else if m := s.Session.Module(ctx, cmp.Or(chosen.at, dir)); m != nil {
			x, ds = m.Explain(ctx, chosen.address(address))
		}
		if (x == nil || ds.HasErrors()) && chosen.at != "" && chosen.dir() != dir {
			if m := s.Session.Module(ctx, dir); m != nil {
				alone = true
				x, ds = m.Explain(ctx, address)
			}
		}
	case index.Unit:
		if u := s.unitOf(ctx, path); u != nil {
			x, ds = u.Explain(ctx, path, address, module)
		}
	case index.UnitValues:
		if u := s.unitOf(ctx, path); u != nil {
			x, ds = u.Explain(ctx, "", address, "")
		}
	case index.Stack:
		if at := s.stacksOf(ctx, path); len(at) > 0 && at[0] == path {
			st := s.Session.Stack(ctx, path)
			if st == nil {
				break
			}
			if part, value, ok := strings.Cut(address, ".values."); !ok {
				x, ds = st.Explain(ctx, address)
			} else if dir := st.Dirs[workspace.StackBlock{Path: path, Address: part}]; dir != "" { // as the generated unit gets it
				if u := s.Session.Unit(ctx, s.generatedFile(st, dir)); u != nil {
					x, ds = u.Explain(ctx, "", "values."+value, "")
				}
			}
		}
	}
	if ds.HasErrors() {
		return nil, alone
	}
	return x, alone
}

// maxHover is the length, in bytes, of the longest explanation that hover shows.
const maxHover = 64 << 10

// explained returns the explanation of an address as text, or "".
func (s *Server) explained(ctx context.Context, path, address, module string) string {
	v := s.seenFrom(ctx, path)
	x, alone := s.explainFrom(ctx, path, address, module, v)
	if x == nil {
		return ""
	}
	if n := len(x.ValueText()); n > maxHover {
		x.Value, x.Parts = cty.StringVal(fmt.Sprintf("(%d bytes)", n)), nil
	}
	var b strings.Builder
	_ = x.Print(&b) // a strings.Builder returns no error
	out := b.String()
	if len(out) > maxHover {
		out = strings.ToValidUTF8(out[:maxHover], "") + "…"
	}
	out = source.HideCredentials(out)
	switch {
	case alone:
		out = "Seen alone, because the value is not known from " + s.viewName(v) + ":\n\n" + out
	case v.at != "" && v.dir() != filepath.Dir(path) || v.calls != "":
		out = "Seen from " + s.viewName(v) + ":\n\n" + out
	}
	out = fenced(out)
	if slices.ContainsFunc(programFunctions, func(f string) bool { return strings.Contains(out, f+"(") }) && !s.Session.Trusts(path) {
		out = "The program of a function is not run, because the directory is not trusted.\n\n" + out
	}
	return strings.TrimSpace(out + "\n\n" + s.everywhere(ctx, path, address))
}

// fenced returns a text as a code block.
func fenced(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + "text\n" + strings.TrimRight(text, "\n") + "\n" + mark
}

// described returns the type and the documentation of a name, or "".
func (s *Server) described(ctx context.Context, f *index.File, o *index.Occurrence) string {
	sym, ok := s.resolve(ctx, f, o)
	if !ok || index.KindOf(sym.Scope) != index.Other {
		return ""
	}
	m := s.Session.Module(ctx, sym.Scope)
	if m == nil {
		return ""
	}
	kind, name, _ := strings.Cut(sym.Addr, ".")
	switch kind {
	case "var":
		if v := m.Config.Variables[name]; v != nil {
			return variableText(v)
		}
	case "output":
		if v := m.Config.Outputs[name]; v != nil {
			return v.Description
		}
	case "local", "module", "provider", "check":
	default:
		if r := resourceOf(m.Config, sym.Addr); r != nil {
			if rs := m.Resource(ctx, r.Addr.Mode, r.Addr.Type, localName(r)); rs != nil {
				return strings.TrimSpace(rs.Block.Description)
			}
		}
	}
	return ""
}

func variableText(v *config.Variable) string {
	out := "`" + v.Name + "`: `" + funcs.TypeString(v.Type) + "`"
	if v.Default == cty.NilVal {
		out += ", required"
	}
	if v.Sensitive {
		out += ", sensitive"
	}
	if v.Description != "" {
		out += "\n\n" + v.Description
	}
	return out
}

// resourceOf returns the block of a resource by its address in the module.
func resourceOf(m *config.Module, address string) *config.Resource {
	for a, r := range m.Resources {
		if a.String() == address {
			return r
		}
	}
	return nil
}

// localName returns the local name of the provider that a resource names, or "".
func localName(r *config.Resource) string {
	if r.Provider != nil {
		return r.Provider.Name
	}
	return ""
}

// localProvider returns the local name of the provider of a resource.
func localProvider(r *config.Resource) string {
	return cmp.Or(localName(r), config.ImpliedProvider(r.Addr.Type))
}

// argumentText returns the type and the documentation of an argument or nested block, or "".
func (s *Server) argumentText(ctx context.Context, f *index.File, a *index.Argument) string {
	if !f.Kind.OfModule() || a.Inner {
		return ""
	}
	m := s.Session.Module(ctx, filepath.Dir(f.Path))
	if m == nil {
		return ""
	}
	r := resourceOf(m.Config, a.Addr)
	if r == nil {
		return ""
	}
	rs := m.Resource(ctx, r.Addr.Mode, r.Addr.Type, localName(r))
	if rs == nil {
		return ""
	}
	if at := rs.Block.Attributes[a.Name]; at != nil {
		return attributeText(a.Name, at)
	}
	if b := rs.Block.Blocks[a.Name]; b != nil {
		return "`" + a.Name + "`: block\n\n" + b.Description
	}
	return ""
}

func attributeText(name string, a *schema.Attribute) string {
	out := "`" + name + "`: `" + funcs.TypeString(a.Type) + "`"
	for _, w := range []struct {
		on   bool
		text string
	}{{a.Required, "required"}, {a.Optional, "optional"}, {a.Computed, "computed"}, {a.Sensitive, "sensitive"}, {a.WriteOnly, "write-only"}, {a.Deprecated != "", "deprecated"}} {
		if w.on {
			out += ", " + w.text
		}
	}
	if a.Description != "" {
		out += "\n\n" + a.Description
	}
	return out
}

// functionTable returns the functions of modules, for their documentation.
var functionTable = sync.OnceValue(func() map[string]function.Function { return funcs.Table(funcs.Config{PureOnly: true}) })

// callPattern matches the name of a function with its parenthesis.
var callPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_:]*)\s*\(`) })

// callAt returns the name of the function at an offset.
func callAt(text *document.Text, offset int) (start, end int, name string) {
	line := text.Position(offset, document.UTF8).Line
	base := text.LineStart(line)
	for _, m := range callPattern().FindAllSubmatchIndex(text.Line(line), -1) {
		if base+m[2] <= offset && offset <= base+m[3] {
			return base + m[2], base + m[3], string(text.Bytes[base+m[2] : base+m[3]])
		}
	}
	return 0, 0, ""
}

// functionText returns the signature and the documentation of a function in a file, or "".
func (s *Server) functionText(path, name string) string {
	label, _, doc := s.signatureIn(path, name)
	if label == "" {
		return ""
	}
	return "```terraform\n" + label + "\n```\n\n" + doc
}

// signatureIn returns the signature of a function in a file, the text of each parameter in it, and the
// documentation. label is "" if there is no such function.
func (s *Server) signatureIn(path, name string) (label string, params []string, doc string) {
	if kind := index.KindOf(path); kind == index.Unit || kind == index.Stack || kind == index.UnitValues {
		if f := unitFunctionOf(name); f != nil {
			label, params = f.signature(name)
			return label, params, f.doc
		}
	}
	f, ok := functionTable()[name]
	if !ok {
		return "", nil, ""
	}
	label, params = signatureOf(name, f)
	return label, params, f.Description()
}

// signatureOf returns the signature of a function, and the text of each parameter in it.
func signatureOf(name string, f function.Function) (label string, params []string) {
	for _, p := range f.Params() {
		params = append(params, p.Name+" "+typeName(p.Type))
	}
	if v := f.VarParam(); v != nil {
		params = append(params, "..."+v.Name+" "+typeName(v.Type))
	}
	return name + "(" + strings.Join(params, ", ") + ")", params
}

func typeName(ty cty.Type) string {
	if ty == cty.DynamicPseudoType {
		return "any"
	}
	return funcs.TypeString(ty)
}

// modeOf returns the mode of a block type.
func modeOf(block string) addr.Mode {
	switch block {
	case "data":
		return addr.Data
	case "ephemeral":
		return addr.Ephemeral
	}
	return addr.Managed
}
