package source

import "bytes"

// nest is the state of one open bracket, string, heredoc or template.
type nest struct {
	open         byte // the bracket, '"', '<' for a heredoc, '$' for a template inside; 0 for the file
	depth, chain int
	marker       []byte // the end marker of a heredoc
	flush        bool   // the end marker of a heredoc may be indented
}

// shallow reports whether a text certainly stays within the limits of depth and chain
// length. It may return false for any text, and does so where bytes alone do not determine
// the tokens.
func shallow(text []byte, maxDepth, maxChain int) bool {
	stack := []nest{{}}
	depth, chain := 0, 0
	push := func(n nest) {
		stack = append(stack, n)
		depth++
	}
	pop := func() {
		top := &stack[len(stack)-1]
		depth -= top.depth + 1
		chain -= top.chain
		stack = stack[:len(stack)-1]
	}
	deeper := func() {
		stack[len(stack)-1].depth++
		depth++
	}
	longer := func() {
		stack[len(stack)-1].chain++
		chain++
	}
	next := func(i int) byte {
		if i+1 < len(text) {
			return text[i+1]
		}
		return 0
	}
	for i := 0; i < len(text); i++ {
		if depth > maxDepth || chain > maxChain {
			return false
		}
		b := text[i]
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' {
			return false
		}
		top := &stack[len(stack)-1]
		if top.open == '"' || top.open == '<' {
			switch {
			case (b == '$' || b == '%') && next(i) == '{':
				if i > 0 && text[i-1] == b {
					return false // may or may not be an escape
				}
				if b == '%' {
					deeper() // counted as an opening one
				}
				push(nest{open: '$'})
				i++
			case top.open == '"' && b == '\\':
				if next(i) == '\n' || next(i) == '\r' {
					return false
				}
				i++
			case top.open == '"' && b == '"':
				pop()
			case top.open == '"' && (b == '\n' || b == '\r'):
				return false
			case b == '\n':
				line, _, _ := bytes.Cut(text[i+1:], []byte("\n"))
				if bare := bytes.TrimSpace(line); bytes.Equal(bare, top.marker) {
					if end := bytes.TrimSuffix(line, []byte("\r")); !bytes.HasSuffix(end, bare) || !top.flush && len(end) > len(bare) {
						return false
					}
					i += len(line)
					pop()
				}
			}
			continue
		}
		switch {
		case b == '$', b == '%' && next(i) == '{':
			return false // not valid in an expression
		case b == '#' || b == '/' && next(i) == '/':
			end := bytes.IndexByte(text[i:], '\n')
			if end < 0 {
				end = len(text)
			}
			i += end // an expression continues after a comment
		case b == '/' && next(i) == '*':
			end := bytes.Index(text[i+2:], []byte("*/"))
			if end < 0 {
				return false
			}
			i += 2 + end + 1
		case b == '<' && next(i) == '<':
			line, _, more := bytes.Cut(text[i+2:], []byte("\n"))
			marker, flush := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\r")), []byte("-"))
			if !more || !isMarker(marker) {
				return false
			}
			push(nest{open: '<', marker: marker, flush: flush})
			i += 1 + len(line) // the next line may be the end marker
		case b == '"', b == '(', b == '{', b == '[':
			if b == '[' {
				longer()
			}
			push(nest{open: b})
		case b == ')', b == ']', b == '}':
			if opened := top.open; opened != '(' && b == ')' || opened != '[' && b == ']' || opened != '{' && opened != '$' && b == '}' {
				return false
			}
			pop()
		case b == '?':
			deeper()
		case b == ',', b == '\n':
			if b == ',' || top.open == 0 || top.open == '{' {
				depth -= top.depth
				chain -= top.chain
				top.depth, top.chain = 0, 0
			}
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == ' ', b == '\t', b == '\r':
		default:
			longer()
		}
	}
	return len(stack) == 1 && depth <= maxDepth && chain <= maxChain
}

// isMarker reports whether a text is a plain name, as the marker of a heredoc.
func isMarker(text []byte) bool {
	for i, b := range text {
		if letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'; !letter && (i == 0 || b < '0' || b > '9') {
			return false
		}
	}
	return len(text) > 0
}
