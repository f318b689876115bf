package server

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/zclconf/go-cty/cty"
)

// # Effective documents
//
// An effective document is the module or unit of a file after merging, as read-only text. Its links lead
// to the lines from which the arguments come.

// scheme is the scheme of effective documents: terrace:PATH, where PATH is encoded as in file URIs.
const scheme = "terrace"

// contentURI returns the URI of the effective document of a file.
func contentURI(path string) string {
	return scheme + ":" + strings.TrimPrefix(document.URI(path), "file://")
}

// contentPath returns the path of the file of an effective document, or "" if a URI has another scheme.
func contentPath(uri string) string {
	path, ok := strings.CutPrefix(uri, scheme+":")
	if !ok {
		return ""
	}
	return document.Path("file://" + strings.TrimPrefix(path, "//"))
}

// maxOrigins is the number of arguments of a unit whose origins are computed for one request.
const maxOrigins = 500

// effectiveResult is the answer of the request terrace/effective.
type effectiveResult struct {
	URI        string                  `json:"uri"`
	LanguageID string                  `json:"languageId"`
	Text       string                  `json:"text"`
	Links      []protocol.DocumentLink `json:"links"` // from arguments to their origins, in the order of the text
}

// effective returns the effective module or unit of a file: after merging of override files, or of
// imports. The comments of a module contain the origins.
func (s *Server) effective(ctx context.Context, p *struct {
	TextDocument protocol.TextDocumentIdentifier `json:"textDocument"`
}) (*effectiveResult, error) {
	return s.effectiveOf(ctx, s.path(p.TextDocument.URI))
}

func (s *Server) effectiveOf(ctx context.Context, path string) (*effectiveResult, error) {
	out := &effectiveResult{URI: contentURI(path), LanguageID: "terraform", Links: []protocol.DocumentLink{}}
	switch index.KindOf(path) {
	case index.Module, index.JSON:
		m := s.Session.Module(ctx, filepath.Dir(path))
		if m == nil {
			return nil, ctx.Err()
		}
		text, err := m.Print()
		if err != nil {
			return nil, refuse("the module cannot be shown: %v", err)
		}
		out.Text = s.withoutSecrets(ctx, m, text)
		out.Links = s.moduleOrigins(filepath.Dir(path), document.New([]byte(out.Text)))
	case index.Unit:
		s.Session.FindGenerator(ctx, filepath.Dir(path))
		u := s.unitOf(ctx, path)
		if u == nil {
			return nil, refuse("no unit reads %s", path)
		}
		text, err := u.Render(ctx, "")
		if err != nil {
			return nil, refuse("the unit cannot be shown: %v", err)
		}
		out.LanguageID = "hcl"
		out.Text, out.Links = s.effectiveUnit(ctx, u, []byte(text))
	default:
		return nil, refuse("%s is neither part of a module nor of a unit", path)
	}
	return out, ctx.Err()
}

func (s *Server) content(ctx context.Context, p *protocol.TextDocumentContentParams) (*protocol.TextDocumentContentResult, error) {
	path := contentPath(p.URI)
	if path == "" {
		return nil, refuse("%s is not a document of this server", p.URI)
	}
	x, err := s.effectiveOf(ctx, path)
	if err != nil {
		return nil, err
	}
	return &protocol.TextDocumentContentResult{Text: x.Text}, nil
}

// originPattern matches a position in a comment of an effective module.
var originPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([^,()"]+):(\d+)`) })

// moduleOrigins returns the links of the positions in the comments of an effective module.
func (s *Server) moduleOrigins(dir string, text *document.Text) []protocol.DocumentLink {
	out := []protocol.DocumentLink{}
	for i := range text.Lines() {
		line := text.Line(i)
		comment := strings.LastIndex(string(line), "# ")
		if comment < 0 {
			continue
		}
		for _, m := range originPattern().FindAllSubmatchIndex(line[comment:], -1) {
			number, err := strconv.Atoi(string(line[comment+m[4] : comment+m[5]]))
			if err != nil {
				continue
			}
			name := string(line[comment+m[2] : comment+m[3]]) // behind words, and the name may contain spaces
			for !s.Session.Files.Exists(filepath.Join(dir, name)) && name != "" {
				_, name, _ = strings.Cut(name, " ")
			}
			if name != "" {
				start := text.LineStart(i) + comment
				out = append(out, protocol.DocumentLink{Range: text.Range(start+m[3]-len(name), start+m[1], s.encoding), Target: lineURI(filepath.Join(dir, name), number)})
			}
		}
	}
	return out
}

// lineURI returns the URI of a line of a file, counted from 1.
func lineURI(path string, line int) string { return fmt.Sprintf("%s#L%d", document.URI(path), line) }

// An effectiveValue is an argument, or a key of an object, in the text of an effective unit.
type effectiveValue struct {
	address  string
	name     hcl.Range
	value    hclsyntax.Expression
	children []*effectiveValue
	x        *explanation.Explanation // nil if it is not known
}

// effectiveUnit returns the text of an effective unit without its sensitive values, and links from the arguments to
// the lines from which they come. A value that is not explained, because there are too many, is not shown either.
func (s *Server) effectiveUnit(ctx context.Context, u *workspace.Unit, text []byte) (string, []protocol.DocumentLink) {
	body, _ := index.Parse("terragrunt.hcl", text)
	if body == nil {
		return "", []protocol.DocumentLink{}
	}
	left := maxOrigins
	var explain func(all []*effectiveValue)
	explain = func(all []*effectiveValue) {
		for _, v := range all {
			if left--; left < 0 || ctx.Err() != nil {
				return
			}
			if x, ds := u.Explain(ctx, "", v.address, ""); !ds.HasErrors() {
				v.x = x
			}
			explain(v.children)
		}
	}
	all := effectiveValues(body, "")
	explain(all)
	var edits []textEdit
	var hide func(v *effectiveValue, unexplained bool) (hidden bool)
	hide = func(v *effectiveValue, unexplained bool) (hidden bool) {
		for _, c := range v.children {
			hidden = hide(c, unexplained) || hidden
		}
		if hidden || v.x == nil && !unexplained || v.x != nil && !v.x.Sensitive || v.x == nil && len(v.children) > 0 {
			return hidden
		}
		r := v.value.Range()
		edits = append(edits, textEdit{r.Start.Byte, r.End.Byte, hiddenText})
		return true
	}
	for _, v := range all {
		hide(v, left < 0)
	}
	changed := applied(text, edits)
	shown := document.New([]byte(changed))
	out := []protocol.DocumentLink{}
	var link func(all []*effectiveValue)
	link = func(all []*effectiveValue) {
		for _, v := range all {
			link(v.children)
			if v.x == nil {
				continue
			}
			from, ok := moved(edits, v.name.Start.Byte)
			at, known := originOf(v.x)
			if !ok || !known {
				continue
			}
			file := at.File
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(u.Path), file)
			}
			out = append(out, protocol.DocumentLink{Range: shown.Range(from, from+v.name.End.Byte-v.name.Start.Byte, s.encoding), Target: lineURI(file, at.Line)})
		}
	}
	link(all)
	slices.SortFunc(out, func(a, b protocol.DocumentLink) int {
		return cmp.Or(a.Range.Start.Line-b.Range.Start.Line, a.Range.Start.Character-b.Range.Start.Character)
	})
	return changed, out
}

// hiddenText replaces a sensitive value in an effective document.
const hiddenText = `"(sensitive value)"`

// jsonPart begins the part of an effective module that cannot be written in native syntax.
const jsonPart = "-- main.tf.json --"

// withoutSecrets returns the text of an effective module without values that are written in it and are sensitive:
// defaults of variables, values of outputs, arguments of modules, and arguments of the function sensitive.
func (s *Server) withoutSecrets(ctx context.Context, m *workspace.Module, text string) string {
	native, rest, found := strings.Cut(text, jsonPart)
	head := ""
	if found {
		head, rest = "-- main.tf --\n", jsonPart+rest
		var is bool
		if native, is = strings.CutPrefix(native, head); !is {
			head = ""
		}
	}
	body, _ := index.Parse("main.tf", []byte(native))
	if body == nil {
		return text
	}
	var edits []textEdit
	var hide func(x hclsyntax.Expression)
	hide = func(x hclsyntax.Expression) {
		if v, diags := x.Value(nil); len(x.Variables()) == 0 && (diags.HasErrors() || !v.IsNull()) {
			edits = append(edits, textEdit{x.Range().Start.Byte, x.Range().End.Byte, hiddenText})
			return
		}
		switch x := x.(type) {
		case *hclsyntax.ObjectConsExpr:
			for _, item := range x.Items {
				hide(item.ValueExpr)
			}
		case *hclsyntax.TupleConsExpr:
			for _, item := range x.Exprs {
				hide(item)
			}
		case *hclsyntax.FunctionCallExpr:
			for _, a := range x.Args {
				hide(a)
			}
		case *hclsyntax.ConditionalExpr:
			hide(x.TrueResult)
			hide(x.FalseResult)
		case *hclsyntax.ParenthesesExpr:
			hide(x.Expression)
		}
	}
	for _, b := range body.Blocks {
		all := b.Body.Attributes
		switch marked := all["sensitive"]; {
		case b.Type == "module" && len(b.Labels) == 1:
			dir := s.calledBy(m.Dir, b.Labels[0])
			if dir == "" {
				continue
			}
			if called := s.Session.Module(ctx, dir); called != nil {
				for name, a := range all {
					if v := called.Config.Variables[name]; v != nil && v.Sensitive {
						hide(a.Expr)
					}
				}
			}
		case marked == nil || isFalse(marked.Expr):
		case b.Type == "variable" && all["default"] != nil:
			hide(all["default"].Expr)
		case b.Type == "output" && all["value"] != nil:
			hide(all["value"].Expr)
		}
	}
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "sensitive" && len(call.Args) == 1 {
			hide(call.Args[0])
		}
		return nil
	})
	return head + applied([]byte(native), edits) + rest
}

// isFalse reports whether an expression is the constant false.
func isFalse(x hclsyntax.Expression) bool {
	v, diags := x.Value(nil)
	return !diags.HasErrors() && v.RawEquals(cty.False)
}

// applied returns a text after edits, which it sorts. An edit inside another one is left out.
func applied(text []byte, edits []textEdit) string {
	slices.SortFunc(edits, func(a, b textEdit) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	var b strings.Builder
	last := 0
	for _, e := range edits {
		if e.start < last {
			continue
		}
		b.Write(text[last:e.start])
		b.WriteString(e.text)
		last = e.end
	}
	b.Write(text[last:])
	return b.String()
}

// A textEdit replaces a range of bytes.
type textEdit struct {
	start, end int
	text       string
}

// moved returns the offset after edits, which are sorted. ok is false if the offset is in a replaced range.
func moved(edits []textEdit, offset int) (to int, ok bool) {
	to = offset
	for _, e := range edits {
		if e.start > offset {
			break
		}
		if offset < e.end {
			return 0, false
		}
		to += len(e.text) - (e.end - e.start)
	}
	return to, true
}

// maxEffectiveDepth is the number of nested objects whose keys are explained one by one.
const maxEffectiveDepth = 4

// effectiveValues returns the arguments in a body, with the keys of their objects. The inputs are explained one by
// one, and not as a whole.
func effectiveValues(body *hclsyntax.Body, prefix string) (out []*effectiveValue) {
	var keys func(x hclsyntax.Expression, address string, depth int) []*effectiveValue
	keys = func(x hclsyntax.Expression, address string, depth int) (out []*effectiveValue) {
		o, ok := x.(*hclsyntax.ObjectConsExpr)
		if !ok || depth == maxEffectiveDepth {
			return nil
		}
		for _, item := range o.Items {
			key := hcl.ExprAsKeyword(item.KeyExpr)
			if key == "" {
				v, diags := item.KeyExpr.Value(nil)
				if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
					continue
				}
				key = v.AsString()
			}
			at := address + index.Step(key)
			out = append(out, &effectiveValue{address: at, name: item.KeyExpr.Range(), value: item.ValueExpr, children: keys(item.ValueExpr, at, depth+1)})
		}
		return out
	}
	for _, a := range body.Attributes {
		at := prefix + a.Name
		inner := keys(a.Expr, at, 0)
		if at == "inputs" {
			out = append(out, inner...)
			continue
		}
		out = append(out, &effectiveValue{address: at, name: a.NameRange, value: a.Expr, children: inner})
	}
	for _, n := range body.Blocks {
		name := n.Type
		if name == "locals" {
			name = "local"
		}
		for _, l := range n.Labels {
			name += "." + l
		}
		out = append(out, effectiveValues(n.Body, prefix+name+".")...)
	}
	return out
}

// originOf returns the position at which an explanation ends.
func originOf(x *explanation.Explanation) (explanation.SourceLine, bool) {
	for _, step := range slices.Backward(x.Steps) {
		if step.At != nil && step.At.Line > 0 {
			return *step.At, true
		}
	}
	return explanation.SourceLine{}, false
}
