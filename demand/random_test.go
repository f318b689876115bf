package demand

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"pgregory.net/rapid"
)

// A world is a graph of numbered cells. Each cell reads other cells and returns a sum. The messages and
// the value of a cell contain everything that it has read, so that two runs have the same outcome only if
// every cell has read the same.
type world struct {
	g        Graph
	reads    [][]int
	tolerant []bool // succeeds even if a cell that it reads has failed
	noisy    []bool // reports the values that it has read
	cells    []*Cell[int]
	yield    func() // called before each read, to vary the timing
}

func newWorld(n int) *world {
	w := &world{reads: make([][]int, n), tolerant: make([]bool, n), noisy: make([]bool, n), yield: func() {}}
	w.fresh()
	return w
}

// fresh makes all cells idle again.
func (w *world) fresh() {
	w.g = Graph{}
	w.cells = make([]*Cell[int], len(w.reads))
	for i := range w.cells {
		w.cells[i] = NewCell(name{string(rune('a' + i)), i + 1}, -1000, func(t *Task) (int, diag.List) { return w.compute(t, i) })
	}
}

func (w *world) compute(t *Task, i int) (int, diag.List) {
	sum, failed := i, false
	seen := ""
	for _, j := range w.reads[i] {
		w.yield()
		v, ok := w.cells[j].Get(t, line(i+1))
		sum += v
		failed = failed || !ok
		seen += fmt.Sprintf(" %d/%v", v, ok)
	}
	var ds diag.List
	if w.noisy[i] {
		ds = diag.Warnf("", line(i+1), "Saw", "%s", seen)
	}
	if failed && !w.tolerant[i] {
		ds = append(ds, Fail()...)
	}
	return sum, ds
}

// run reads every cell, in the given order, with a number of tasks.
func (w *world) run(tasks int, order func(int) int) {
	fs := make([]func(*Task), tasks)
	for k := range fs {
		fs[k] = func(t *Task) {
			for i := range w.cells {
				if i%tasks == k {
					w.cells[order(i)].Get(t, nil)
				}
			}
		}
	}
	together(&w.g, fs...)
}

// outcome returns the values, reads and messages of a world after a run.
func (w *world) outcome() string {
	out := report(&w.g)
	for i, c := range w.cells {
		v, ok := c.Peek()
		out += fmt.Sprintf("%c = %d %v %v, reads", 'a'+i, v, ok, c.Done())
		for _, r := range c.Reads() {
			n, _ := r.Node.What.Describe()
			out += " " + n
		}
		out += "\n"
	}
	return out
}

// expected computes the expected results without cells: which cells are ill (part of a cycle, or readers of
// an ill cell), and the values of the others.
func (w *world) expected() (ill []bool, cycles int, value []int, ok []bool) {
	n := len(w.reads)
	reach := make([][]bool, n) // reach[i][j]: i reads j, directly or indirectly
	for i := range reach {
		reach[i] = make([]bool, n)
		for _, j := range w.reads[i] {
			reach[i][j] = true
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	ill = make([]bool, n)
	for i := range n {
		first := reach[i][i]
		for j := range n {
			ill[i] = ill[i] || reach[j][j] && (i == j || reach[i][j])
			if j < i && reach[i][j] && reach[j][i] {
				first = false // i is in a component that was counted already
			}
		}
		if first {
			cycles++
		}
	}
	value, ok = make([]int, n), make([]bool, n)
	var eval func(i int)
	eval = func(i int) {
		value[i], ok[i] = i, true
		for _, j := range w.reads[i] {
			eval(j)
			value[i] += value[j]
			ok[i] = ok[i] && ok[j]
		}
	}
	for i := range n {
		if !ill[i] {
			eval(i)
		}
	}
	return ill, cycles, value, ok
}

// For random graphs, numbers of tasks, orders and timings: there is no deadlock, all cells are computed,
// values are correct, and every cell reads and reports the same in all runs.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "n")
		w := newWorld(n)
		for i := range n {
			w.reads[i] = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3).Draw(rt, fmt.Sprint("reads of ", i))
			w.tolerant[i] = rapid.Bool().Draw(rt, "tolerant")
			w.noisy[i] = rapid.Bool().Draw(rt, "noisy")
		}
		ill, cycles, value, ok := w.expected()
		seed := rapid.Uint64().Draw(rt, "seed")
		var first string
		for round := range 12 {
			w.fresh()
			tasks := 1 + round%4
			order := rand.New(rand.NewPCG(seed, uint64(round))).Perm(n)
			if round%3 > 0 {
				w.yield = func() { // safe for concurrent use
					for range rand.IntN(3) {
						runtime.Gosched()
					}
				}
			}
			within(t, func() { w.run(tasks, func(i int) int { return order[i] }) })
			got := w.outcome()
			if first == "" {
				first = got
			} else if diff := cmp.Diff(first, got); diff != "" {
				rt.Fatalf("round %d, %d tasks, order %v, differs from round 0:\n%s", round, tasks, order, diff)
			}
			reported := 0
			for _, m := range w.g.Diags() {
				if m.Summary == "Cycle" {
					reported++
				}
			}
			if reported != cycles {
				rt.Fatalf("%d cycles told, want %d:\n%s", reported, cycles, got)
			}
			for i, c := range w.cells {
				v, vok := c.Peek()
				switch {
				case !c.Done():
					rt.Fatalf("cell %d was not computed", i)
				case ill[i] && (v != -1000 || vok):
					rt.Fatalf("cell %d is ill, but has %d, %v", i, v, vok)
				case !ill[i] && (v != value[i] || vok != ok[i]):
					rt.Fatalf("cell %d has %d, %v, want %d, %v", i, v, vok, value[i], ok[i])
				}
			}
		}
	})
}
