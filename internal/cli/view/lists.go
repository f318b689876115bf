package view

import (
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// list compares lists by a longest common subsequence, so that an inserted or removed element
// does not mark all later elements as changed. A removed element and a new one at the same
// position are shown as a change if alike returns true.
func (d *differ) list(p pair, f func(pair) *node) *node {
	n := &node{kind: sequence, op: p.start(), forces: p.replace.Marked()}
	b, a := slice(p.before), slice(p.after)
	add := func(i, j int) {
		var sub pair
		if i >= 0 {
			sub.before, sub.beforeS, sub.replace = b[i], p.beforeS.At(i), p.replace.At(i)
		}
		if j >= 0 {
			sub.after, sub.afterS, sub.replace = a[j], p.afterS.At(j), p.replace.At(j)
		}
		n.add("", f(sub))
	}
	n.children = make([]child, 0, max(len(a), len(b)))
	if len(b) == 0 || len(a) == 0 {
		for i := range b {
			add(i, -1)
		}
		for j := range a {
			add(-1, j)
		}
		return n
	}
	ids := newNumbering(len(b) + len(a))
	before, after := ids.all(b), ids.all(a)
	for j, v := range a {
		if !v.IsKnown() { // an unknown element matches null, as in OpenTofu, and is shown as changed
			after[j] = ids.of(cty.NullVal(cty.DynamicPseudoType))
		}
	}
	align(before, after, func(i, j int) bool { return alike(b[i], a[j]) }, add)
	return n
}

// alike reports whether a new element in place of a removed one is shown as its change: both
// are objects, or texts with a common line.
func alike(before, after cty.Value) bool {
	if isObject(before) && isObject(after) {
		return true
	}
	b, bIs := stringOf(before)
	a, aIs := stringOf(after)
	return bIs && aIs && shareLine(b, a)
}

// shareLine reports whether two texts have a line in common, including white space.
func shareLine(b, a string) bool {
	if !strings.Contains(b, "\n") && !strings.Contains(a, "\n") {
		return b == a
	}
	there := map[string]bool{}
	for s := range strings.SplitSeq(b, "\n") {
		there[s] = true
	}
	for s := range strings.SplitSeq(a, "\n") {
		if there[s] {
			return true
		}
	}
	return false
}

func isObject(v cty.Value) bool { return v.IsKnown() && shapeOf(v) == shapeObject }

// set compares without order. Elements on both sides are unchanged, and the others are removed
// or added.
func (d *differ) set(p pair, f func(pair) *node) *node {
	n := &node{kind: sequence, op: p.start(), forces: p.replace.Marked(), bare: true}
	b, a := slice(p.before), slice(p.after)
	ids := newNumbering(len(b) + len(a))
	bs, as := ids.all(b), ids.all(a)
	inAfter := make(map[int]int, len(a))
	for j, id := range as {
		inAfter[id] = j
	}
	matched := make([]bool, len(a))
	for i, id := range bs {
		sub := pair{before: b[i]}
		if j, ok := inAfter[id]; ok && a[j].IsKnown() {
			sub.after, matched[j] = a[j], true
		}
		n.add("", f(sub))
	}
	for j := range as {
		if !matched[j] {
			n.add("", f(pair{after: a[j]}))
		}
	}
	return n
}

// numbering maps equal values to equal numbers.
type numbering struct {
	ids map[string]int
	buf []byte
}

func newNumbering(n int) *numbering { return &numbering{ids: make(map[string]int, n)} }

func (n *numbering) all(vs []cty.Value) []int {
	out := make([]int, len(vs))
	for i, v := range vs {
		out[i] = n.of(v)
	}
	return out
}

func (n *numbering) of(v cty.Value) int {
	n.buf = appendKey(n.buf[:0], v)
	id, ok := n.ids[string(n.buf)]
	if !ok {
		id = len(n.ids)
		n.ids[string(n.buf)] = id
	}
	return id
}

// appendKey appends a key of the value. Two values have the same key exactly if equal reports
// true.
func appendKey(b []byte, v cty.Value) []byte {
	if !v.IsKnown() {
		return append(b, '?')
	}
	switch shapeOf(v) {
	case shapeNull:
		return append(b, '~')
	case shapeList:
		b = append(b, '[')
		for _, e := range slice(v) {
			b = append(appendKey(b, e), ',')
		}
		return append(b, ']')
	case shapeObject:
		b = append(b, '{')
		parts := elements(v)
		for _, name := range sortedNames(parts) {
			b = strconv.AppendQuote(b, name)
			b = append(appendKey(append(b, ':'), parts[name]), ',')
		}
		return append(b, '}')
	}
	switch ty := v.Type(); {
	case ty == cty.String:
		return strconv.AppendQuote(b, v.AsString())
	case ty == cty.Number:
		return v.AsBigFloat().Append(b, 'g', -1)
	case ty == cty.Bool && v.True():
		return append(b, 't')
	case ty == cty.Bool:
		return append(b, 'f')
	case ty.Equals(literal()):
		return append(append(b, '='), *v.EncapsulatedValue().(*string)...)
	}
	return append(b, v.GoString()...)
}

// align calls f for each step from before to after: (i, j) for elements that are unchanged or
// changed, (i, -1) for removed ones, and (-1, j) for new ones. alike(i, j) reports whether a
// removed and a new element are shown as a change.
func align(before, after []int, alike func(i, j int) bool, f func(i, j int)) {
	common := subsequence(before, after)
	i, j, k := 0, 0, 0
	for i < len(before) || j < len(after) {
		for i < len(before) && (k >= len(common) || before[i] != common[k]) {
			if j < len(after) && (k >= len(common) || after[j] != common[k]) && alike(i, j) {
				f(i, j)
				i, j = i+1, j+1
				continue
			}
			f(i, -1)
			i++
		}
		for j < len(after) && (k >= len(common) || after[j] != common[k]) {
			f(-1, j)
			j++
		}
		if k < len(common) {
			f(i, j)
			i, j, k = i+1, j+1, k+1
		}
	}
}

// maxCells is the largest table for subsequence, in cells. For longer lists, only unique
// values are matched.
const maxCells = 1 << 22

// subsequence returns a longest common subsequence. It skips the common start and end first,
// which does not change the result.
func subsequence(a, b []int) []int {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	out := append([]int(nil), a[:start]...)
	switch x, y := a[start:endA], b[start:endB]; {
	case len(x) == 0 || len(y) == 0:
	case len(x)*len(y) > maxCells:
		out = append(out, uniques(x, y)...)
	default:
		out = append(out, table(x, y)...)
	}
	return append(out, a[endA:]...)
}

func table(a, b []int) []int {
	w := len(a) + 1
	c := make([]int32, w*(len(b)+1)) // c[j*w+i] is the length for a[:i] and b[:j]
	for j := 1; j <= len(b); j++ {
		for i := 1; i <= len(a); i++ {
			if a[i-1] == b[j-1] {
				c[j*w+i] = c[(j-1)*w+i-1] + 1
			} else {
				c[j*w+i] = max(c[(j-1)*w+i], c[j*w+i-1])
			}
		}
	}
	out := make([]int, c[len(c)-1])
	i, j, k := len(a), len(b), len(out)
	for k > 0 {
		switch {
		case a[i-1] == b[j-1]:
			k--
			out[k] = a[i-1]
			i, j = i-1, j-1
		case c[j*w+i-1] > c[(j-1)*w+i]:
			i--
		default:
			j--
		}
	}
	return out
}

// uniques returns the longest sequence of values that occur once on each side and are in the
// same order on both.
func uniques(a, b []int) []int {
	type count struct{ a, b, at int }
	counts := make(map[int]*count)
	get := func(v int) *count {
		c := counts[v]
		if c == nil {
			c = new(count)
			counts[v] = c
		}
		return c
	}
	for _, v := range a {
		get(v).a++
	}
	for j, v := range b {
		c := get(v)
		c.b, c.at = c.b+1, j
	}
	type link struct {
		value int
		prev  int
	}
	var links []link
	var tails []int // indexes into links, by the length of the sequence that ends there
	for _, v := range a {
		c := counts[v]
		if c.a != 1 || c.b != 1 {
			continue
		}
		lo, hi := 0, len(tails)
		for lo < hi {
			mid := (lo + hi) / 2
			if counts[links[tails[mid]].value].at < c.at {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		l := link{v, -1}
		if lo > 0 {
			l.prev = tails[lo-1]
		}
		links = append(links, l)
		if lo == len(tails) {
			tails = append(tails, len(links)-1)
		} else {
			tails[lo] = len(links) - 1
		}
	}
	if len(tails) == 0 {
		return nil
	}
	out := make([]int, len(tails))
	for k, at := len(out)-1, tails[len(tails)-1]; k >= 0; k-- {
		out[k] = links[at].value
		at = links[at].prev
	}
	return out
}
