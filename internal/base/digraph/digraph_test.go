package digraph

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// estate returns a graph of n nodes. Each node depends on at most two earlier nodes.
func estate(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("live/region-%d/unit-%04d", i%7, i)
		if i > 0 && i >= n/5 {
			nodes[i].Needs = []int{i / 3, i / 5}
		}
	}
	return nodes
}

// TestSizes draws graphs of several sizes. Boxes do not overlap, dependencies are to the
// left of a node, the text is valid XML, and the aspect ratio is limited.
func TestSizes(t *testing.T) {
	for _, n := range []int{0, 1, 10, 100, 1000} {
		nodes := estate(n)
		spots, width, height := Layout(nodes)
		taken := map[string]int{}
		for i, s := range spots {
			key := fmt.Sprint(s.X, s.Y)
			if other, ok := taken[key]; ok {
				t.Fatalf("%d nodes: %d lies over %d", n, i, other)
			}
			taken[key] = i
			if s.X < 0 || s.Y < 0 || s.X+s.Width > width || s.Y+boxHeight > height {
				t.Errorf("%d nodes: %d lies outside of the picture", n, i)
			}
			for _, need := range nodes[i].Needs {
				if o := spots[need]; o.X+o.Width >= s.X {
					t.Errorf("%d nodes: %d needs %d, which does not stand left of it", n, i, need)
				}
			}
		}
		if n == 1000 && (math.Max(width, height) > 8000 || width/height > 6 || height/width > 6) {
			t.Errorf("1000 nodes take %.0f × %.0f", width, height)
		}
		wellFormed(t, nodes)
	}
}

func wellFormed(t *testing.T, nodes []Node) string {
	t.Helper()
	var b strings.Builder
	if err := SVG(&b, "an <estate>", nodes); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestText draws names with XML special characters, long names, all kinds, and a cycle.
func TestText(t *testing.T) {
	text := wellFormed(t, []Node{
		{Name: "a<b>&\"c\"", Needs: []int{1}},
		{Name: strings.Repeat("ä", 100), Needs: []int{0}, Kind: "stack", Title: "long"},
		{Name: "self", Needs: []int{2}, Kind: "excluded"},
	})
	for _, want := range []string{"a&lt;b&gt;&amp;", `class="stack"`, "…", ": long</title>", "prefers-color-scheme:dark", "self needs self"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if strings.Contains(text, "http") && strings.Count(text, "http") != strings.Count(text, "http://www.w3.org/2000/svg") {
		t.Error("the picture refers to something outside")
	}
}

// TestLines checks that lines cross no box other than those that they connect: they turn at
// the edge of their column.
func TestLines(t *testing.T) {
	nodes := []Node{{Name: "a"}, {Name: strings.Repeat("wide", 10)}, {Name: "b", Needs: []int{0}}, {Name: "c", Needs: []int{1}}}
	spots, _, _ := Layout(nodes)
	if a, w := spots[0], spots[1]; a.End != w.X+w.Width || a.End <= a.X+a.Width {
		t.Errorf("the column of a ends at %v, and its widest box at %v", a.End, w.X+w.Width)
	}
	if text := wellFormed(t, nodes); !strings.Contains(text, fmt.Sprintf(" %.0f %.1fL%.0f ", spots[0].End+8, spots[0].Y+boxHeight/2, spots[0].X+spots[0].Width+2)) {
		t.Errorf("the line to a does not turn at the end of its column:\n%s", text)
	}
	// The only node of a layer is vertically centered.
	star := []Node{{Name: "root"}, {Name: "x", Needs: []int{0}}, {Name: "y", Needs: []int{0}}, {Name: "z", Needs: []int{0}}}
	if spots, _, _ := Layout(star); spots[0].Row != 1 {
		t.Errorf("the root stands in row %d", spots[0].Row)
	}
}

// TestClean checks that no name changes how others are displayed, or is invalid XML.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"live/a b": "live/a b", "日本語": "日本語", "a\u202eb": `a\u{202e}b`, "\x01": `\u{1}`, "a\tb\n": "a\tb\n", "\uffff": `\u{ffff}`, "a\xffb": "a\ufffdb",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
		wellFormed(t, []Node{{Name: in, Kind: "outside", Title: in}})
	}
	if Width("日本") <= Width("ab") {
		t.Error("wide letters are as narrow as others")
	}
}

// TestLarge draws a chain and a star of 20,000 nodes in linear time.
func TestLarge(t *testing.T) {
	start := time.Now()
	chain, star := make([]Node, 20000), make([]Node, 20000)
	for i := 1; i < len(chain); i++ {
		chain[i].Needs, star[i].Needs = []int{i - 1}, []int{0}
	}
	Layout(chain)
	Layout(star)
	if d := time.Since(start); d > time.Minute {
		t.Errorf("it took %s", d)
	}
}

// A line that skips a layer goes around its boxes.
func TestRoute(t *testing.T) {
	chain := []Node{{Name: "a"}, {Name: "b", Needs: []int{0}}, {Name: "c", Needs: []int{1}}, {Name: "d", Needs: []int{2, 0}}}
	for _, nodes := range [][]Node{chain, estate(60), estate(300)} {
		spots, _, _ := Layout(nodes)
		all := stands(spots)
		skipping := 0
		for i := range nodes {
			for _, n := range nodes[i].Needs {
				var b strings.Builder
				route(&b, all, &spots[i], &spots[n])
				var x, y float64
				for k, part := range strings.Split(b.String(), "L") {
					if k == 0 || strings.Count(b.String(), "L") == k {
						continue // the last piece leads to the box
					}
					skipping++
					_, _ = fmt.Sscanf(part, "%g %g", &x, &y)
					for j, s := range spots {
						if s.X-clear == x && y > s.Y && y < s.Y+boxHeight {
							t.Errorf("the line from %d to %d goes through the box of %d", i, n, j)
						}
					}
				}
			}
		}
		if len(nodes) == len(chain) && skipping != 2 {
			t.Errorf("the line from d to a passes %d columns, not 2", skipping)
		}
	}
}
