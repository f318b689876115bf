// Package moves reads moved and removed blocks and changes the addresses in state
// as they say.
//
// Main types: Moved and Removals. The one rule: the blocks are held to what makes
// their order irrelevant, so that any order gives the same state.
package moves

import (
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/state"
)

// Moved is state after moves.
type Moved struct {
	State *state.State
	From  map[addr.Instance]addr.Instance // new address to old, for those that moved
}

// Apply changes the addresses in state as moved blocks say, and where count
// was added to a block or taken away.
func Apply(tree *module.Tree, early module.Options, s *state.State) (Moved, diag.List) {
	out := Moved{State: s, From: map[addr.Instance]addr.Instance{}}
	stmts, ds := moveStatements(tree, early)
	ds = append(ds, checkMoves(tree, stmts)...)
	if ds.HasErrors() || len(s.Resources) == 0 {
		return out, ds
	}
	target := map[addr.Instance]addr.Instance{} // old to new
	for _, r := range s.Sorted() {
		for _, k := range r.Keys() {
			a := r.Addr.Instance(k)
			if to := follow(stmts, a); to != a {
				target[a] = to
			}
		}
	}
	impliedMoves(tree, s, target)
	if len(target) == 0 {
		return out, ds
	}
	return out.carryOut(s, target, ds)
}

// carryOut moves instances; one whose new address is taken stays, with a warning.
func (out Moved) carryOut(s *state.State, target map[addr.Instance]addr.Instance, ds diag.List) (Moved, diag.List) {
	d := s.Edit()
	var blocked []addr.Instance
	olds := make([]addr.Instance, 0, len(target))
	for a := range target {
		olds = append(olds, a)
	}
	slices.SortFunc(olds, addr.Instance.Compare)
	taken := func(a addr.Instance) bool {
		if s.Instance(a) == nil {
			return false
		}
		_, leaves := target[a]
		return !leaves
	}
	var doing []addr.Instance
	claimed := map[addr.Instance]addr.Instance{}
	for _, a := range olds {
		to := target[a]
		if _, twice := claimed[to]; twice || taken(to) {
			blocked = append(blocked, a)
			continue
		}
		claimed[to] = a
		doing = append(doing, a)
	}
	blocked = append(blocked, out.inOrder(doing, target, d)...)
	out.State = d.Freeze()
	if len(blocked) > 0 {
		text := ""
		for _, a := range blocked {
			text += fmt.Sprintf("\n  - %s could not move to %s", a, target[a])
		}
		ds = append(ds, diag.Warnf(nil, "Unresolved resource instance address changes", "Terrace tried to adjust resource instance addresses in the prior state based on change information recorded in the configuration, but some adjustments did not succeed due to existing objects already at the intended addresses:\n%s\n\nTerrace has planned to destroy these objects. If this is not what you want, give the objects other addresses with \"terrace state mv\".", text)...)
	}
	return out, ds
}

// inOrder moves instances: an address that another one leaves is moved into after
// that. It returns those whose new address turned out to stay taken. What goes
// round in a circle, which checkMoves reports, stays.
func (out Moved) inOrder(doing []addr.Instance, target map[addr.Instance]addr.Instance, d *state.Draft) (stuck []addr.Instance) {
	next := make(map[addr.Instance]addr.Instance, len(doing)) // who is to have an address
	waits := make(map[addr.Instance]bool, len(doing))
	for _, a := range doing {
		waits[a] = true
		next[target[a]] = a
	}
	for _, a := range doing {
		if waits[target[a]] {
			continue // it is moved when that is done
		}
		for ok := waits[a]; ok; a, ok = next[a] {
			if d.MoveInstance(a, target[a]) {
				out.From[target[a]] = a
			} else {
				stuck = append(stuck, a)
			}
			delete(waits, a)
		}
	}
	return stuck
}

// follow applies statements to an address until none fits any more.
func follow(stmts []*moveStatement, a addr.Instance) addr.Instance {
	for range len(stmts) + 1 {
		next := a
		for _, s := range stmts {
			if to, ok := s.apply(a); ok {
				next = to
				break
			}
		}
		if next == a {
			return a
		}
		a = next
	}
	return a
}

// apply moves one address if the statement is about it.
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
		out := slices.Clone(to)
		if !s.exact {
			out[len(out)-1].Key = key
		}
		moved := append(append(prefix, out...), rest[len(from):]...)
		return addr.Instance{Module: addr.ModuleFromSteps(moved), Resource: a.Resource, Key: a.Key}, true
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

// matchSteps compares a module path with a statement's; the last step may have
// any key unless the statement is exact.
func matchSteps(want, have []addr.Step, exact bool) (addr.Key, bool) {
	last := len(want) - 1
	for i := range want {
		if want[i].Name != have[i].Name || (i < last || exact) && want[i].Key != have[i].Key {
			return addr.Key{}, false
		}
	}
	return have[last].Key, true
}

// impliedMoves moves between the instance without a key and the first counted
// one where configuration changed between the two forms.
func impliedMoves(tree *module.Tree, s *state.State, target map[addr.Instance]addr.Instance) {
	reached := map[addr.Instance]bool{}
	for _, to := range target {
		reached[to] = true
	}
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
