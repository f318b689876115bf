package demand

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// cycleReport finds the strongly connected components around the given nodes.
// It returns their members and one error for each component.
func cycleReport(start []*Node) (members map[*Node]bool, out diag.List) {
	if len(start) == 0 {
		return nil, nil
	}
	members = make(map[*Node]bool)
	for _, comp := range components(start) {
		for _, n := range comp {
			members[n] = true
		}
		out = append(out, describe(comp))
	}
	return members, out
}

// components returns the components with a cycle that can be reached from the
// given nodes. It is Tarjan's algorithm with an explicit stack.
func components(start []*Node) [][]*Node {
	type visit struct {
		n    *Node
		next int
	}
	index := map[*Node]int{}
	low := map[*Node]int{}
	onStack := map[*Node]bool{}
	var stack []*Node
	var out [][]*Node
	for _, root := range start {
		if _, seen := index[root]; seen {
			continue
		}
		work := []visit{{n: root}}
		for len(work) > 0 {
			v := &work[len(work)-1]
			n := v.n
			if v.next == 0 {
				if _, seen := index[n]; !seen {
					index[n], low[n] = len(index), len(index)
					stack = append(stack, n)
					onStack[n] = true
				}
			}
			reads := n.Reads()
			if v.next < len(reads) {
				m := reads[v.next].Node
				v.next++
				if _, seen := index[m]; !seen {
					work = append(work, visit{n: m})
				} else if onStack[m] {
					low[n] = min(low[n], index[m])
				}
				continue
			}
			work = work[:len(work)-1]
			if len(work) > 0 {
				p := work[len(work)-1].n
				low[p] = min(low[p], low[n])
			}
			if low[n] != index[n] {
				continue
			}
			var comp []*Node
			for {
				m := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				onStack[m] = false
				comp = append(comp, m)
				if m == n {
					break
				}
			}
			if len(comp) > 1 || readsItself(n) {
				out = append(out, comp)
			}
		}
	}
	return out
}

func readsItself(n *Node) bool {
	for _, r := range n.Reads() {
		if r.Node == n {
			return true
		}
	}
	return false
}

// describe returns the error about a component: the shortest cycle through the member that comes first in
// the source, with a note for each step.
func describe(comp []*Node) *diag.Message {
	in := make(map[*Node]bool, len(comp))
	for _, n := range comp {
		in[n] = true
	}
	first := slices.MinFunc(comp, compareNodes)
	name, at := first.What.Describe()
	path := written(first, shortestCycle(first, in))
	m := &diag.Message{Code: diag.CodeEvalCycle, Summary: "Cycle", At: at}
	if len(path) == 1 {
		if s, ok := first.What.(SelfReferencer); ok {
			m.Summary = s.SelfReference()
		}
		m.Detail = fmt.Sprintf("%s refers to itself, so its value can never be known. Remove the reference or replace it with the value that it should have.", name)
		m.Notes = []diag.Note{{Text: name + " refers to itself here", At: path[0].At}}
		return m
	}
	steps := []string{name}
	from := name
	for _, r := range path {
		to, _ := r.Node.What.Describe()
		steps = append(steps, to)
		m.Notes = append(m.Notes, diag.Note{Text: from + " refers to " + to, At: r.At})
		from = to
	}
	m.Detail = "These values depend on one another in a cycle, so none of them can be known: " + strings.Join(steps, " → ") + ". Remove one of the references."
	return m
}

// written removes the steps of a cycle that are not in the configuration: from a resource or module call to
// one of its instances, or to another cell with the same name. Other steps without a range get the range of
// the definition that refers.
func written(first *Node, path []Read) []Read {
	var out []Read
	from, at := first.What.Describe()
	for _, r := range path {
		to, declared := r.Node.What.Describe()
		inner := strings.HasPrefix(to, from+"[") || strings.HasPrefix(from, to+"[")
		if r.At != nil || to != from && !inner {
			if r.At == nil {
				r.At = at
			}
			out = append(out, r)
		}
		from, at = to, declared
	}
	if len(out) == 0 {
		return path
	}
	return out
}

// shortestCycle returns the reads of the shortest cycle through a node, by breadth-first search.
func shortestCycle(first *Node, in map[*Node]bool) []Read {
	type hop struct {
		from *Node
		read Read
	}
	came := map[*Node]hop{}
	queue := []*Node{first}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		reads := slices.Clone(n.Reads())
		slices.SortStableFunc(reads, func(a, b Read) int {
			return cmp.Or(compareRanges(a.At, b.At), compareNodes(a.Node, b.Node))
		})
		for _, r := range reads {
			if !in[r.Node] {
				continue
			}
			if _, seen := came[r.Node]; seen {
				continue
			}
			came[r.Node] = hop{n, r}
			if r.Node == first {
				var path []Read
				for at := first; ; {
					h := came[at]
					path = append(path, h.read)
					at = h.from
					if at == first {
						slices.Reverse(path)
						return path
					}
				}
			}
			queue = append(queue, r.Node)
		}
	}
	return nil
}

func compareNodes(a, b *Node) int {
	an, aa := a.What.Describe()
	bn, ba := b.What.Describe()
	return cmp.Or(compareRanges(aa, ba), cmp.Compare(an, bn))
}

func compareRanges(a, b *source.Range) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Or(cmp.Compare(a.Filename, b.Filename), cmp.Compare(a.Start.Byte, b.Start.Byte))
}
