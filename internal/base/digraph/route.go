package digraph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// # Lines that skip layers
//
// A line between neighboring columns uses the channel between them. A longer line would
// cross the boxes of the columns between. In each of these columns it keeps the height of
// the straight line if no box is there, else it uses the gap above or below the box. A gap
// is as wide as two lines. The pointer highlights the lines of a box.

// clear is the distance from a column at which a line reaches its height.
const clear = 6.0

// A stand is a column of the layout, with the rows that contain boxes.
type stand struct {
	x, end float64
	rows   map[int]bool
}

// stands returns the columns of a layout, from right to left.
func stands(spots []Spot) []stand {
	at := map[float64]int{}
	var out []stand
	for i := range spots {
		s := &spots[i]
		k, ok := at[s.X]
		if !ok {
			k = len(out)
			at[s.X] = k
			out = append(out, stand{s.X, s.End, map[int]bool{}})
		}
		out[k].rows[s.Row] = true
	}
	slices.SortFunc(out, func(a, b stand) int { return cmp.Compare(b.x, a.x) })
	return out
}

// pass returns the height nearest to y at which a line can cross the column.
func (c *stand) pass(y float64) float64 {
	const gap = (rowHeight - boxHeight) / 2
	row := math.Floor((y - margin + gap) / rowHeight)
	if !c.rows[int(row)] {
		return y
	}
	above := margin + row*rowHeight - gap
	if y-above < rowHeight/2 {
		return above
	}
	return above + rowHeight
}

// route writes the curves of a line from the left side of a box to the column of another box.
func route(b *strings.Builder, all []stand, from, to *Spot) {
	x1, y1, x2, y2 := from.X, from.Y+boxHeight/2, to.End+8, to.Y+boxHeight/2
	fmt.Fprintf(b, "M%.0f %.1f", x1, y1)
	x, y := x1, y1
	first, _ := slices.BinarySearchFunc(all, from.X, func(c stand, x float64) int { return cmp.Compare(x, c.x) })
	for i := first + 1; i < len(all) && all[i].x > to.X; i++ {
		c := &all[i]
		at := c.pass(y1 + (y2-y1)*(x1-(c.x+c.end)/2)/(x1-x2))
		bend := (x - c.end - clear) / 2
		fmt.Fprintf(b, "C%.0f %.1f %.0f %.1f %.0f %.1fL%.0f %.1f", x-bend, y, c.end+clear+bend, at, c.end+clear, at, c.x-clear, at)
		x, y = c.x-clear, at
	}
	bend := (x - x2) / 2
	if x == x1 {
		bend = max(channel*0.6, bend)
	}
	fmt.Fprintf(b, "C%.0f %.1f %.0f %.1f %.0f %.1fL%.0f %.1f", x-bend, y, x2+bend, y2, x2, y2, to.X+to.Width+2, y2)
}
