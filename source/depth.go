package source

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The parser and all walkers of its trees are recursive, and a stack overflow ends the
// program. So a file that nests too deeply is refused before it is parsed. There are three
// checks, from cheap to exact: a count of the bytes that could nest, which most files pass;
// the depth of the bytes that open and close, which costs a hundredth of a tokenization;
// and the depth of the tokens.

const (
	maxDepth = 5000   // nested brackets, templates, conditionals and template directives
	maxChain = 100000 // operators and indexes in one expression: their trees are left-deep
)

// TooDeep returns the first range at which a text nests too deeply to be parsed. The
// extension of path selects the syntax, native or JSON.
func TooDeep(path string, text []byte) (Range, bool) {
	if strings.HasSuffix(path, ".json") {
		return tooDeepJSON(path, text)
	}
	if len(text) <= maxChain && opening(text) <= maxDepth {
		return Range{}, false
	}
	if depth, chain := nestingBytes(text); depth <= maxDepth && chain <= maxChain {
		return Range{}, false
	}
	if shallow(text, maxDepth, maxChain) {
		return Range{}, false
	}
	tokens, _ := hclsyntax.LexConfig(text, path, hcl.InitialPos)
	return deepToken(tokens, maxDepth, maxChain)
}

// opening returns an upper bound of the depth from nestingBytes, in less time.
func opening(text []byte) int {
	if len(text) <= maxDepth {
		return len(text)
	}
	n := 0
	for _, b := range []string{"(", "{", "[", "?", `"`, "<<"} {
		n += bytes.Count(text, []byte(b))
	}
	return n
}

// nestingBytes counts the bytes that could nest and the bytes that could chain: an upper
// bound of both depths.
func nestingBytes(text []byte) (depth, chain int) {
	for i, b := range text {
		switch b {
		case '(', '{', '[', '?':
			depth++
		case '"':
			depth++
		case '<':
			if i > 0 && text[i-1] == '<' {
				depth++
			}
			chain++
		case '+', '-', '*', '/', '%', '!', '>', '=', '&', '|':
			chain++
		}
	}
	return depth - quotePairs(text, depth), chain
}

// quotePairs returns half of the number of quotes, because the other half closes. It
// counts only if the number matters.
func quotePairs(text []byte, depth int) int {
	if depth <= maxDepth {
		return 0
	}
	n := 0
	for _, b := range text {
		if b == '"' {
			n++
		}
	}
	return n / 2
}

// level is the state of one open bracket or template.
type level struct {
	depth, chain int
	lines        bool // a line break ends an expression
}

// deepToken walks the tokens with a stack of open brackets and templates.
func deepToken(tokens hclsyntax.Tokens, maxDepth, maxChain int) (Range, bool) {
	stack := []level{{lines: true}}
	depth, chain := 0, 0
	for i, t := range tokens {
		top := &stack[len(stack)-1]
		switch t.Type {
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenOBrace:
			if t.Type == hclsyntax.TokenOBrack {
				top.chain++
				chain++
			}
			if t.Type == hclsyntax.TokenTemplateControl {
				n := directive(tokens[i+1:])
				top.depth += n
				depth += n
			}
			stack = append(stack, level{lines: t.Type == hclsyntax.TokenOBrace})
			depth++
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			if len(stack) > 1 {
				depth -= top.depth + 1
				chain -= top.chain
				stack = stack[:len(stack)-1]
			}
		case hclsyntax.TokenQuestion:
			top.depth++
			depth++
		case hclsyntax.TokenComma, hclsyntax.TokenNewline:
			if t.Type == hclsyntax.TokenComma || top.lines {
				depth -= top.depth
				chain -= top.chain
				top.depth, top.chain = 0, 0
			}
		case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit, hclsyntax.TokenDot, hclsyntax.TokenColon, hclsyntax.TokenEqual, hclsyntax.TokenComment:
		default:
			top.chain++
			chain++
		}
		if depth > maxDepth || chain > maxChain {
			return t.Range, true
		}
	}
	return Range{}, false
}

// directive returns the change of depth of a template directive: "if" and "for" open,
// "endif" and "endfor" close.
func directive(after hclsyntax.Tokens) int {
	if len(after) == 0 || after[0].Type != hclsyntax.TokenIdent {
		return 0
	}
	switch string(after[0].Bytes) {
	case "if", "for":
		return 1
	case "endif", "endfor":
		return -1
	}
	return 0
}

// tooDeepJSON checks the brackets of a JSON file and the templates in its strings.
func tooDeepJSON(path string, text []byte) (Range, bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			if depth++; depth > maxDepth {
				return rangeAt(path, text, i), true
			}
		case ']', '}':
			depth--
		case '"':
			end := stringEnd(text, i)
			if deepString(text[i:end]) {
				return rangeAt(path, text, i), true
			}
			i = end - 1
		}
	}
	return Range{}, false
}

// stringEnd returns the offset after the JSON string that starts at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// deepString reports whether a JSON string nests too deeply as a template or an expression.
func deepString(quoted []byte) bool {
	if len(quoted) <= maxDepth {
		return false
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return false // the parser reports the error
	}
	if depth, chain := nestingBytes([]byte(s)); depth <= maxDepth && chain <= maxChain {
		return false
	}
	tokens, _ := hclsyntax.LexTemplate([]byte(s), "", hcl.InitialPos)
	if _, deep := deepToken(tokens, maxDepth, maxChain); deep {
		return true
	}
	tokens, _ = hclsyntax.LexExpression([]byte(s), "", hcl.InitialPos)
	_, deep := deepToken(tokens, maxDepth, maxChain)
	return deep
}

// rangeAt returns the range of one byte.
func rangeAt(path string, text []byte, at int) Range {
	start := hcl.Pos{Line: 1, Column: 1, Byte: at}
	for _, b := range text[:at] {
		start.Column++
		if b == '\n' {
			start.Line++
			start.Column = 1
		}
	}
	end := start
	end.Byte++
	end.Column++
	return Range{Filename: path, Start: start, End: end}
}
