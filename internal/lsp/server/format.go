package server

import (
	"context"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/formatting"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// The command lsp answers these requests in another process, as package front describes, unless that process
// does not know the document.

func (s *Server) formatting(_ context.Context, p *protocol.DocumentFormattingParams) ([]protocol.TextEdit, error) {
	b := s.Session.Files.Buffer(document.Path(p.TextDocument.URI))
	if b == nil {
		return nil, refuse("%s is not open", p.TextDocument.URI)
	}
	return formatting.Document(b.Path, b.Text, s.encoding), nil
}

func (s *Server) rangeFormatting(_ context.Context, p *protocol.DocumentRangeFormattingParams) ([]protocol.TextEdit, error) {
	b := s.Session.Files.Buffer(document.Path(p.TextDocument.URI))
	if b == nil {
		return nil, refuse("%s is not open", p.TextDocument.URI)
	}
	return formatting.Range(b.Path, b.Text, p.Range, s.encoding), nil
}
