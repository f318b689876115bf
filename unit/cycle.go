package unit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// cycleIn returns the error for an expression that needs its own value. A cycle gives the
// same message wherever the evaluation entered it.
func cycleIn(f *syntax.File, e *evaluation, x *syntax.Expr) *diag.Message {
	steps := localCycle(f, x)
	key := "cycle\x00" + f.Path
	for _, s := range steps {
		key += "\x00" + s.name
	}
	if len(steps) == 0 {
		key += "\x00" + x.At().String()
	}
	return e.l.warns.Pure(key, func() diag.List { return diag.List{cycleMessage(f, x, steps)} })[0]
}

type localStep struct {
	name string
	at   source.Range // the reference to the next local value
}

func cycleMessage(f *syntax.File, x *syntax.Expr, steps []localStep) *diag.Message {
	if len(steps) == 0 {
		at := x.At()
		m := &diag.Message{Code: diag.CodeUnitCycle, Summary: "Circular reference",
			Detail: f.NameOf(x) + " needs its own value, through other files or through the blocks of this one, or by so long a chain of references that it is not followed to its end. Remove the reference."}
		if at.Filename != "" {
			m.At = &at
		}
		return m
	}
	at := steps[0].at
	m := &diag.Message{Code: diag.CodeUnitCycle, Summary: "Circular reference", At: &at}
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
		m.Detail = "These values depend on one another in a cycle: " + strings.Join(names, " → ") + ". Remove one of the references."
	}
	return m
}

// localCycle returns the shortest cycle of local values that an expression leads to. It
// begins with the first name in alphabetical order.
func localCycle(f *syntax.File, x *syntax.Expr) []localStep {
	locals := f.Root.First("locals")
	if locals == nil {
		return nil
	}
	edges := map[string][]localStep{}
	for _, a := range locals.Attrs {
		a.Expr.EachRef(func(ref hcl.Traversal) {
			if name, ok := localName(ref); ok && locals.Attr(name) != nil {
				edges[a.Name] = append(edges[a.Name], localStep{name, ref.SourceRange()})
			}
		})
	}
	var start []string
	if a, local := f.AttrOf(x); a != nil && local {
		start = append(start, a.Name)
	} else {
		x.EachRef(func(ref hcl.Traversal) {
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
	onCycles(seen, edges)
	var best []localStep
	for i, name := range slices.Sorted(maps.Keys(seen)) {
		if i == maxSearched && best != nil {
			break
		}
		if c := cycleThrough(name, edges); c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
	}
	return best
}

// maxSearched is the number of local values up to which the shortest cycle is searched for.
const maxSearched = 100

// onCycles removes names that are on no cycle and between no cycles: it repeatedly removes
// the names without successors.
func onCycles(names map[string]bool, edges map[string][]localStep) {
	left := map[string]int{} // by name: the number of remaining successors
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
	return syntax.StepName(ref[1])
}

// cycleThrough returns the shortest path from a name back to itself.
func cycleThrough(name string, edges map[string][]localStep) []localStep {
	came := map[string]localStep{} // by name: the predecessor, and its reference
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
