package config

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The parser cuts a whole text into tokens before it reads the first, in one
// slice that grows as it goes: for a file of some pages that is by far the most
// memory of parsing it, used for an instant. So a file is given to the parser
// in pieces, each of some whole blocks, and the results are put together.

// pieceSize is how long a piece is at least, in bytes. A piece holds some
// hundred tokens.
const pieceSize = 1 << 10

// parsePieces parses a native file piece by piece. The result is that of
// hclsyntax.ParseConfig for the whole text, which had no messages; ok is false
// where that cannot be told: the text then wants parsing as a whole.
//
// A piece ends with a line that is a closing brace alone. Where such a line does
// not end a block of the top level, it is inside a heredoc or a comment of
// several lines, and texts with these are not cut, or inside brackets, and then
// its piece has a bracket without its counterpart, which is an error.
func parsePieces(path string, text []byte) (*hclsyntax.Body, bool) {
	if len(text) < 2*pieceSize || bytes.Contains(text, []byte("<<")) || bytes.Contains(text, []byte("/*")) {
		return nil, false
	}
	whole := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	start := hcl.InitialPos
	for start.Byte < len(text) {
		piece := text[start.Byte:]
		piece = piece[:pieceEnd(piece)]
		body, ok := parsePiece(path, piece, start)
		if !ok {
			return nil, false
		}
		if start == hcl.InitialPos {
			whole.SrcRange = body.SrcRange
		}
		whole.Blocks = append(whole.Blocks, body.Blocks...)
		whole.SrcRange.End, whole.EndRange = body.SrcRange.End, body.EndRange
		start = hcl.Pos{Byte: start.Byte + len(piece), Line: start.Line + bytes.Count(piece, []byte("\n")), Column: 1}
	}
	return whole, true
}

// parsePiece parses one piece and reports whether it is fine and has blocks only.
func parsePiece(path string, piece []byte, start hcl.Pos) (*hclsyntax.Body, bool) {
	if _, deep := tooDeep(path, piece); deep {
		return nil, false
	}
	file, diags := hclsyntax.ParseConfig(piece, path, start)
	if len(diags) > 0 {
		return nil, false
	}
	body, native := file.Body.(*hclsyntax.Body)
	return body, native && len(body.Attributes) == 0
}

// pieceEnd is the length of the first piece of the text.
func pieceEnd(text []byte) int {
	from := min(pieceSize, len(text))
	for {
		i := bytes.Index(text[from:], []byte("\n}"))
		if i < 0 {
			return len(text)
		}
		from += i + len("\n}")
		if bytes.HasPrefix(text[from:], []byte("\r")) {
			from++
		}
		if bytes.HasPrefix(text[from:], []byte("\n")) {
			return from + 1
		}
	}
}
