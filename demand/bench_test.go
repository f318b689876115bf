package demand

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/terrace-iac/terrace/diag"
)

// layered returns n cells in layers of 100, like a large configuration. Each cell reads three cells of the
// layer below.
func layered(n int) []*Cell[int] {
	cells := make([]*Cell[int], n)
	for i := range cells {
		at := line(i + 1)
		cells[i] = NewCell(name{"c", i + 1}, 0, func(t *Task) (int, diag.List) {
			sum := 1
			for k := range 3 {
				if j := i - 100 - k*7; j >= 0 {
					v, _ := cells[j].Get(t, at)
					sum = max(sum, v+1)
				}
			}
			return sum, nil
		})
	}
	return cells
}

// The time per node must be independent of their number, and below about 1.5 µs.
func BenchmarkLayered(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		for _, tasks := range []int{1, 2} {
			b.Run(fmt.Sprintf("%d/%d", n, tasks), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var g Graph
					cells := layered(n)
					var wg sync.WaitGroup
					for k := range tasks {
						wg.Go(func() {
							t := g.Task(context.Background())
							for i := len(cells) - 1 - k; i >= 0; i -= tasks {
								cells[i].Get(t, nil)
							}
						})
					}
					wg.Wait()
					if len(g.Diags()) > 0 {
						b.Fatal("messages")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}

// A chain needs a deep stack.
func BenchmarkChain(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var g Graph
				cells := chain(n, func(*Task, *Cell[int]) (int, diag.List) { return 1, nil })
				cells[0].Get(g.Task(context.Background()), nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}

// One cell reads all instances of a resource.
func BenchmarkWide(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var g Graph
				cells := make([]*Cell[int], n)
				for i := range cells {
					cells[i] = NewCell(name{"c", i + 1}, 0, func(*Task) (int, diag.List) { return i, nil })
				}
				NewCell(name{"all", 1}, 0, func(t *Task) (int, diag.List) {
					for _, c := range cells {
						c.Get(t, nil)
					}
					return 0, nil
				}).Get(g.Task(context.Background()), nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}

// A done cell is read without a lock.
func BenchmarkRead(b *testing.B) {
	var g Graph
	var c Cell[int]
	c.Ready(name{"c", 1}, 1)
	b.RunParallel(func(pb *testing.PB) {
		t := g.Task(context.Background())
		for pb.Next() {
			c.Get(t, nil)
		}
	})
}
