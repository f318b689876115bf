// Package stateedit implements the state commands on a state that was read: select, move,
// remove, taint, and replace providers.
//
// Main functions: Matching, Move, Remove, Taint and ReplaceProvider. The one rule: a state
// is immutable. The functions return a new state for the caller to write, or the same one
// with a message why nothing was changed.
package stateedit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/similar"
	"github.com/terrace-iac/terrace/state"
)

// Matching returns the objects of a state that match targets, in the order of state lists.
// Without targets it returns all objects. missing contains the targets that match nothing.
func Matching(s *state.State, targets []addr.Target) (found []state.Listed, missing []addr.Target) {
	if s == nil {
		return nil, targets
	}
	if len(targets) == 0 {
		return s.List(), nil
	}
	hit := make([]bool, len(targets))
	for _, l := range s.List() {
		take := false
		for i, t := range targets {
			if t.Contains(l.Addr.Instance) {
				hit[i], take = true, true
			}
		}
		if take {
			found = append(found, l)
		}
	}
	for i, t := range targets {
		if !hit[i] {
			missing = append(missing, t)
		}
	}
	return found, missing
}

// Remove removes the instances that match targets from a state. It returns them in the
// order of the targets. A target that matches nothing is an error if no target matches
// anything, and otherwise a warning.
func Remove(s *state.State, targets []addr.Target) (*state.State, []addr.Instance, diag.List) {
	var gone []addr.Instance
	var ds diag.List
	seen := map[addr.Instance]bool{}
	for _, t := range targets {
		found, missing := Matching(s, []addr.Target{t})
		for _, t := range missing {
			ds = append(ds, code(CodeNoMatch, "Invalid target address", "No object in the state has the address %s.", t)...)
			ds[len(ds)-1].Severity = diag.Warning
		}
		for _, l := range found {
			if a := l.Addr.Instance; !seen[a] {
				seen[a] = true
				gone = append(gone, a)
			}
		}
	}
	if len(gone) == 0 {
		return s, nil, noMatch(s, targets)
	}
	d := s.Edit()
	for _, a := range gone {
		removeInstance(d, s, a)
	}
	return d.Freeze(), gone, ds
}

// CodeNoMatch is the code of the message of Remove about an address without objects.
const CodeNoMatch = diag.CodeStateNoMatch

func noMatch(s *state.State, targets []addr.Target) diag.List {
	hint := ""
	for _, t := range targets {
		hint += Suggest(s, t.String())
	}
	return code(CodeNoMatch, "Invalid target address", "No matching objects found. To view the available instances, use \"terrace state list\". Please modify the address to reference a specific instance.%s", hint)
}

// Suggest returns a hint that names an address of the state that is similar to a wrong one, or
// "" if there is none.
func Suggest(s *state.State, wrong string) string {
	near := similar.Nearest(wrong, func(yield func(string) bool) {
		for in := range s.Instances() {
			if !yield(in.String()) || !yield(addr.Instance{Module: in.Module, Resource: in.Resource}.String()) {
				return
			}
		}
	})
	if near == "" {
		return ""
	}
	return " Did you mean " + near + "?"
}

func removeInstance(d *state.Draft, s *state.State, a addr.Instance) {
	in := s.Instance(a)
	for _, key := range objects(in) {
		d.Apply(state.Change{Object: addr.Object{Instance: a, Deposed: key}})
	}
}

// objects returns the deposed keys of an instance's objects, "" for the current one.
func objects(in *state.Instance) []addr.DeposedKey {
	out := in.DeposedKeys()
	if in.Current != nil {
		out = append([]addr.DeposedKey{""}, out...)
	}
	return out
}

// Taint marks the current object of an instance as tainted, or removes the mark. Removing it also
// removes the reason for which an apply with deferred objects left the object to be replaced.
func Taint(s *state.State, a addr.Instance, tainted bool) (*state.State, diag.List) {
	verb := "tainted"
	if !tainted {
		verb = "untainted"
	}
	if a.Resource.Mode != addr.Managed {
		return s, code(diag.CodeStateNotManaged, "Invalid resource address", "Resource instance %s cannot be %s: only managed resources can.", a, verb)
	}
	o, p, ok := s.Object(addr.Object{Instance: a})
	if !ok {
		if in := s.Instance(a); in != nil {
			return s, code(diag.CodeStateOnlyDeposed, "No such resource instance", "Resource instance %s has no object of its own but deposed ones, which cannot be %s.", a, verb)
		}
		return s, code(CodeMissing, "No such resource instance", "There is no resource instance in the state with the address %s. If the resource configuration has just been added, you must run \"terrace apply\" once to create the corresponding instance(s) before they can be %s.%s", a, verb, Suggest(s, a.String()))
	}
	if o.Tainted == tainted && (tainted || o.Replace == "") {
		if !tainted {
			return s, code(diag.CodeStateNotTainted, "Resource instance is not tainted", "Resource instance %s is not currently tainted, and so it cannot be untainted.", a)
		}
		return s, nil
	}
	next := *o
	if next.Tainted = tainted; !tainted {
		next.Replace = ""
	}
	d := s.Edit()
	d.Apply(state.Change{Object: addr.Object{Instance: a}, Provider: p, New: &next})
	return d.Freeze(), nil
}

// CodeMissing is the code of the message of Taint about a missing instance.
const CodeMissing = diag.CodeStateNoInstance

// ReplaceProvider replaces a provider by another one in all resources. It returns the
// changed resources, in the order of state.Sorted.
func ReplaceProvider(s *state.State, from, to addr.Provider) (*state.State, []addr.AbsResource) {
	var changed []addr.AbsResource
	if s == nil {
		return nil, nil
	}
	d := s.Edit()
	for _, r := range s.Sorted() {
		if r.Provider.Provider != from {
			continue
		}
		p := r.Provider
		p.Provider = to
		d.SetProvider(r.Addr, p)
		changed = append(changed, r.Addr)
	}
	return d.Freeze(), changed
}

// Move moves the objects at an address to another address in a state, and returns the new
// state.
func Move(s *state.State, source, target addr.Target) (*state.State, diag.List) {
	out, in, ds := Transfer(s, nil, source, target)
	if ds.HasErrors() {
		return s, ds
	}
	d := s.Edit()
	for _, c := range append(out, in...) { // all are removed before the first is added, because addresses may overlap
		d.Apply(c)
	}
	return follow(d.Freeze(), out, in), nil
}

// follow updates the dependencies on moved resources to their new addresses, so that
// objects are destroyed in the correct order before the next plan records dependencies. If
// some instances of a resource were not moved, dependents depend on both addresses.
func follow(s *state.State, out, in []state.Change) *state.State {
	moved := map[addr.ConfigResource][]addr.ConfigResource{}
	for i := range out {
		from, to := out[i].Object.Instance.Config(), in[i].Object.Instance.Config()
		if from != to && !slices.Contains(moved[from], to) {
			moved[from] = append(moved[from], to)
		}
	}
	if len(moved) == 0 {
		return s
	}
	stayed := map[addr.ConfigResource]bool{}
	for _, r := range s.Sorted() {
		stayed[r.Addr.Config()] = true
	}
	d := s.Edit()
	for a, o := range s.Objects() {
		var next []addr.ConfigResource
		changed := false
		for _, dep := range o.Dependencies {
			to, ok := moved[dep]
			changed = changed || ok
			if !ok || stayed[dep] {
				next = append(next, dep)
			}
			next = append(next, to...)
		}
		if changed {
			slices.SortFunc(next, func(a, b addr.ConfigResource) int { return strings.Compare(a.String(), b.String()) })
			copied := *o
			copied.Dependencies = slices.Compact(next)
			_, provider, _ := s.Object(a)
			d.Apply(state.Change{Object: a, Provider: provider, New: &copied})
		}
	}
	return d.Freeze()
}

// Transfer returns the changes of moving the objects at an address to another address, in
// one state, or into another state if to is not nil. out are the changes of the first
// state, and in those of the second.
func Transfer(from, to *state.State, source, target addr.Target) (out, in []state.Change, ds diag.List) {
	m := mover{from: from, to: to, source: source, target: target}
	pairs, ds := m.pairs()
	if ds.HasErrors() {
		return nil, nil, ds
	}
	for _, p := range pairs {
		for _, key := range objects(from.Instance(p[0])) {
			o, provider, _ := from.Object(addr.Object{Instance: p[0], Deposed: key})
			out = append(out, state.Change{Object: addr.Object{Instance: p[0], Deposed: key}})
			in = append(in, state.Change{Object: addr.Object{Instance: p[1], Deposed: key}, Provider: provider, New: o})
		}
	}
	return out, in, nil
}

type mover struct {
	from, to       *state.State
	source, target addr.Target
}

// there returns the state into which objects are moved.
func (m *mover) there() *state.State {
	if m.to != nil {
		return m.to
	}
	return m.from
}

// pairs returns the instances to move with their new addresses.
func (m *mover) pairs() ([][2]addr.Instance, diag.List) {
	src, dst := m.source, m.target
	switch {
	case src.IsModule():
		return m.modules()
	case dst.IsModule():
		return nil, m.badTarget("the target must also be a resource instance")
	}
	if src.Resource.Mode != dst.Resource.Mode {
		kind := map[addr.Mode]string{addr.Managed: "managed", addr.Data: "data"}[src.Resource.Mode]
		return nil, code(diag.CodeStateMoveMode, "Invalid state move request", "Cannot move %s to %s: a %s resource can be moved only to another %[3]s resource address.", src, dst, kind)
	}
	if src.Resource.Type != dst.Resource.Type {
		return nil, code(diag.CodeStateMoveType, "Invalid state move request", "Cannot move %s to %s: resource types don't match.", src, dst)
	}
	if m.from.Instance(src.Instance()) != nil {
		if there := m.there().Instance(dst.Instance()); there != nil {
			return nil, m.taken("resource instance")
		}
		return [][2]addr.Instance{{src.Instance(), dst.Instance()}}, nil
	}
	from, to := addr.AbsResource{Module: src.Module, Resource: src.Resource}, addr.AbsResource{Module: dst.Module, Resource: dst.Resource}
	r := m.from.Resource(from)
	switch {
	case r == nil || src.HasKey:
		return nil, m.badSource()
	case dst.HasKey:
		return nil, m.badTarget("the source is a whole resource (not a resource instance) so the target must also be a whole resource")
	case m.there().Resource(to) != nil:
		return nil, m.taken("resource")
	}
	var out [][2]addr.Instance
	for _, k := range r.Keys() {
		out = append(out, [2]addr.Instance{from.Instance(k), to.Instance(k)})
	}
	return out, nil
}

// modules returns the pairs of a whole module instance.
func (m *mover) modules() ([][2]addr.Instance, diag.List) {
	src, dst := m.source, m.target
	if !dst.IsModule() {
		return nil, m.badTarget("the target must also be a module")
	}
	from, to := src.Module.Steps(), dst.Module.Steps()
	under := func(a addr.Instance) bool {
		steps := a.Module.Steps()
		return len(steps) >= len(from) && slices.Equal(steps[:len(from)], from)
	}
	var out [][2]addr.Instance
	for a := range m.from.Instances() {
		if !under(a) {
			continue
		}
		steps := append(slices.Clone(to), a.Module.Steps()[len(from):]...)
		out = append(out, [2]addr.Instance{a, {Module: addr.ModuleFromSteps(steps), Resource: a.Resource, Key: a.Key}})
	}
	if len(out) == 0 {
		return nil, m.badSource()
	}
	if m.to == nil && len(to) >= len(from) && slices.Equal(to[:len(from)], from) {
		return nil, m.badTarget("a module cannot be moved into itself")
	}
	for a := range m.there().Instances() {
		steps := a.Module.Steps()
		if len(steps) >= len(to) && slices.Equal(steps[:len(to)], to) {
			return nil, m.taken("module")
		}
	}
	return out, nil
}

func (m *mover) badSource() diag.List {
	return code(diag.CodeStateMoveSource, "Invalid source address", "Cannot move %s: does not match anything in the current state.%s", m.source, Suggest(m.from, m.source.String()))
}

func (m *mover) badTarget(why string) diag.List {
	return code(diag.CodeStateMoveTarget, "Invalid target address", "Cannot move %s to %s: %s.", m.source, m.target, why)
}

func (m *mover) taken(what string) diag.List {
	where := "in the current state"
	if m.to != nil {
		where = "in the state that it is moved to"
	}
	return code(diag.CodeStateMoveTaken, "Invalid target address", "Cannot move to %s: there is already a %s at that address %s.", m.target, what, where)
}

func code(c, summary, format string, args ...any) diag.List {
	return diag.List{{Code: c, Severity: diag.Error, Summary: summary, Detail: fmt.Sprintf(format, args...)}}
}
