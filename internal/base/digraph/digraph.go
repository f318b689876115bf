// Package digraph draws a dependency graph as one SVG in layers. The SVG is readable on
// light and dark backgrounds and contains no script and no external font.
//
// Main types: Node and Spot. SVG draws a list of nodes; Layout returns their positions for
// other drawings. The one rule: the same nodes give the same bytes.
//
// # Layout
//
// Layers are ordered from left to right. A node is one layer right of the rightmost node
// that it depends on. A few sweeps in both directions move each node to the average
// position of its neighbors, which keeps lines short and costs n log n each. A layer with
// many nodes is folded into several columns, so that a graph of a thousand nodes is about
// as high as wide.
package digraph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Node is one box of the drawing.
type Node struct {
	Name  string
	Needs []int // indexes of the nodes that it depends on
	// Kind selects the style of the box: "", "stack", "excluded" or "outside".
	Kind string
	// Title is shown next to the name when the pointer is on the box; it may be empty.
	Title string
}

// Spot is the position of a node: its layer, column and row, and the upper left corner and
// width of its box. All columns share one grid of rows and are vertically centered. End is
// the right edge of the column.
type Spot struct {
	Layer, Column, Row int
	X, Y, Width, End   float64
}

const (
	rowHeight = 30.0
	boxHeight = 22.0
	letter    = 7.25 // width of a monospaced letter that is 12 pixels high
	padding   = 10.0
	channel   = 70.0 // between layers
	gutter    = 24.0 // between the columns of one layer
	margin    = 24.0
	longest   = 48 // maximum number of letters of a name
	sweeps    = 4
)

// Layout returns the positions of the nodes and the size of the drawing.
func Layout(nodes []Node) (spots []Spot, wide, high float64) {
	spots = make([]Spot, len(nodes))
	layers := assign(nodes, spots)
	needed := make([][]int, len(nodes))
	for i := range nodes {
		for _, n := range nodes[i].Needs {
			needed[n] = append(needed[n], i)
		}
	}
	order(nodes, needed, spots, layers)
	most, rows := max(20, int(math.Ceil(math.Sqrt(float64(len(nodes))*7)))), 0
	for _, l := range layers {
		rows = max(rows, rowsOf(len(l), most))
	}
	x := margin
	for _, l := range layers {
		x = columns(nodes, spots, l, [2]int{most, rows}, x) + channel
	}
	for i := range spots {
		high = max(high, spots[i].Y+boxHeight+margin)
	}
	return spots, max(x-channel+margin, 2*margin), max(high, 2*margin)
}

// assign computes the layer of each node. It ignores an edge that closes a cycle.
func assign(nodes []Node, spots []Spot) [][]int {
	const (
		fresh = iota
		open
		done
	)
	state := make([]int, len(nodes))
	type step struct{ node, next int }
	last := 0
	for i := range nodes {
		if state[i] != fresh {
			continue
		}
		state[i] = open
		for stack := []step{{i, 0}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			at := top.node
			if top.next < len(nodes[at].Needs) {
				n := nodes[at].Needs[top.next]
				top.next++
				if state[n] == fresh {
					state[n] = open
					stack = append(stack, step{n, 0})
				}
				continue
			}
			for _, n := range nodes[at].Needs {
				if state[n] == done {
					spots[at].Layer = max(spots[at].Layer, spots[n].Layer+1)
				}
			}
			state[at] = done
			last = max(last, spots[at].Layer)
			stack = stack[:len(stack)-1]
		}
	}
	layers := make([][]int, last+1)
	for i := range nodes {
		layers[spots[i].Layer] = append(layers[spots[i].Layer], i)
	}
	return layers
}

// order sorts each layer by the positions of the neighbors.
func order(nodes []Node, needed [][]int, spots []Spot, layers [][]int) {
	place := func(l []int) {
		for k, i := range l {
			spots[i].Y = (float64(k) + 0.5) / float64(len(l))
		}
	}
	for _, l := range layers {
		place(l)
	}
	weight := make([]float64, len(nodes))
	sweep := func(l []int, next func(i int) []int) {
		for _, i := range l {
			weight[i] = spots[i].Y
			if around := next(i); len(around) > 0 {
				sum := 0.0
				for _, n := range around {
					sum += spots[n].Y
				}
				weight[i] = sum / float64(len(around))
			}
		}
		slices.SortStableFunc(l, func(a, b int) int { return cmp.Compare(weight[a], weight[b]) })
		place(l)
	}
	for range sweeps {
		for _, l := range layers[1:] {
			sweep(l, func(i int) []int { return nodes[i].Needs })
		}
		for _, l := range slices.Backward(layers[:len(layers)-1]) {
			sweep(l, func(i int) []int { return needed[i] })
		}
	}
}

// rowsOf returns the number of rows of n nodes in columns of at most most rows.
func rowsOf(n, most int) int {
	if n == 0 {
		return 0
	}
	parts := (n + most - 1) / most
	return (n + parts - 1) / parts
}

// columns places the nodes of a layer, starting at x, and returns its right edge. high has
// the maximum number of rows of a column, and the rows of the highest column.
func columns(nodes []Node, spots []Spot, layer []int, high [2]int, x float64) float64 {
	if len(layer) == 0 {
		return x
	}
	rows := rowsOf(len(layer), high[0])
	for c, part := range slices.Collect(slices.Chunk(layer, rows)) {
		if c > 0 {
			x += gutter
		}
		widest := 0.0
		for _, i := range part {
			spots[i].Width = Width(Shown(nodes[i].Name))*letter + 2*padding
			widest = max(widest, spots[i].Width)
		}
		above := (high[1] - rows) / 2
		for k, i := range part {
			s := &spots[i]
			s.Column, s.Row, s.X, s.Y, s.End = c, above+k, x, margin+float64(above+k)*rowHeight, x+widest
		}
		x += widest
	}
	return x
}

// Width returns the width of a text in monospaced letters.
func Width(s string) float64 {
	n := 0.0
	for _, r := range s {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 1.75 // the width in browsers
		default:
			n++
		}
	}
	return n
}

// Clean replaces invisible characters, characters that change the text direction, and
// characters that XML forbids with their codes, so that no name looks like another one.
func Clean(s string) string {
	if strings.IndexFunc(s, unseen) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unseen(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unseen(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == '\ufffe' || r == '\uffff')
}

// Shown returns a name as drawn in a box. A long name is cut in the middle.
func Shown(name string) string {
	r := []rune(name)
	if len(r) <= longest {
		return name
	}
	half := (longest - 1) / 2
	return string(r[:half]) + "…" + string(r[len(r)-half:])
}
