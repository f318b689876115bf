package server

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/unit"
)

// maxSymbols is the number of symbols that a search returns.
const maxSymbols = 500

// parsed returns the text and the syntax of a document. body is nil for files in other syntaxes.
func (s *Server) parsed(d protocol.TextDocumentIdentifier) (path string, text *document.Text, body *hclsyntax.Body) {
	path = s.path(d.URI)
	text = s.Session.Files.Text(path)
	if index.KindOf(path).Indexed() {
		body, _ = index.Parse(path, text.Bytes)
	}
	return path, text, body
}

func symbolKind(addr string) protocol.SymbolKind {
	kind, _, _ := strings.Cut(addr, ".")
	switch kind {
	case "var", "local", "input", "variable", "locals":
		return protocol.SymbolKindVariable
	case "output":
		return protocol.SymbolKindProperty
	case "module", "unit", "stack", "dependency":
		return protocol.SymbolKindModule
	case "include", "import":
		return protocol.SymbolKindFile
	case "provider":
		return protocol.SymbolKindInterface
	}
	return protocol.SymbolKindClass
}

func (s *Server) documentSymbols(_ context.Context, p *protocol.DocumentSymbolParams) ([]protocol.DocumentSymbol, error) {
	_, text, body := s.parsed(p.TextDocument)
	if body == nil {
		return []protocol.DocumentSymbol{}, nil
	}
	return s.symbolsIn(body, text, 0), nil
}

// symbolsIn returns the blocks and arguments of a body in the order of the text.
func (s *Server) symbolsIn(body *hclsyntax.Body, text *document.Text, depth int) []protocol.DocumentSymbol {
	out := []protocol.DocumentSymbol{}
	at := func(r hcl.Range) protocol.Range { return text.Range(r.Start.Byte, r.End.Byte, s.encoding) }
	for _, a := range body.Attributes {
		out = append(out, protocol.DocumentSymbol{Name: a.Name, Kind: protocol.SymbolKindProperty, Range: at(a.SrcRange), SelectionRange: at(a.NameRange)})
	}
	for _, b := range body.Blocks {
		name := b.Type
		for _, l := range b.Labels {
			name += ` "` + l + `"`
		}
		sym := protocol.DocumentSymbol{Name: name, Kind: symbolKind(b.Type), Range: at(b.Range()), SelectionRange: at(b.DefRange())}
		if depth < 20 {
			sym.Children = s.symbolsIn(b.Body, text, depth+1)
		}
		out = append(out, sym)
	}
	slices.SortFunc(out, func(a, b protocol.DocumentSymbol) int {
		return cmp.Or(a.Range.Start.Line-b.Range.Start.Line, a.Range.Start.Character-b.Range.Start.Character)
	})
	return out
}

func (s *Server) workspaceSymbols(ctx context.Context, p *protocol.WorkspaceSymbolParams) ([]protocol.WorkspaceSymbol, error) {
	all, err := s.Session.Index.All(ctx)
	out := []protocol.WorkspaceSymbol{}
	query := strings.ToLower(p.Query)
	for _, f := range all {
		for i := range f.Names {
			o := &f.Names[i]
			if o.Role != index.Declares || !subsequence(query, strings.ToLower(o.Addr)) {
				continue
			}
			if len(out) == maxSymbols {
				return out, err
			}
			out = append(out, protocol.WorkspaceSymbol{Name: o.Addr, Kind: symbolKind(o.Addr), Location: s.location(f.Path, o.Start, o.End), ContainerName: filepath.Base(filepath.Dir(f.Path))})
		}
	}
	return out, err
}

// subsequence reports whether the characters of query are in text in this order.
func subsequence(query, text string) bool {
	for _, r := range query {
		i := strings.IndexRune(text, r)
		if i < 0 {
			return false
		}
		text = text[i+len(string(r)):]
	}
	return true
}

func (s *Server) folding(_ context.Context, p *protocol.FoldingRangeParams) ([]protocol.FoldingRange, error) {
	_, text, body := s.parsed(p.TextDocument)
	out := []protocol.FoldingRange{}
	if body == nil {
		return out, nil
	}
	add := func(r hcl.Range, kind protocol.FoldingRangeKind) {
		if r.End.Line > r.Start.Line {
			out = append(out, protocol.FoldingRange{StartLine: r.Start.Line - 1, EndLine: r.End.Line - 1, Kind: kind})
		}
	}
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.Block:
			add(n.Range(), "")
		case *hclsyntax.ObjectConsExpr:
			add(n.SrcRange, "")
		case *hclsyntax.TupleConsExpr:
			add(n.SrcRange, "")
		case *hclsyntax.ForExpr:
			add(n.SrcRange, "")
		}
		return nil
	})
	for i := 0; i < text.Lines(); i++ { // comments of several lines
		first := i
		for i < text.Lines() && isComment(text.Line(i)) {
			i++
		}
		if i-first > 1 {
			out = append(out, protocol.FoldingRange{StartLine: first, EndLine: i - 1, Kind: protocol.FoldingRangeKindComment})
		}
	}
	slices.SortFunc(out, func(a, b protocol.FoldingRange) int { return cmp.Or(a.StartLine-b.StartLine, a.EndLine-b.EndLine) })
	return out, nil
}

func isComment(line []byte) bool {
	line = bytes.TrimSpace(line)
	return bytes.HasPrefix(line, []byte("#")) || bytes.HasPrefix(line, []byte("//"))
}

// tokenTypes are the types of semantic tokens, by their number.
var tokenTypes = []string{"type", "enumMember", "property", "function", "variable", "namespace", "parameter"}

const (
	tokenType = iota
	tokenLabel
	tokenProperty
	tokenFunction
	tokenVariable
	tokenNamespace
	tokenParameter
)

func (s *Server) semanticTokens(ctx context.Context, p *protocol.SemanticTokensParams) (*protocol.SemanticTokens, error) {
	return s.semanticTokensIn(ctx, &protocol.SemanticTokensRangeParams{TextDocument: p.TextDocument, Range: protocol.Range{End: protocol.Position{Line: 1 << 30}}})
}

func (s *Server) semanticTokensIn(_ context.Context, p *protocol.SemanticTokensRangeParams) (*protocol.SemanticTokens, error) {
	path, text, body := s.parsed(p.TextDocument)
	out := &protocol.SemanticTokens{Data: []int{}}
	if body == nil {
		return out, nil
	}
	type token struct{ start, end, typ int }
	var all []token
	add := func(start, end, typ int) { all = append(all, token{start, end, typ}) }
	plain := index.IsJSON(path) // the editor colors the JSON text itself
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.Block:
			if plain {
				return nil
			}
			add(n.TypeRange.Start.Byte, n.TypeRange.End.Byte, tokenType)
			for _, l := range n.LabelRanges {
				add(l.Start.Byte, l.End.Byte, tokenLabel)
			}
		case *hclsyntax.Attribute:
			if plain {
				return nil
			}
			add(n.NameRange.Start.Byte, n.NameRange.End.Byte, tokenProperty)
		case *hclsyntax.FunctionCallExpr:
			add(n.NameRange.Start.Byte, n.NameRange.End.Byte, tokenFunction)
		case *hclsyntax.ScopeTraversalExpr:
			r := n.Traversal[0].SourceRange()
			add(r.Start.Byte, r.End.Byte, tokenNamespace)
		}
		return nil
	})
	for _, o := range s.Session.Index.File(path).Names {
		typ := tokenVariable
		if strings.HasPrefix(o.Addr, "var.") {
			typ = tokenParameter
		}
		if o.Role == index.Uses {
			add(o.Start, o.End, typ)
		}
	}
	slices.SortFunc(all, func(a, b token) int { return cmp.Or(a.start-b.start, a.end-b.end, a.typ-b.typ) })
	line, char, last := 0, 0, 0
	for _, t := range all {
		from, to := text.Position(t.start, s.encoding), text.Position(t.end, s.encoding)
		if t.start < last || t.end <= t.start || from.Line != to.Line || from.Line < p.Range.Start.Line || from.Line > p.Range.End.Line {
			continue
		}
		if from.Line != line {
			char = 0
		}
		out.Data = append(out.Data, from.Line-line, from.Character-char, to.Character-from.Character, t.typ, 0)
		line, char, last = from.Line, from.Character, t.end
	}
	return out, nil
}

func (s *Server) links(ctx context.Context, p *protocol.DocumentLinkParams) ([]protocol.DocumentLink, error) {
	if path := contentPath(p.TextDocument.URI); path != "" {
		x, err := s.effectiveOf(ctx, path)
		if err != nil {
			return nil, err
		}
		return x.Links, nil
	}
	_, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	out := []protocol.DocumentLink{}
	for _, l := range f.Links {
		if to := s.linked(ctx, f, l); to != "" {
			out = append(out, protocol.DocumentLink{Range: text.Range(l.Start, l.End, s.encoding), Target: s.uriOf(to)})
		}
	}
	if f.Kind == index.Stack && s.client.Workspace.TextDocumentContent != nil {
		for i := range f.Names {
			o := &f.Names[i]
			if o.Role != index.Declares || !strings.HasPrefix(o.Addr, "unit.") {
				continue
			}
			if at := s.generatedBy(ctx, f.Path, o.Addr); at != "" {
				out = append(out, protocol.DocumentLink{Range: text.Range(o.Start, o.End, s.encoding), Target: contentURI(at), Tooltip: "the effective unit"})
			}
		}
	}
	return out, ctx.Err()
}

// linked returns the path of the file to which a link leads, or "". A directory leads to the file that
// a reader begins with.
func (s *Server) linked(ctx context.Context, f *index.File, l index.Link) string {
	path := ""
	if l.Via != "" {
		path = s.target(ctx, f, l.Via)
	}
	if path == "" && (l.Text == "" || s.Session.Index.PerUnit(f, l.Via)) {
		return ""
	}
	if path == "" {
		path = l.Text
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(f.Path), path)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if !info.IsDir() {
		return path
	}
	if f.Kind == index.Stack {
		for _, name := range []string{unit.StackName, unit.DefaultJSONName, unit.DefaultName} {
			if at := filepath.Join(path, name); s.Session.Files.Exists(at) {
				return at
			}
		}
	}
	files := s.Session.Index.Dir(path)
	for _, g := range files {
		if base := filepath.Base(g.Path); base == "main.tf" || base == "main.tofu" || base == "main.tf.json" || base == unit.DefaultName || base == unit.DefaultJSONName {
			return g.Path
		}
	}
	if len(files) == 0 {
		return ""
	}
	return files[0].Path
}
