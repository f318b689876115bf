package depgraph

import (
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
)

// shape returns the DOT shape of a kind. Kinds without a shape appear in edges only.
func (k kind) shape() string {
	switch k {
	case block, object:
		return "box"
	case provider:
		return "diamond"
	case variable:
		return "note"
	}
	return ""
}

// DOT returns the graph in the DOT language. With cycles set, the edges of each cycle are
// coloured.
func (g *Graph) DOT(cycles bool) string {
	var b strings.Builder
	b.WriteString("digraph {\n\tcompound = \"true\"\n\tnewrank = \"true\"\n\tsubgraph \"root\" {\n")
	names := slices.Sorted(maps.Keys(g.nodes))
	for _, name := range names {
		if n := g.nodes[name]; n.kind.shape() != "" {
			b.WriteString("\t\t" + quoted(name) + " [label = " + addr.Quote(n.label) + ", shape = \"" + n.kind.shape() + "\"]\n")
		}
	}
	var edges []string
	for _, name := range names {
		for to := range g.nodes[name].needs {
			edges = append(edges, "\t\t"+quoted(name)+" -> "+quoted(to)+"\n")
		}
	}
	slices.Sort(edges)
	for _, e := range edges {
		b.WriteString(e)
	}
	if cycles {
		for _, c := range g.Cycles() {
			for i, name := range c {
				b.WriteString("\t\t" + quoted(name) + " -> " + quoted(c[(i+1)%len(c)]) + " [color = \"red\", penwidth = \"2.0\"]\n")
			}
		}
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

func quoted(name string) string { return addr.Quote("[root] " + name) }

// Cycles returns cycles so that each node that is part of a cycle is part of a returned one. Each
// is the shortest through its first node.
func (g *Graph) Cycles() [][]string {
	var out [][]string
	done := map[string]bool{}
	for _, start := range slices.Sorted(maps.Keys(g.nodes)) {
		if done[start] {
			continue
		}
		if c := g.around(start); c != nil {
			for _, name := range c {
				done[name] = true
			}
			out = append(out, c)
		}
	}
	return out
}

// around returns the shortest path from a node back to itself, or nil if there is none.
func (g *Graph) around(start string) []string {
	from := map[string]string{}
	queue := []string{start}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		for _, to := range slices.Sorted(maps.Keys(g.nodes[name].needs)) {
			if to == start {
				way := []string{name}
				for name != start {
					name = from[name]
					way = append(way, name)
				}
				slices.Reverse(way)
				return way
			}
			if _, seen := from[to]; !seen {
				from[to] = name
				queue = append(queue, to)
			}
		}
	}
	return nil
}
