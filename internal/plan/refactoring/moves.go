// Package refactoring reads moved and removed blocks and changes the addresses in state
// accordingly.
//
// Main types: Moved and Removals. The one rule: the blocks must satisfy rules that make their
// order irrelevant, so that any order results in the same state.
package refactoring

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/state"
)

// Moved is the state after moves.
type Moved struct {
	State *state.State
	From  map[addr.Instance]addr.Instance // new address to old address of moved instances
	Open  []Open
}

// Apply moves instances in state according to moved blocks. It also moves instances if count
// was added to or removed from a block.
func Apply(tree *module.Tree, early module.Options, s *state.State) (Moved, diag.List) {
	out := Moved{State: s, From: map[addr.Instance]addr.Instance{}}
	stmts, ds := moveStatements(tree, early)
	more, open := checkMoves(stmts)
	ds, out.Open = append(ds, more...), open
	if ds.HasErrors() || len(s.Resources) == 0 {
		return out, ds
	}
	index := newIndex(stmts)
	var blocked []string
	target := map[addr.Instance]addr.Instance{} // old address to new address
	reached := map[addr.Instance]bool{}
	for _, r := range s.Sorted() {
		for _, k := range r.Keys() {
			a := r.Addr.Instance(k)
			to, next := index.follow(a, func(a addr.Instance) bool { return s.Instance(a) != nil || reached[a] })
			if to != a {
				target[a] = to
				reached[to] = true
			}
			if to != next {
				blocked = append(blocked, fmt.Sprintf("  - %s could not move to %s", to, next))
			}
		}
	}
	impliedMoves(tree, s, target, reached)
	if len(target) > 0 {
		d := s.Edit()
		for _, a := range slices.SortedFunc(maps.Keys(target), addr.Instance.Compare) { // none of the new addresses is occupied
			d.MoveInstance(a, target[a])
			out.From[target[a]] = a
		}
		out.State = d.Freeze()
	}
	return out, append(ds, unresolved(blocked)...)
}

// unresolved warns about moves that are blocked.
func unresolved(blocked []string) diag.List {
	if len(blocked) == 0 {
		return nil
	}
	return diag.Warnf(diag.CodePlanMoves, nil, "Unresolved resource instance address changes", "Terrace tried to adjust resource instance addresses in the prior state based on change information recorded in the configuration, but some adjustments did not succeed due to existing objects already at the intended addresses:\n\n%s\n\nTerrace has planned to destroy these objects. If this is not what you want, give the objects other addresses with \"terrace state mv\".", strings.Join(blocked, "\n"))
}

// index finds the statements that may apply to an address. The most specific statement comes
// first, in any order of blocks: a move of one instance precedes a move of all instances, and a
// move of a nested module precedes a move of its parent.
type index struct {
	count     int
	modules   []*moveStatement
	resources map[addr.Resource][]*moveStatement
}

func newIndex(stmts []*moveStatement) *index {
	x := &index{count: len(stmts), resources: map[addr.Resource][]*moveStatement{}}
	for _, s := range stmts {
		if s.from.IsModule() {
			x.modules = append(x.modules, s)
		} else {
			x.resources[s.from.Resource] = append(x.resources[s.from.Resource], s)
		}
	}
	slices.SortStableFunc(x.modules, specificFirst)
	for _, list := range x.resources {
		slices.SortStableFunc(list, specificFirst)
	}
	return x
}

// specificFirst sorts statements: longer addresses first, then addresses with more keys.
func specificFirst(a, b *moveStatement) int {
	depthA, keysA := a.specificity()
	depthB, keysB := b.specificity()
	return cmp.Or(cmp.Compare(depthB, depthA), cmp.Compare(keysB, keysA), cmp.Compare(len(a.in.Path), len(b.in.Path)))
}

// specificity returns the length of the from address as seen from the root module, and the
// number of its steps that require a certain key. Steps into the statement's module match any
// key, and so does the last step unless the statement is about one instance.
func (s *moveStatement) specificity() (depth, keys int) {
	steps := len(s.from.Module.Steps())
	depth, keys = len(s.in.Path.Calls())+steps, steps
	if s.from.IsModule() {
		keys--
	}
	if s.exact {
		keys++
	}
	return depth, keys
}

// follow applies statements to an address until none matches or the next address is occupied.
// The statement that moves an object away from an address is processed before one that moves
// another object there, so that each object moves as far as possible. next is the address to
// which it should have moved; it equals to if nothing is in the way.
func (x *index) follow(a addr.Instance, taken func(addr.Instance) bool) (to, next addr.Instance) {
	for range x.count {
		next = x.step(a)
		if next == a || taken(next) {
			return a, next
		}
		a = next
	}
	return a, a
}

// step applies the matching statement once.
func (x *index) step(a addr.Instance) addr.Instance {
	for _, list := range [][]*moveStatement{x.resources[a.Resource], x.modules} {
		for _, s := range list {
			if to, ok := s.apply(a); ok {
				return to
			}
		}
	}
	return a
}

// apply moves an address if the statement matches it.
func (s *moveStatement) apply(a addr.Instance) (addr.Instance, bool) {
	steps := a.Module.Steps()
	base := len(s.in.Path.Calls())
	if len(steps) < base {
		return a, false
	}
	for i, name := range s.in.Path.Calls() {
		if steps[i].Name != name {
			return a, false
		}
	}
	from, to := s.from.Module.Steps(), s.to.Module.Steps()
	rest := steps[base:]
	prefix := steps[:base:base]
	if s.from.IsModule() {
		if len(rest) < len(from) {
			return a, false
		}
		key, ok := matchSteps(from, rest[:len(from)], s.exact)
		if !ok {
			return a, false
		}
		into := slices.Clone(to)
		if !s.exact {
			into[len(into)-1].Key = key
		}
		moved := append(append(prefix, into...), rest[len(from):]...)
		out := addr.Instance{Module: addr.ModuleFromSteps(moved), Resource: a.Resource, Key: a.Key}
		return out, out != a
	}
	if len(rest) != len(from) || a.Resource != s.from.Resource || !slices.Equal(rest, from) {
		return a, false
	}
	if s.exact && a.Key != s.from.Key {
		return a, false
	}
	out := addr.Instance{Module: addr.ModuleFromSteps(append(prefix, to...)), Resource: s.to.Resource, Key: a.Key}
	if s.exact {
		out.Key = s.to.Key
	}
	return out, out != a
}

// matchSteps compares a module path with that of a statement. The last step may have any key
// unless exact is set.
func matchSteps(want, have []addr.Step, exact bool) (addr.Key, bool) {
	last := len(want) - 1
	for i := range want {
		if want[i].Name != have[i].Name || (i < last || exact) && want[i].Key != have[i].Key {
			return addr.Key{}, false
		}
	}
	return have[last].Key, true
}

// impliedMoves adds moves between the instance without a key and the first counted instance
// where the configuration changed from one form to the other.
func impliedMoves(tree *module.Tree, s *state.State, target map[addr.Instance]addr.Instance, reached map[addr.Instance]bool) {
	for _, r := range s.Sorted() {
		for _, k := range r.Keys() {
			a := r.Addr.Instance(k)
			now := a
			if t, ok := target[a]; ok {
				now = t
			}
			to := impliedMove(tree, now)
			if to == now || s.Instance(to) != nil || reached[to] {
				continue
			}
			target[a] = to
			reached[to] = true
		}
	}
}

func impliedMove(tree *module.Tree, a addr.Instance) addr.Instance {
	n := tree.Root
	steps := a.Module.Steps()
	for i, step := range steps {
		child := n.Calls[step.Name]
		if child == nil {
			return a
		}
		steps[i].Key = impliedKey(step.Key, child.Call.Repeat.Count != nil, child.Call.Repeat.ForEach != nil)
		n = child
	}
	out := addr.Instance{Module: a.Module, Resource: a.Resource, Key: a.Key}
	if len(steps) > 0 {
		out.Module = addr.ModuleFromSteps(steps)
	}
	if r := n.Config.Resources[a.Resource]; r != nil {
		out.Key = impliedKey(a.Key, r.Repeat.Count != nil, r.Repeat.ForEach != nil)
	}
	return out
}

func impliedKey(k addr.Key, counted, keyed bool) addr.Key {
	switch {
	case counted && k.Kind == addr.NoKey:
		return addr.Int(0)
	case !counted && !keyed && k == addr.Int(0):
		return addr.Key{}
	}
	return k
}
