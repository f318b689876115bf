// Package formatting computes the edits that format an open document.
//
// Main functions: Document and Range. The one rule: the result depends on the text and the path alone.
package formatting

import (
	"github.com/terrace-iac/terrace/internal/lang/format"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// Document returns the edits that format a document. They are empty, but not nil, if the document has a syntax
// error, or is of a kind that is not formatted.
func Document(path string, t *document.Text, e document.Encoding) []protocol.TextEdit {
	out := edits(path, t, e, (*document.Text).Edits)
	if out == nil {
		return []protocol.TextEdit{}
	}
	return out
}

// Range returns the edits that format the lines of a range. The rest of the document decides the indentation.
// The edits are empty, but not nil, as those of Document.
func Range(path string, t *document.Text, r protocol.Range, e document.Encoding) []protocol.TextEdit {
	out := []protocol.TextEdit{}
	for _, one := range edits(path, t, e, (*document.Text).EditsByLine) {
		if one.Range.Start.Line >= r.Start.Line && (one.Range.End.Line <= r.End.Line || one.Range.End.Line == r.End.Line+1 && one.Range.End.Character == 0) {
			out = append(out, one)
		}
	}
	return out
}

func edits(path string, t *document.Text, e document.Encoding, compare func(*document.Text, []byte, document.Encoding) []protocol.TextEdit) []protocol.TextEdit {
	formats, configuration := index.Formats(path)
	if !formats {
		return nil
	}
	do := format.HCL
	if configuration {
		do = format.Configuration
	}
	out, diags := do(t.Bytes, path)
	if diags.HasErrors() || out == nil {
		return nil
	}
	return compare(t, out, e)
}
