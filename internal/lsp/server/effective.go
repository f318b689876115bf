package server

import (
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
		out.Text = text
		out.Links = s.moduleOrigins(filepath.Dir(path), document.New([]byte(text)))
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
		out.Text, out.LanguageID = text, "hcl"
		out.Links = s.unitOrigins(ctx, u, document.New([]byte(text)))
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
var originPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([^\s,()"]+):(\d+)`) })

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
			file := filepath.Join(dir, string(line[comment+m[2]:comment+m[3]]))
			number, err := strconv.Atoi(string(line[comment+m[4] : comment+m[5]]))
			if err != nil || !s.Session.Files.Exists(file) {
				continue
			}
			start := text.LineStart(i) + comment
			out = append(out, protocol.DocumentLink{Range: text.Range(start+m[0], start+m[1], s.encoding), Target: lineURI(file, number)})
		}
	}
	return out
}

// lineURI returns the URI of a line of a file, counted from 1.
func lineURI(path string, line int) string { return fmt.Sprintf("%s#L%d", document.URI(path), line) }

// unitOrigins returns links from the arguments of an effective unit to the lines from which they come.
func (s *Server) unitOrigins(ctx context.Context, u *workspace.Unit, text *document.Text) []protocol.DocumentLink {
	out := []protocol.DocumentLink{}
	body, _ := index.Parse("terragrunt.hcl", text.Bytes)
	if body == nil {
		return out
	}
	left := maxOrigins
	add := func(from hcl.Range, address string) {
		if left--; left < 0 || ctx.Err() != nil {
			return
		}
		x, ds := u.Explain(ctx, "", address, "")
		if ds.HasErrors() || x == nil {
			return
		}
		if at, ok := originOf(x); ok {
			file := at.File
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(u.Path), file)
			}
			out = append(out, protocol.DocumentLink{Range: text.Range(from.Start.Byte, from.End.Byte, s.encoding), Target: lineURI(file, at.Line)})
		}
	}
	var object func(x hclsyntax.Expression, prefix string, depth int)
	object = func(x hclsyntax.Expression, prefix string, depth int) {
		o, ok := x.(*hclsyntax.ObjectConsExpr)
		if !ok || depth > 3 {
			return
		}
		for _, item := range o.Items {
			if key := hcl.ExprAsKeyword(item.KeyExpr); key != "" {
				add(item.KeyExpr.Range(), prefix+"."+key)
				object(item.ValueExpr, prefix+"."+key, depth+1)
			}
		}
	}
	var in func(b *hclsyntax.Body, prefix string)
	in = func(b *hclsyntax.Body, prefix string) {
		for _, a := range b.Attributes {
			if prefix+a.Name != "inputs" {
				add(a.NameRange, prefix+a.Name)
			}
			object(a.Expr, prefix+a.Name, 0)
		}
		for _, n := range b.Blocks {
			name := n.Type
			if name == "locals" {
				name = "local"
			}
			for _, l := range n.Labels {
				name += "." + l
			}
			in(n.Body, prefix+name+".")
		}
	}
	in(body, "")
	slices.SortFunc(out, func(a, b protocol.DocumentLink) int {
		if n := a.Range.Start.Line - b.Range.Start.Line; n != 0 {
			return n
		}
		return a.Range.Start.Character - b.Range.Start.Character
	})
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
