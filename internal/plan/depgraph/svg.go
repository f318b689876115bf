package depgraph

import (
	"io"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/internal/base/digraph"
)

// SVG draws the graph of resources, root variables and providers. A line is a dependency,
// direct or through local values, outputs and variables of modules.
func (g *Graph) SVG(w io.Writer, title string) error {
	nodes, _ := g.nodesDrawn()
	for i := range nodes {
		nodes[i].Kind = ""
	}
	return digraph.SVG(w, title, nodes)
}

// Mermaid writes the same graph as SVG in the language of Mermaid. With cycles set, the edges within
// cycles are red.
func (g *Graph) Mermaid(w io.Writer, cycles bool) error {
	nodes, place := g.nodesDrawn()
	red := map[[2]int]bool{}
	if cycles {
		for _, c := range g.Cycles() {
			in := map[int]bool{}
			for _, name := range c {
				if i, ok := place[name]; ok {
					in[i] = true
				}
			}
			for i := range in {
				for _, to := range nodes[i].Needs {
					if in[to] {
						red[[2]int{i, to}] = true
					}
				}
			}
		}
	}
	return digraph.Mermaid(w, nodes, red)
}

// nodesDrawn returns the nodes that have a shape, and the index of each by its name.
func (g *Graph) nodesDrawn() ([]digraph.Node, map[string]int) {
	var nodes []digraph.Node
	place := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(g.nodes)) {
		n := g.nodes[name]
		if n.kind.shape() == "" {
			continue
		}
		place[name] = len(nodes)
		out := digraph.Node{Name: n.label, Title: name}
		switch n.kind {
		case provider:
			out.Kind = "provider"
		case variable:
			out.Kind = "variable"
		}
		nodes = append(nodes, out)
	}
	for name, i := range place {
		nodes[i].Needs = g.drawn(name, place)
	}
	return nodes, place
}

// drawn returns the positions of the drawn nodes that a node depends on.
func (g *Graph) drawn(name string, place map[string]int) []int {
	var out []int
	seen := map[string]bool{name: true}
	for open := []string{name}; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		for to := range g.nodes[at].needs {
			if seen[to] {
				continue
			}
			seen[to] = true
			if i, ok := place[to]; ok {
				out = append(out, i)
			} else {
				open = append(open, to)
			}
		}
	}
	slices.Sort(out)
	return out
}
