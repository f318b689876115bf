package console

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

// closed reports whether text closes every bracket, template and heredoc that it opens. Text
// with too many closing brackets counts as closed, and is a syntax error.
func closed(text string) bool {
	tokens, _ := hclsyntax.LexExpression([]byte(text), "", hcl.InitialPos)
	open := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			open++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCHeredoc,
			hclsyntax.TokenTemplateSeqEnd:
			open--
		}
	}
	return open <= 0
}

// completer returns a completer for the name before the cursor.
func completer(names []string) sys.Completer {
	slices.Sort(names)
	names = slices.Compact(names)
	return func(line string, pos int) (string, int, []string) {
		start := strings.LastIndexFunc(line[:pos], func(r rune) bool { return !strings.ContainsRune("._-:", r) && !isWord(r) }) + 1
		word := line[start:pos]
		if word == "" {
			return line, pos, nil
		}
		var found []string
		for _, n := range names {
			if strings.HasPrefix(n, word) {
				found = append(found, n)
			}
		}
		if len(found) == 0 {
			return line, pos, nil
		}
		whole := found[0]
		for _, n := range found[1:] {
			for !strings.HasPrefix(n, whole) {
				whole = whole[:len(whole)-1]
			}
		}
		if len(found) == 1 || whole != word {
			found = nil
		}
		return line[:start] + whole + line[pos:], start + len(whole), found
	}
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > 0x7f
}
