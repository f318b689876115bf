package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"sync"
)

// instead contains words that names and comments must not use, with the field's words,
// which readers search for.
var instead = sync.OnceValue(func() []wording {
	return []wording{
		{regexp.MustCompile(`\b[tT]old\b`), "reported, shown, known, distinguished"},
		{regexp.MustCompile(`\b(hang|hangs|hung) on\b`), "depends on"},
		{regexp.MustCompile(`\b(put|puts) off\b`), "defers"},
		{regexp.MustCompile(`\b[cC]ircles?\b`), "cycle"},
		{regexp.MustCompile(`\b(is|are) worth\b`), "has the value"},
		{regexp.MustCompile(`\blaid\b`), "overlay, layout, formatted"},
		{regexp.MustCompile(`\bxpr\b`), "compiled expression"},
		{regexp.MustCompile(`\bputOff|PutOff`), "defer"},
		{regexp.MustCompile(`[a-z]Circles?([A-Z]|$)|^circles?[A-Z]`), "cycle"},
		{regexp.MustCompile(`[a-z]Told([A-Z]|$)|^told[A-Z]`), "reported, shown, known"},
		{regexp.MustCompile(`[a-z]Laid([A-Z]|$)|^laid[A-Z]`), "overlay, layout"},
	}
})

// A wording is a word and its replacement.
type wording struct {
	words *regexp.Regexp
	say   string
}

// words reports comments and names with words of instead.
func (c *checker) words() {
	for _, group := range c.f.AST.Comments {
		for _, line := range group.List {
			for i, text := range strings.Split(line.Text, "\n") {
				for _, w := range instead() {
					if found := w.words.FindString(text); found != "" {
						c.report(line.Pos(), "%q stands in line %d of the comment: say %s", found, i+1, w.say)
					}
				}
			}
		}
	}
	ast.Inspect(c.f.AST, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			for _, w := range instead() {
				if w.words.MatchString(id.Name) {
					c.report(id.Pos(), "the name %s: say %s", id.Name, w.say)
				}
			}
		}
		return true
	})
}
