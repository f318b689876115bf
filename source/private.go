package source

import (
	"bytes"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// # Text that is never shown
//
// Messages show excerpts of configuration. They never show the text of values from
// variable files, unit inputs and backend configuration, because any of these can be
// secret. Layer.Secret is true for files that contain only such values. File.Private names
// the arguments and blocks of a configuration file that contain such values.
//
// The lines of these blocks are found from the tokens, without parsing: a message is most
// likely about a file that cannot be parsed. A block that is not closed extends to the end
// of the file.

// Secret reports whether files of this layer contain only values that are never shown.
func (l *Layer) Secret() bool {
	if l == nil {
		return false
	}
	switch l.Kind {
	case VarFile, Values, BackendFile, Environment, Flag, Prompt:
		return true
	}
	return false
}

// Shows reports whether excerpts of the lines from first to last, counted from 1, may be shown:
// whether none of them contains a private value. Lines that only contain a reference, such as
// `name = dependency.vpc.outputs.id`, may be shown.
func (f *File) Shows(first, last int) bool {
	return f.outside(first, last, func(n int) bool { return f.plain[n] })
}

// ShowsValues reports whether the values to which expressions in the lines from first to last refer
// may be shown. The value of a private argument may be secret, even if its line is shown because it
// only contains a reference.
func (f *File) ShowsValues(first, last int) bool {
	return f.outside(first, last, func(int) bool { return false })
}

// outside reports whether all lines from first to last are allowed or not private.
func (f *File) outside(first, last int, allowed func(n int) bool) bool {
	if f.Layer.Secret() {
		return false
	}
	if len(f.Private) == 0 {
		return true
	}
	f.private.Do(func() {
		f.hidden = privateLines(f.Bytes, f.Private, f.Open)
		if len(f.hidden) > 0 {
			f.plain = referenceLines(f.Bytes)
		}
	})
	return !slices.ContainsFunc(f.hidden, func(l lines) bool {
		for n := max(l.first, first); n <= min(l.last, last); n++ {
			if !allowed(n) {
				return true
			}
		}
		return false
	})
}

// referenceRoots contains the first names of references in unit and stack files.
var referenceRoots = []string{"local", "import", "include", "dependency", "feature", "values", "module", "each", "unit", "stack"}

// referenceLines returns the numbers of the lines that only contain a reference, or the assignment
// of a reference to a name. For a text with invalid tokens it returns none, because the limits of
// strings are then unknown.
func referenceLines(text []byte) map[int]bool {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	out, bad := map[int]bool{}, map[int]bool{}
	begun := 0 // line of the previous reference
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		line := t.Range.Start.Line
		switch t.Type {
		case hclsyntax.TokenInvalid, hclsyntax.TokenBadUTF8, hclsyntax.TokenQuotedNewline:
			return nil
		case hclsyntax.TokenNewline, hclsyntax.TokenComma, hclsyntax.TokenEOF:
			continue
		case hclsyntax.TokenIdent:
			next, steps := i+1, 0
			for ; next+1 < len(tokens) && tokens[next].Type == hclsyntax.TokenDot && tokens[next+1].Type == hclsyntax.TokenIdent; next += 2 {
				steps++
			}
			switch {
			case steps > 0 && slices.Contains(referenceRoots, string(t.Bytes)) && begun != line:
				out[line], begun = true, line
				i = next - 1
				continue
			case steps == 0 && next < len(tokens) && tokens[next].Type == hclsyntax.TokenEqual && begun != line:
				i = next // the name of an argument
				continue
			}
		}
		for n := line; n <= t.Range.End.Line; n++ {
			bad[n] = true
		}
	}
	for n := range bad {
		delete(out, n)
	}
	return out
}

// lines is the range of lines from first to last.
type lines struct{ first, last int }

// privateLines returns the lines of the arguments and blocks called names, except the
// arguments called open inside these blocks.
func privateLines(text []byte, names, open []string) []lines {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	var out []lines
	for i := 0; i < len(tokens); i++ {
		after, ok := named(tokens, i, names)
		if !ok {
			continue
		}
		end := i
		switch t := tokens[after]; t.Type {
		case hclsyntax.TokenEqual, hclsyntax.TokenColon:
			end = valueEnd(tokens, after+1)
			out = append(out, lines{tokens[i].Range.Start.Line, lastLine(tokens, end)})
		case hclsyntax.TokenOBrace:
			if tokens[min(after+1, len(tokens)-1)].Type == hclsyntax.TokenCBrace {
				continue // the block is empty
			}
			end = valueEnd(tokens, after)
			from := t.Range.Start.Line
			if next := tokens[min(after+1, len(tokens)-1)]; next.Type == hclsyntax.TokenNewline {
				from++ // the header's line contains no argument
			}
			out = append(out, without(tokens[:end], after+1, open, lines{from, lastLine(tokens, end)})...)
		}
		i = max(i, end-1)
	}
	return out
}

// without removes the lines of the arguments called open from the lines of a block. The
// body of the block starts at token i and ends with the tokens.
func without(tokens hclsyntax.Tokens, i int, open []string, of lines) []lines {
	if len(open) == 0 {
		return []lines{of}
	}
	var out []lines
	depth := 0
	for ; i < len(tokens); i++ {
		switch tokens[i].Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenOHeredoc:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCHeredoc:
			depth--
		}
		after, ok := named(tokens, i, open)
		if depth != 0 || !ok || after >= len(tokens) || tokens[after].Type != hclsyntax.TokenEqual {
			continue
		}
		end := valueEnd(tokens, after+1)
		first, last := tokens[i].Range.Start.Line, lastLine(tokens, end)
		if first < of.first || last >= of.last {
			continue // the same line may contain a private argument
		}
		if first > of.first {
			out = append(out, lines{of.first, first - 1})
		}
		of.first, i = last+1, max(i, end-1)
	}
	return append(out, of)
}

// named reports whether token i is one of names and starts an argument, a block or an
// object key. after is the token after the name and its labels.
func named(tokens hclsyntax.Tokens, i int, names []string) (after int, ok bool) {
	if i > 0 {
		switch tokens[i-1].Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenOBrace, hclsyntax.TokenCBrace, hclsyntax.TokenComma, hclsyntax.TokenComment:
		default:
			return 0, false
		}
	}
	text, after := word(tokens, i)
	if after == i || !slices.Contains(names, text) {
		return 0, false
	}
	for after < len(tokens) { // labels
		_, next := word(tokens, after)
		if next == after {
			return after, true
		}
		after = next
	}
	return 0, false
}

// word returns the identifier or quoted text at token i, and the index of the next token.
// The index is i if there is no such text.
func word(tokens hclsyntax.Tokens, i int) (string, int) {
	switch t := tokens[i]; {
	case t.Type == hclsyntax.TokenIdent:
		return string(t.Bytes), i + 1
	case t.Type == hclsyntax.TokenOQuote && i+2 < len(tokens) && tokens[i+1].Type == hclsyntax.TokenQuotedLit && tokens[i+2].Type == hclsyntax.TokenCQuote:
		return string(tokens[i+1].Bytes), i + 3
	}
	return "", i
}

// valueEnd returns the index of the token that ends the value at token i: a line break, a
// comma, or the closing bracket around it.
func valueEnd(tokens hclsyntax.Tokens, i int) int {
	depth := 0
	for ; i < len(tokens); i++ {
		switch tokens[i].Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			if depth--; depth < 0 {
				return i
			}
		case hclsyntax.TokenNewline, hclsyntax.TokenComma, hclsyntax.TokenComment:
			if depth == 0 && (tokens[i].Type != hclsyntax.TokenComment || bytes.HasSuffix(tokens[i].Bytes, []byte("\n"))) {
				return i // a comment token includes the line break
			}
		}
	}
	return len(tokens)
}

// lastLine returns the last line before token i.
func lastLine(tokens hclsyntax.Tokens, i int) int {
	if i >= len(tokens) {
		const all = int(^uint(0) >> 1)
		return all
	}
	return tokens[i].Range.Start.Line
}
