package diag

import "strings"

// Names are the names that the program uses for itself in texts: those of the tool that it
// emulates. The zero value is the program's own names.
type Names struct{ product, program string }

// NamesOf returns the names of the product, for sentences, and of its program, for command
// lines.
func NamesOf(product, program string) Names { return Names{product, program} }

// The program's own names, which messages contain.
const (
	ownProduct = "Terrace"
	ownProgram = "terrace"
)

// Product returns the name for sentences, such as "Terrace".
func (n Names) Product() string {
	if n.product == "" {
		return ownProduct
	}
	return n.product
}

// Program returns the name for command lines, such as "terrace".
func (n Names) Program() string {
	if n.program == "" {
		return ownProgram
	}
	return n.program
}

// Text returns the text of a message with the names in place of the program's own. It changes
// the product's name as a word of a sentence, and the program's name in command lines, which are
// quoted or indented. Other quoted words, and parts of paths and of longer names, stay as they
// are, because they may be the user's.
func (n Names) Text(text string) string {
	if n.Product() != ownProduct {
		text = replace(text, ownProduct, n.Product(), isWord)
	}
	if n.Program() != ownProgram {
		text = replace(text, ownProgram, n.Program(), isCommandLine)
	}
	return text
}

// replace replaces old by name if is reports true for the texts before and after it.
func replace(text, old, name string, is func(before, after string) bool) string {
	var b strings.Builder
	done := 0
	for at := 0; ; {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		start := at + i
		at = start + len(old)
		if is(text[:start], text[at:]) {
			b.WriteString(text[done:start] + name)
			done = at
		}
	}
	return b.String() + text[done:]
}

// isWord reports whether a name between two texts is a word of a sentence.
func isWord(before, after string) bool {
	if before != "" && !strings.ContainsRune(" \t\n(", rune(before[len(before)-1])) {
		return false
	}
	after = strings.TrimPrefix(after, "'s")
	if after != "" && strings.ContainsRune(".?!", rune(after[0])) {
		after = after[1:]
		return after == "" || strings.ContainsRune(" \t\n)", rune(after[0]))
	}
	return after == "" || strings.ContainsRune(" \t\n),:;", rune(after[0]))
}

// isCommandLine reports whether a name between two texts begins a command line.
func isCommandLine(before, after string) bool {
	words, ok := strings.CutPrefix(after, " ")
	if words = strings.TrimPrefix(words, "-"); !ok || words == "" || words[0] < 'a' || words[0] > 'z' {
		return false
	}
	if before != "" && strings.ContainsRune("\"`'", rune(before[len(before)-1])) {
		return true
	}
	indent := before[strings.LastIndexByte(before, '\n')+1:]
	return indent == "\t" || len(indent) > 1 && strings.Trim(indent, " ") == ""
}

// in returns the names to use in m. Conditions, deprecations and providers' messages contain the
// words of an author outside of the program, which must not change.
func (n Names) in(m *Message) Names {
	switch m.Code {
	case Condition, CodeEvalDeprecatedSource, CodeEvalDeprecatedVariable, CodeEvalDeprecatedByProvider, CodeProviderMessage:
		return Names{}
	}
	return n
}
