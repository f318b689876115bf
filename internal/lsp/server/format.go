package server

import (
	"context"

	"github.com/terrace-iac/terrace/internal/lang/format"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

func (s *Server) formatting(_ context.Context, p *protocol.DocumentFormattingParams) ([]protocol.TextEdit, error) {
	return s.formatted(p.TextDocument, (*document.Text).Edits)
}

// rangeFormatting formats the lines of a range. The rest of the document decides the indentation.
func (s *Server) rangeFormatting(_ context.Context, p *protocol.DocumentRangeFormattingParams) ([]protocol.TextEdit, error) {
	all, err := s.formatted(p.TextDocument, (*document.Text).EditsByLine)
	out := []protocol.TextEdit{}
	for _, e := range all {
		if e.Range.Start.Line >= p.Range.Start.Line && (e.Range.End.Line <= p.Range.End.Line || e.Range.End.Line == p.Range.End.Line+1 && e.Range.End.Character == 0) {
			out = append(out, e)
		}
	}
	return out, err
}

// compared returns the edits between two texts.
type compared func(t *document.Text, to []byte, e document.Encoding) []protocol.TextEdit

// formatted returns the edits that format a document. A document with a syntax error has none.
func (s *Server) formatted(d protocol.TextDocumentIdentifier, compare compared) ([]protocol.TextEdit, error) {
	b := s.Session.Files.Buffer(document.Path(d.URI))
	if b == nil {
		return nil, refuse("%s is not open", d.URI)
	}
	edits := edits(b, s.encoding, compare)
	if edits == nil {
		edits = []protocol.TextEdit{}
	}
	return edits, nil
}

func edits(b *workspaceBuffer, e document.Encoding, compare compared) []protocol.TextEdit {
	formats, configuration := index.Formats(b.Path)
	if !formats {
		return nil
	}
	do := format.HCL
	if configuration {
		do = format.Configuration
	}
	out, diags := do(b.Text.Bytes, b.Path)
	if diags.HasErrors() || out == nil {
		return nil
	}
	return compare(b.Text, out, e)
}
