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
	var nodes []digraph.Node
	place := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(g.nodes)) {
		if n := g.nodes[name]; n.kind.shape() != "" {
			place[name] = len(nodes)
			nodes = append(nodes, digraph.Node{Name: n.label, Title: name})
		}
	}
	for name, i := range place {
		nodes[i].Needs = g.drawn(name, place)
	}
	return digraph.SVG(w, title, nodes)
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
