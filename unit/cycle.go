package unit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// nameOf names an expression of the file: the local value or argument that it
// belongs to.
func (f *file) nameOf(x *xpr) string {
	if a, local := f.attrOf(x); a != nil {
		if local {
			return "local." + a.name
		}
		return a.name
	}
	return f.path
}

// attrOf finds the local value, or the argument at the top, that an expression
// stands in.
func (f *file) attrOf(x *xpr) (a *attr, local bool) {
	if x.Expression == nil || f.root == nil {
		return nil, false
	}
	at := x.at()
	in := func(b *block) *attr {
		if b == nil {
			return nil
		}
		for _, a := range b.attrs {
			if a.at.Start.Byte <= at.Start.Byte && at.End.Byte <= a.at.End.Byte {
				return a
			}
		}
		return nil
	}
	if a := in(f.root.first("locals")); a != nil {
		return a, true
	}
	return in(f.root), false
}

// cycle is the error about an expression that needs its own value. The same
// circle always gives the same message, wherever it was entered.
func (f *file) cycle(e *ev, x *xpr) *diag.Message {
	steps := f.localCircle(x)
	key := "cycle\x00" + f.path
	for _, s := range steps {
		key += "\x00" + s.name
	}
	if len(steps) == 0 {
		key += "\x00" + x.at().String()
	}
	return e.l.warns.Do(key, func() diag.List { return diag.List{f.circleMessage(x, steps)} })[0]
}

type localStep struct {
	name string
	at   source.Range // of the reference to the next
}

func (f *file) circleMessage(x *xpr, steps []localStep) *diag.Message {
	if len(steps) == 0 {
		at := x.at()
		m := &diag.Message{Code: "unit/cycle", Summary: "Circular reference",
			Detail: f.nameOf(x) + " needs its own value, through other files or through the blocks of this one, or by so long a chain of references that it is not followed to its end. Remove the reference."}
		if at.Filename != "" {
			m.At = &at
		}
		return m
	}
	at := steps[0].at
	m := &diag.Message{Code: "unit/cycle", Summary: "Circular reference", At: &at}
	var names []string
	for i, s := range steps {
		next := steps[(i+1)%len(steps)].name
		names = append(names, "local."+s.name)
		place := s.at
		m.Notes = append(m.Notes, diag.Note{Text: fmt.Sprintf("local.%s refers to local.%s", s.name, next), At: &place})
	}
	names = append(names, names[0])
	if len(steps) == 1 {
		m.Detail = names[0] + " refers to itself, so its value can never be known."
	} else {
		m.Detail = "These values depend on one another in a circle: " + strings.Join(names, " → ") + ". Remove one of the references."
	}
	return m
}

// localCircle finds the shortest circle of local values that an expression
// leads into, beginning with the first in alphabetical order.
func (f *file) localCircle(x *xpr) []localStep {
	locals := f.root.first("locals")
	if locals == nil {
		return nil
	}
	edges := map[string][]localStep{}
	for _, a := range locals.attrs {
		a.x.eachRef(func(ref hcl.Traversal) {
			if name, ok := localName(ref); ok && locals.attr(name) != nil {
				edges[a.name] = append(edges[a.name], localStep{name, ref.SourceRange()})
			}
		})
	}
	var start []string
	if a, local := f.attrOf(x); a != nil && local {
		start = append(start, a.name)
	} else {
		x.eachRef(func(ref hcl.Traversal) {
			if name, ok := localName(ref); ok {
				start = append(start, name)
			}
		})
	}
	seen := map[string]bool{}
	for queue := start; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, s := range edges[name] {
			queue = append(queue, s.name)
		}
	}
	onCircles(seen, edges)
	var best []localStep
	for i, name := range slices.Sorted(maps.Keys(seen)) {
		if i == maxSearched && best != nil {
			break
		}
		if c := circleThrough(name, edges); c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
	}
	return best
}

// maxSearched is through how many local values the shortest circle is looked for.
const maxSearched = 100

// onCircles leaves the names that lie on a circle or between two: again and
// again it takes away those that lead nowhere.
func onCircles(names map[string]bool, edges map[string][]localStep) {
	left := map[string]int{} // by name: how many of those it leads to are still there
	from := map[string][]string{}
	for n := range names {
		for _, s := range edges[n] {
			if names[s.name] {
				left[n]++
				from[s.name] = append(from[s.name], n)
			}
		}
	}
	var out []string
	for n := range names {
		if left[n] == 0 {
			out = append(out, n)
		}
	}
	for len(out) > 0 {
		n := out[len(out)-1]
		out = out[:len(out)-1]
		delete(names, n)
		for _, m := range from[n] {
			if left[m]--; left[m] == 0 {
				out = append(out, m)
			}
		}
	}
}

func localName(ref hcl.Traversal) (string, bool) {
	if ref.RootName() != "local" || len(ref) < 2 {
		return "", false
	}
	return stepName(ref[1])
}

// circleThrough is the shortest way from a name back to itself.
func circleThrough(name string, edges map[string][]localStep) []localStep {
	came := map[string]localStep{} // by name: who led there, and where
	queue := []string{name}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, s := range edges[n] {
			if _, seen := came[s.name]; seen {
				continue
			}
			came[s.name] = localStep{n, s.at}
			if s.name == name {
				var out []localStep
				for at := name; ; {
					out = append(out, came[at])
					at = came[at].name
					if at == name {
						slices.Reverse(out)
						return out
					}
				}
			}
			queue = append(queue, s.name)
		}
	}
	return nil
}
