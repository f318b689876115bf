package digraph

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// style is the style sheet of a drawing. Colors follow the reader's setting for light or dark.
const style = `svg{background:#fff;font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
rect{fill:#eef3fb;stroke:#5b7db1}text{fill:#16202e;dominant-baseline:central}
.stack rect{fill:#f3ecfa;stroke:#8a63b5}.excluded rect{fill:#f4f4f4;stroke:#a5a5a5;stroke-dasharray:4 3}.excluded text{fill:#6a6a6a}
.outside rect{fill:#fff;stroke:#5b7db1;stroke-dasharray:2 3}.legend{pointer-events:none}
path{fill:none;stroke:#8fa0b8;stroke-opacity:.7}marker path{fill:#8fa0b8;stroke:none}
g:hover rect{stroke-width:2.5}path:hover{stroke:#d0552b;stroke-width:2.5;stroke-opacity:1}
@media (prefers-color-scheme:dark){svg{background:#12161d}rect{fill:#1c2839;stroke:#7fa4dc}text{fill:#e6edf6}
.stack rect{fill:#2b2138;stroke:#b892e6}.excluded rect{fill:#1b1d21;stroke:#70757d}.excluded text{fill:#a0a6ae}.outside rect{fill:#12161d;stroke:#7fa4dc}
path{stroke:#66758c}marker path{fill:#66758c}path:hover{stroke:#ff9466}}`

// SVG draws the nodes. A line leads from a node to a node that it depends on, to its left.
func SVG(w io.Writer, title string, nodes []Node) error {
	clean := make([]Node, len(nodes))
	for i, n := range nodes {
		n.Name, n.Title = Clean(n.Name), Clean(n.Title)
		clean[i] = n
	}
	nodes = clean
	spots, width, height := Layout(nodes)
	kinds := kindsOf(nodes)
	if len(kinds) > 0 {
		height += rowHeight
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-labelledby="title">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<style>%s</style>\n", html.EscapeString(Clean(title)), style)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>` + "\n")
	all := stands(spots)
	for i := range nodes {
		for _, n := range nodes[i].Needs {
			line(&b, nodes, spots, all, i, n)
		}
	}
	for i := range nodes {
		box(&b, &nodes[i], &spots[i])
	}
	legend(&b, kinds, height-margin-boxHeight)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// line draws a line to the edge of the target's column, and from there to the box.
func line(b *strings.Builder, nodes []Node, spots []Spot, all []stand, from, to int) {
	b.WriteString(`<path d="`)
	route(b, all, &spots[from], &spots[to])
	fmt.Fprintf(b, `" marker-end="url(#tip)"><title>%s needs %s</title></path>`+"\n", html.EscapeString(nodes[from].Name), html.EscapeString(nodes[to].Name))
}

// kindsOf returns the kinds that the legend contains.
func kindsOf(nodes []Node) []string {
	var out []string
	for i := range nodes {
		if k := nodes[i].Kind; k != "" && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// legend draws a sample box of each kind.
func legend(b *strings.Builder, kinds []string, y float64) {
	x := margin
	for _, k := range kinds {
		w := Width(k)*letter + 2*padding
		fmt.Fprintf(b, `<g class="%s legend"><rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="4"/><text x="%.0f" y="%.0f">%s</text></g>`+"\n",
			html.EscapeString(k), x, y, w, boxHeight, x+padding, y+boxHeight/2+1, html.EscapeString(k))
		x += w + gutter
	}
}

func box(b *strings.Builder, n *Node, s *Spot) {
	class := ""
	if n.Kind != "" {
		class = ` class="` + html.EscapeString(n.Kind) + `"`
	}
	title := n.Name
	if n.Title != "" {
		title += ": " + n.Title
	}
	fmt.Fprintf(b, `<g%s><title>%s</title><rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="4"/><text x="%.0f" y="%.0f">%s</text></g>`+"\n",
		class, html.EscapeString(title), s.X, s.Y, s.Width, boxHeight, s.X+padding, s.Y+boxHeight/2+1, html.EscapeString(Shown(n.Name)))
}
