package source

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// pieces contains the parts of random texts: brackets, operators, strings, comments and escapes.
var pieces = []string{
	"(", ")", "{", "}", "[", "]", "\"", "\"", "${", "%{", "~}", "}", "$${", "%%{", "$", "%", "\\", "\n", "\n", "\r\n", "a", " ", ",", "?", ":", "+", "=", "==", "...",
	"#", "//", "/*", "*/", "<<E\n", "<<-E\n", "E", "\nE\n", "\n  E\n", "\nE \n", "<<", "<", "if ", "for ", "endif", "\t", "é", "\x00", "'", "`", "~", "\ufeff", "!",
}

// TestShallow compares shallow with the check of the tokens: if shallow returns true, the tokens
// are within the limits.
func TestShallow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sure := 0
	for range 200000 {
		var b strings.Builder
		for range r.IntN(25) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		depth, chain := r.IntN(4), r.IntN(4)
		if !shallow([]byte(b.String()), depth, chain) {
			continue
		}
		sure++
		tokens, _ := hclsyntax.LexConfig([]byte(b.String()), "", hcl.InitialPos)
		if at, deep := deepToken(tokens[:len(tokens)-1], depth, chain); deep {
			t.Fatalf("%q is called shallow for %d and %d, and is not at %v", b.String(), depth, chain, at)
		}
	}
	if sure < 5000 {
		t.Errorf("only %d texts are called shallow", sure)
	}
}

// TestShallowFiles checks that shallow returns true for ordinary files with any number of blocks.
func TestShallowFiles(t *testing.T) {
	var b strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&b, "resource \"a\" \"r%d\" { # it's one (of many\n  x = \"${var.a}-%d \\\" {\"\n  y = [1, { a = (b ? 1 : 2) }]\n  /* } */ t = <<-EOT\n    ${a} }\n  EOT\n}\n", i, i)
	}
	text := []byte(b.String())
	if depth, chain := nestingBytes(text); depth <= maxDepth || chain <= maxChain {
		t.Fatal("the count of bytes alone would do")
	}
	if !shallow(text, 12, 100) {
		t.Error("it is not known to be shallow")
	}
	for _, deep := range []string{strings.Repeat("(", maxDepth+1), "a = " + strings.Repeat("1 ? 2 : ", maxDepth+1), "a = " + strings.Repeat("1 + ", maxChain+1), strings.Repeat("a {\n", maxDepth+1)} {
		if at, ok := TooDeep("a.tf", []byte(b.String()+deep)); !ok || at.Start.Byte < b.Len() {
			t.Errorf("what nests behind it is not found: %v", at)
		}
	}
}
