// Package digraph draws what needs what as a picture: a self-contained SVG text in
// layers, readable on light and dark ground, without scripts and outside fonts.
//
// Main types: Node and Spot; SVG draws a list of nodes, Layout places them for others
// to draw. The one rule: the picture depends on the nodes alone, so that the same graph
// gives the same bytes.
//
// # Layout
//
// Layers go from left to right: a node stands one layer right of the last one that
// it needs. Within its layer it is moved to where its neighbors are, on average, in a
// few sweeps to and fro, which keeps lines short at a cost of n log n for each. A
// layer with many nodes is folded into several columns, so that the picture of a
// thousand nodes stays about as high as it is wide.
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

// A Node is one box of the picture.
type Node struct {
	Name  string
	Needs []int // indices of other nodes
	// Kind sets how the box looks: "" for an ordinary one, stack, excluded or outside.
	Kind string
	// Title is what stands beside the name when the box is pointed at; may be empty.
	Title string
}

// A Spot is where a node stands: its layer, its column in it and its row in that,
// and the left upper corner and the width of its box. Rows of all columns are of one
// grid, in which each column stands in the middle. End is where its column ends.
type Spot struct {
	Layer, Column, Row int
	X, Y, Width, End   float64
}

const (
	rowHeight = 30.0
	boxHeight = 22.0
	letter    = 7.25 // width of one, 12 pixels high, in monospaced type
	padding   = 10.0
	channel   = 70.0 // between layers
	gutter    = 24.0 // between the columns of one layer
	margin    = 24.0
	longest   = 48 // letters of a name
	sweeps    = 4
)

// Layout places the nodes and tells the size of the picture.
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

// assign finds the layer of each node. A line that closes a cycle does not count.
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

// order sorts each layer by where the neighbors stand.
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

// rowsOf is how many rows n nodes take in columns of at most so many.
func rowsOf(n, most int) int {
	if n == 0 {
		return 0
	}
	parts := (n + most - 1) / most
	return (n + parts - 1) / parts
}

// columns stacks the nodes of a layer from x on and tells where it ends. high are the
// most rows that a column may have, and those of the highest one.
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

// Width is how many letters wide a text is in monospaced type.
func Width(s string) float64 {
	n := 0.0
	for _, r := range s {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 1.75 // as browsers draw them
		default:
			n++
		}
	}
	return n
}

// Clean writes characters that are not seen, or that change the order in which others
// are seen, as their codes, so that no name looks like another one, and so that none
// is in a picture that XML forbids.
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

// Shown is a name as it stands in a box: long ones lose their middle.
func Shown(name string) string {
	r := []rune(name)
	if len(r) <= longest {
		return name
	}
	half := (longest - 1) / 2
	return string(r[:half]) + "…" + string(r[len(r)-half:])
}
