package digraph

import (
	"fmt"
	"io"
	"strings"
)

// Mermaid writes the nodes as a flowchart in the language of Mermaid, which GitHub and GitLab draw in
// Markdown. Arrows point from a node to the nodes that it needs. The edges in red, which are pairs of
// node indexes, are drawn in red.
func Mermaid(w io.Writer, nodes []Node, red map[[2]int]bool) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, n := range nodes {
		open, end := `["`, `"]`
		switch n.Kind {
		case "stack", "provider":
			open, end = `{{"`, `"}}`
		case "variable":
			open, end = `(["`, `"])`
		}
		fmt.Fprintf(&b, "  n%d%s%s%s\n", i, open, mermaidText(n.Name), end)
	}
	var marked []string
	edge := 0
	for i, n := range nodes {
		for _, to := range n.Needs {
			fmt.Fprintf(&b, "  n%d --> n%d\n", i, to)
			if red[[2]int{i, to}] {
				marked = append(marked, fmt.Sprint(edge))
			}
			edge++
		}
	}
	if len(marked) > 0 {
		fmt.Fprintf(&b, "  linkStyle %s stroke:red\n", strings.Join(marked, ","))
	}
	for _, style := range []struct{ kind, text string }{{"excluded", "stroke:red"}, {"outside", "stroke-dasharray:4"}} {
		var of []string
		for i, n := range nodes {
			if n.Kind == style.kind {
				of = append(of, fmt.Sprintf("n%d", i))
			}
		}
		if len(of) > 0 {
			fmt.Fprintf(&b, "  classDef %s %s\n  class %s %s\n", style.kind, style.text, strings.Join(of, ","), style.kind)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mermaidText escapes a text for a quoted label. Mermaid decodes #NUMBER; and has no other escapes.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range Clean(s) {
		if strings.ContainsRune("\"#<>&`\\", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
