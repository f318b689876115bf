package refactoring

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/source"
)

// Check checks moved and removed blocks, except for rules that depend on the instances of
// modules.
func Check(tree *module.Tree, early module.Options) diag.List {
	stmts, ds := moveStatements(tree, early)
	more, _ := checkMoves(stmts)
	ds = append(ds, more...)
	_, more = ReadRemovals(tree, early)
	return append(ds, more...)
}

// Open is an error in moved blocks of a module with count, for_each or enabled. It only counts
// if the module has an instance, as in OpenTofu.
type Open struct {
	In  addr.Module
	Err diag.List
}

// checkMoves checks the rules that make the order of statements irrelevant. It returns errors
// that only count if a module has instances separately.
func checkMoves(stmts []*moveStatement) (ds diag.List, open []Open) {
	say := func(s *moveStatement, more diag.List) {
		if repeated(s.in) {
			open = append(open, Open{s.in.Path, more})
		} else {
			ds = append(ds, more...)
		}
	}
	abs := func(s *moveStatement, t addr.Target) string {
		if s.in.Path == "" {
			return t.String()
		}
		return string(s.in.Path) + "." + t.String()
	}
	froms, tos := map[string]*moveStatement{}, map[string]*moveStatement{}
	for _, s := range stmts {
		from, to := abs(s, s.from), abs(s, s.to)
		switch {
		case s.from.IsModule() != s.to.IsModule():
			ds = append(ds, diag.Errorf(diag.CodePlanMoves, &s.at, "Invalid moved addresses", "The from and to addresses must both be resources or both be modules.")...)
			continue
		case !s.from.IsModule() && (s.from.Resource.Mode != s.to.Resource.Mode || s.to.Resource.Mode == addr.Ephemeral):
			ds = append(ds, diag.Errorf(diag.CodePlanMoves, &s.at, "Invalid moved addresses", "A managed resource can be moved to the address of another, and a data source to that of another.")...)
			continue
		case from == to:
			say(s, diag.Errorf(diag.CodePlanMoves, &s.at, "Redundant move statement", "This statement declares a move from %s to the same address, which is the same as not declaring this move at all.", from))
			continue
		}
		if o := froms[from]; o != nil && abs(o, o.to) != to {
			say(s, diag.Errorf(diag.CodePlanMoves, &s.at, "Ambiguous move statements", "A statement at %s declared that %s moved to %s, but this statement instead declares that it moved to %s. Each %s can move to only one destination.", o.at, from, abs(o, o.to), to, kindOf(s)).Note(&o.at, "the other statement is here"))
		}
		if o := tos[to]; o != nil && abs(o, o.from) != from {
			say(s, diag.Errorf(diag.CodePlanMoves, &s.at, "Ambiguous move statements", "A statement at %s declared that %s moved to %s, but this statement instead declares that %s moved there. Each %s can have moved from only one source.", o.at, abs(o, o.from), to, from, kindOf(s)).Note(&o.at, "the other statement is here"))
		}
		froms[from], tos[to] = s, s
		if place := stillDeclared(s); place != nil {
			say(s, diag.Errorf(diag.CodePlanStillExists, &s.at, "Moved object still exists", "This statement declares a move from %s, but that is still declared at %s. Change the configuration so that it is declared as %s instead.", from, place, to).Note(place, "still declared here"))
		}
	}
	return append(ds, moveCycles(stmts, abs)...), open
}

// repeated reports whether a module may have no instances, because of its call or that of a
// parent.
func repeated(n *module.Node) bool {
	for ; n.Parent != nil; n = n.Parent {
		if r := n.Call.Repeat; r.Count != nil || r.ForEach != nil || r.Enabled != nil {
			return true
		}
	}
	return false
}

func kindOf(s *moveStatement) string {
	if s.from.IsModule() {
		return "module"
	}
	return "resource"
}

// stillDeclared returns the block of a statement's from address. An address with a key that
// does not match the block's kind of repetition counts as removed.
func stillDeclared(s *moveStatement) *source.Range {
	n := s.in
	steps := s.from.Module.Steps()
	for i, step := range steps {
		child := n.Calls[step.Name]
		if child == nil {
			return nil
		}
		if s.from.IsModule() && i == len(steps)-1 {
			if s.exact {
				if !keyFits(step.Key, child.Call.Repeat.Count != nil, child.Call.Repeat.ForEach != nil) || step.Key.Kind != addr.NoKey {
					return nil
				}
			}
			return &child.Call.At
		}
		n = child
	}
	r := n.Config.Resources[s.from.Resource]
	if r == nil {
		return nil
	}
	if s.exact && (s.from.Key.Kind != addr.NoKey || !keyFits(s.from.Key, r.Repeat.Count != nil, r.Repeat.ForEach != nil)) {
		return nil // whether a keyed instance exists is only known after count and for_each are evaluated
	}
	return &r.At
}

func keyFits(k addr.Key, counted, keyed bool) bool {
	switch {
	case counted:
		return k.Kind == addr.IntKey
	case keyed:
		return k.Kind == addr.StringKey
	default:
		return k.Kind == addr.NoKey
	}
}

// moveCycles reports statements that form a cycle.
func moveCycles(stmts []*moveStatement, abs func(*moveStatement, addr.Target) string) diag.List {
	next := map[string]*moveStatement{}
	for _, s := range stmts {
		if abs(s, s.from) != abs(s, s.to) {
			next[abs(s, s.from)] = s
		}
	}
	reported := map[*moveStatement]bool{}
	var ds diag.List
	for _, s := range stmts {
		var trail []*moveStatement
		for x := s; x != nil && !reported[x]; x = next[abs(x, x.to)] {
			if i := slices.Index(trail, x); i >= 0 {
				m := &diag.Message{Code: diag.CodePlanMoveCycle, Summary: "Cyclic dependency in move statements", At: &x.at, Detail: "The following chained move statements form a cycle, and so there is no final location to move objects to. A chain of move statements must end with an address that doesn't appear in any other statements, and which typically also refers to an object still declared in the configuration."}
				for _, c := range trail[i:] {
					m.Notes = append(m.Notes, diag.Note{Text: abs(c, c.from) + " moves to " + abs(c, c.to), At: &c.at})
					reported[c] = true
				}
				ds = append(ds, m)
				break
			}
			trail = append(trail, x)
		}
	}
	return ds
}
