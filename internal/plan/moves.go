package plan

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// moveStatement is one moved block, or one element of its for_each, in a module.
// Its addresses are relative to instances of that module.
type moveStatement struct {
	in       *module.Node
	from, to addr.Target
	// exact says that the statement is about one instance: one of the two
	// addresses has a key, so one without a key means the instance without a key.
	exact bool
	at    source.Range
}

// movedState is state after moves.
type movedState struct {
	state   *state.State
	from    map[addr.Instance]addr.Instance // new address to old, for those that moved
	blocked []string
}

// applyMoves changes the addresses in state as moved blocks say, and where count
// was added to a block or taken away.
func applyMoves(tree *module.Tree, early module.Options, s *state.State) (movedState, diag.List) {
	out := movedState{state: s, from: map[addr.Instance]addr.Instance{}}
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
func (out movedState) carryOut(s *state.State, target map[addr.Instance]addr.Instance, ds diag.List) (movedState, diag.List) {
	d := s.Edit()
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
			out.blocked = append(out.blocked, fmt.Sprintf("  - %s could not move to %s", a, to))
			continue
		}
		claimed[to] = a
		doing = append(doing, a)
	}
	for len(doing) > 0 { // an address that another one leaves is moved into after that
		var later []addr.Instance
		for _, a := range doing {
			if slices.Contains(doing, target[a]) && !moved(out.from, target[a], claimed) {
				later = append(later, a)
				continue
			}
			d.MoveInstance(a, target[a])
			out.from[target[a]] = a
		}
		if len(later) == len(doing) {
			break // a circle; checkMoves reports those
		}
		doing = later
	}
	out.state = d.Freeze()
	if len(out.blocked) > 0 {
		text := ""
		for _, b := range out.blocked {
			text += "\n" + b
		}
		ds = append(ds, diag.Warnf(nil, "Unresolved resource instance address changes", "Terrace tried to adjust resource instance addresses in the prior state based on change information recorded in the configuration, but some adjustments did not succeed due to existing objects already at the intended addresses:\n%s\n\nTerrace has planned to destroy these objects. If this is not what you want, give the objects other addresses with \"terrace state mv\".", text)...)
	}
	return out, ds
}

// moved reports whether the object at an old address has moved away already.
func moved(done map[addr.Instance]addr.Instance, old addr.Instance, _ map[addr.Instance]addr.Instance) bool {
	for _, from := range done {
		if from == old {
			return true
		}
	}
	return false
}

// moveStatements reads the moved blocks of a tree.
func moveStatements(tree *module.Tree, early module.Options) ([]*moveStatement, diag.List) {
	var out []*moveStatement
	var ds diag.List
	tree.Walk(func(n *module.Node) {
		for _, m := range n.Config.Moved {
			if m.ForEach != nil {
				more, moreDs := eachMove(n, early, m.From, m.To, m.ForEach.Expr, m.At)
				out, ds = append(out, more...), append(ds, moreDs...)
				continue
			}
			from, fds := blockTarget(m.From)
			to, tds := blockTarget(m.To)
			ds = append(append(ds, fds...), tds...)
			if len(fds)+len(tds) == 0 {
				out = append(out, newMove(n, from, to, m.At))
			}
		}
	})
	return out, ds
}

func newMove(n *module.Node, from, to addr.Target, at source.Range) *moveStatement {
	s := &moveStatement{in: n, from: from, to: to, at: at}
	if from.IsModule() {
		s.exact = from.ModuleKey || to.ModuleKey
	} else {
		s.exact = from.HasKey || to.HasKey
	}
	return s
}

// eachMove makes one statement for each element of for_each, which must be
// known from constants, variables and locals.
func eachMove(n *module.Node, early module.Options, from, to, each hcl.Expression, at source.Range) ([]*moveStatement, diag.List) {
	var out []*moveStatement
	ds := eachElement(n, early, each, func(ctx *hcl.EvalContext) diag.List {
		f, fds := targetWith(from, ctx)
		t, tds := targetWith(to, ctx)
		if len(fds)+len(tds) == 0 {
			out = append(out, newMove(n, f, t, at))
		}
		return append(fds, tds...)
	})
	return out, ds
}

// eachElement calls f for each element of a for_each that is known early.
func eachElement(n *module.Node, early module.Options, each hcl.Expression, f func(*hcl.EvalContext) diag.List) diag.List {
	v, ds := module.Static(n, each, early)
	at := each.Range()
	if ds.HasErrors() {
		return ds
	}
	if v.IsNull() || !v.CanIterateElements() || v.Type().IsListType() || v.Type().IsTupleType() {
		return diag.Errorf(&at, "Invalid for_each argument", "The \"for_each\" argument must be a map, or set of strings.")
	}
	for it := v.ElementIterator(); it.Next(); {
		k, el := it.Element()
		if v.Type().IsSetType() {
			k = el
		}
		ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": k, "value": el})}}
		ds = append(ds, f(ctx)...)
	}
	return ds
}

func blockTarget(x hcl.Expression) (addr.Target, diag.List) { return targetWith(x, nil) }

// targetWith reads an address whose indexes may be expressions.
func targetWith(x hcl.Expression, ctx *hcl.EvalContext) (addr.Target, diag.List) {
	at := x.Range()
	tr, ds := lang.AddressTraversal(x, ctx)
	if ds.HasErrors() {
		return addr.Target{}, ds
	}
	t, err := addr.TargetFromTraversal(tr)
	if err != nil {
		return addr.Target{}, diag.Errorf(&at, "Invalid address", "This is not the address of a resource, a module or an instance of one: %s.", err)
	}
	return t, nil
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

// checkMoves holds statements to the rules that make their order irrelevant.
func checkMoves(tree *module.Tree, stmts []*moveStatement) diag.List {
	var ds diag.List
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
			ds = append(ds, diag.Errorf(&s.at, "Invalid moved addresses", "The from and to addresses must both be resources or both be modules.")...)
			continue
		case !s.from.IsModule() && (s.from.Resource.Mode != addr.Managed || s.to.Resource.Mode != addr.Managed):
			ds = append(ds, diag.Errorf(&s.at, "Invalid moved addresses", "Only managed resources can be moved.")...)
			continue
		case from == to:
			ds = append(ds, diag.Errorf(&s.at, "Redundant move statement", "This statement declares a move from %s to the same address, which is the same as not declaring this move at all.", from)...)
			continue
		}
		if o := froms[from]; o != nil && abs(o, o.to) != to {
			ds = append(ds, diag.Errorf(&s.at, "Ambiguous move statements", "A statement at %s declared that %s moved to %s, but this statement instead declares that it moved to %s. Each %s can move to only one destination.", o.at, from, abs(o, o.to), to, kindOf(s)).Note(&o.at, "the other statement is here")...)
		}
		if o := tos[to]; o != nil && abs(o, o.from) != from {
			ds = append(ds, diag.Errorf(&s.at, "Ambiguous move statements", "A statement at %s declared that %s moved to %s, but this statement instead declares that %s moved there. Each %s can have moved from only one source.", o.at, abs(o, o.from), to, from, kindOf(s)).Note(&o.at, "the other statement is here")...)
		}
		froms[from], tos[to] = s, s
		if place := stillDeclared(s); place != nil {
			ds = append(ds, diag.Errorf(&s.at, "Moved object still exists", "This statement declares a move from %s, but that is still declared at %s. Change the configuration so that it is declared as %s instead.", from, place, to).Note(place, "still declared here")...)
		}
	}
	return append(ds, moveCycles(stmts, abs)...)
}

func kindOf(s *moveStatement) string {
	if s.from.IsModule() {
		return "module"
	}
	return "resource"
}

// stillDeclared finds the block of a statement's from address. An address with a
// key that configuration's repetition does not give counts as gone.
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
		return nil // whether a keyed instance still exists is known only once count and for_each are
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

// moveCycles reports statements that lead back to where they start.
func moveCycles(stmts []*moveStatement, abs func(*moveStatement, addr.Target) string) diag.List {
	next := map[string]*moveStatement{}
	for _, s := range stmts {
		if abs(s, s.from) != abs(s, s.to) {
			next[abs(s, s.from)] = s
		}
	}
	told := map[*moveStatement]bool{}
	var ds diag.List
	for _, s := range stmts {
		var trail []*moveStatement
		for x := s; x != nil && !told[x]; x = next[abs(x, x.to)] {
			if i := slices.Index(trail, x); i >= 0 {
				m := &diag.Message{Code: "plan/move-cycle", Summary: "Cyclic dependency in move statements", At: &x.at, Detail: "The following chained move statements form a cycle, and so there is no final location to move objects to. A chain of move statements must end with an address that doesn't appear in any other statements, and which typically also refers to an object still declared in the configuration."}
				for _, c := range trail[i:] {
					m.Notes = append(m.Notes, diag.Note{Text: abs(c, c.from) + " moves to " + abs(c, c.to), At: &c.at})
					told[c] = true
				}
				ds = append(ds, m)
				break
			}
			trail = append(trail, x)
		}
	}
	return ds
}
