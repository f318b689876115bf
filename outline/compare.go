package outline

import (
	"cmp"
	"slices"
	"strings"
)

// An Action is the kind of a Difference.
type Action string

// The actions.
const (
	Added   Action = "added"
	Removed Action = "removed"
	Moved   Action = "moved"
	Changed Action = "changed"
	// MayChange means that values are not known before an apply, and that their definitions differ.
	MayChange Action = "may_change"
)

// A Difference is an object that differs between two outlines.
type Difference struct {
	Kind   Kind
	Addr   string // in the new outline; in the old one if the object was removed
	Was    string // the old address of a moved object, otherwise ""
	Action Action
	Old    *Object // nil if the object was added
	New    *Object // nil if the object was removed
	Parts  []PartDifference
}

// A PartDifference is a part of an object that differs.
type PartDifference struct {
	Path     string
	Action   Action
	Old, New *Part // nil if the part was added, or removed
}

// Compare returns the differences between two outlines, sorted by address.
func Compare(before, after *Outline) []Difference {
	var out []Difference
	old := index(before)
	now := index(after)
	some := func(all map[objectKey]*Object) (found map[string]*Object) {
		for _, o := range all {
			if o.Some && o.Kind == Resource {
				if found == nil {
					found = map[string]*Object{}
				}
				found[o.Of] = o
			}
		}
		return found
	}
	oldSome, newSome := some(old), some(now)
	counted := map[string]bool{}
	// instances reports a resource whose number of instances is unknown in one of the outlines only.
	instances := func(o *Object) bool {
		a, b := oldSome[o.Of], newSome[o.Of]
		if (a == nil) == (b == nil) {
			return false
		}
		if !counted[o.Of] {
			counted[o.Of] = true
			d := Difference{Kind: Resource, Addr: o.Of, Action: MayChange, Old: a, New: b}
			d.Parts = []PartDifference{{Path: " instances", Action: MayChange}}
			if b == nil {
				d.New = o
			} else {
				d.Old = o
			}
			out = append(out, d)
		}
		return true
	}
	for _, o := range before.Objects {
		if now[o.key()] == nil && !instances(o) {
			out = append(out, Difference{Kind: o.Kind, Addr: cmp.Or(o.Was, o.Addr), Action: Removed, Old: o})
		}
	}
	for _, n := range after.Objects {
		o := old[n.key()]
		if o == nil {
			if !instances(n) {
				out = append(out, Difference{Kind: n.Kind, Addr: n.Addr, Action: Added, New: n})
			}
			continue
		}
		d := Difference{Kind: n.Kind, Addr: n.Addr, Was: o.Was, Old: o, New: n, Parts: compareParts(o.Parts, n.Parts)}
		switch {
		case slices.ContainsFunc(d.Parts, func(p PartDifference) bool { return p.Action != MayChange }):
			d.Action = Changed
		case len(d.Parts) > 0:
			d.Action = MayChange
		case o.Was != "":
			d.Action = Moved
		default:
			continue
		}
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b Difference) int { return cmp.Compare(a.Addr, b.Addr) })
	return out
}

// An objectKey identifies an object in an outline.
type objectKey struct {
	kind    Kind
	address string
}

func (o *Object) key() objectKey { return objectKey{o.Kind, o.Addr} }

func index(x *Outline) map[objectKey]*Object {
	out := make(map[objectKey]*Object, len(x.Objects))
	for _, o := range x.Objects {
		out[o.key()] = o
	}
	return out
}

// compareParts compares two lists of parts, sorted by path.
func compareParts(before, after []Part) (out []PartDifference) {
	// A map that is secret as a whole may be a list of parts in the other outline.
	inside := func(p Part) bool { return p.Inside != nil }
	if slices.ContainsFunc(before, inside) || slices.ContainsFunc(after, inside) {
		var old, now []PartDifference
		after, before, old = opened(before, after, false)
		before, after, now = opened(after, before, true)
		if out = slices.Concat(old, now); len(out) > 0 {
			out = append(out, sortedParts(before, after)...)
			slices.SortStableFunc(out, func(a, b PartDifference) int { return strings.Compare(a.Path, b.Path) })
			return out
		}
	}
	return sortedParts(before, after)
}

// opened compares the parts with elements inside that are separate parts in other. It returns both lists without
// these parts, and what differs. swapped means that other is the older one.
func opened(all, other []Part, swapped bool) (rest, left []Part, out []PartDifference) {
	rest = other
	for i := range all {
		p := &all[i]
		below := func(x Part) bool {
			n := len(p.Path)
			return len(x.Path) > n && x.Path[:n] == p.Path && (x.Path[n] == '.' || x.Path[n] == '[')
		}
		if p.Inside == nil || slices.ContainsFunc(rest, func(x Part) bool { return x.Path == p.Path }) || !slices.ContainsFunc(rest, below) {
			left = append(left, *p)
			continue
		}
		var parts []Part
		for _, x := range rest {
			if below(x) {
				parts = append(parts, x)
			}
		}
		rest = slices.DeleteFunc(slices.Clone(rest), below)
		d := PartDifference{Path: p.Path, Action: MayChange, Old: p, New: &Part{Path: p.Path, Marked: true, At: parts[0].At}}
		in := slices.Clone(p.Inside)
		slices.SortStableFunc(in, func(a, b Part) int { return strings.Compare(a.Path, b.Path) })
		differ := compareParts(in, parts)
		if slices.ContainsFunc(differ, func(d PartDifference) bool { return d.Action != MayChange }) {
			d.Action = Changed
		}
		if swapped {
			d.Old, d.New = d.New, d.Old
		}
		if len(differ) > 0 {
			out = append(out, d)
		}
	}
	return rest, left, out
}

// sortedParts compares two lists of parts, sorted by path.
func sortedParts(before, after []Part) (out []PartDifference) {
	block := "" // path of an added or removed block, whose arguments are not listed
	note := func(d PartDifference, p *Part) {
		if block != "" && strings.HasPrefix(p.Path, block) && p.Path != block {
			return
		}
		if block = ""; p.Block {
			block = p.Path
		}
		out = append(out, d)
	}
	for len(before)+len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Path < after[0].Path:
			note(PartDifference{Path: before[0].Path, Action: Removed, Old: &before[0]}, &before[0])
			before = before[1:]
		case len(before) == 0 || after[0].Path < before[0].Path:
			note(PartDifference{Path: after[0].Path, Action: Added, New: &after[0]}, &after[0])
			after = after[1:]
		default:
			a, b := &before[0], &after[0]
			before, after = before[1:], after[1:]
			if a.Print == b.Print {
				continue
			}
			action := Changed
			if (a.Unknown || b.Unknown) && !certain(a, b) {
				action = MayChange
			}
			out = append(out, PartDifference{Path: b.Path, Action: action, Old: a, New: b})
		}
	}
	return join(out)
}

// certain reports whether two parts differ whatever the values of their unknown elements are: a known element
// differs, or only one of them has it.
func certain(a, b *Part) bool {
	if a.Elements == nil || b.Elements == nil {
		return false
	}
	x, y := a.Elements(), b.Elements()
	return x.differ(y) || y.differ(x)
}

// differ reports whether an element of x certainly differs from that of y, or is absent there.
func (x *Elements) differ(y *Elements) bool {
	inside := map[string]bool{} // paths of collections in y
	note := func(path string) {
		for i := strings.LastIndex(path, Separator); i > 0; i = strings.LastIndex(path[:i], Separator) {
			inside[path[:i]] = true
		}
	}
	for path := range y.Known {
		note(path)
	}
	for path := range y.Unknown {
		note(path)
	}
	open := func(path string) bool {
		for i := len(path); i > 0; i = strings.LastIndex(path[:i], Separator) {
			if y.Unknown[path[:i]] {
				return true
			}
		}
		return false
	}
	for path, print := range x.Known {
		if other, ok := y.Known[path]; (ok && other != print || !ok) && !open(path) {
			return true
		}
	}
	for path := range x.Unknown {
		if _, ok := y.Known[path]; !ok && !inside[path] && !open(path) {
			return true
		}
	}
	return false
}

// join reports an argument once whose value is a map or object in one outline and another value, or
// nothing known, in the other.
func join(all []PartDifference) (out []PartDifference) {
	for _, d := range all {
		if n := len(out); n > 0 && d.Action != Changed && strings.HasPrefix(d.Path, out[n-1].Path) && len(d.Path) > len(out[n-1].Path) && (d.Path[len(out[n-1].Path)] == '.' || d.Path[len(out[n-1].Path)] == '[') && opposite(out[n-1], d) {
			last := &out[n-1]
			p := last.Old
			if p == nil {
				p = last.New
			}
			if last.Old == nil {
				last.Old = d.Old
			} else if last.New == nil {
				last.New = d.New
			}
			if last.Action = Changed; p.Unknown {
				last.Action = MayChange
			}
			continue
		}
		out = append(out, d)
	}
	return out
}

// opposite reports whether an element was added below a removed value, or removed below an added one.
func opposite(whole, element PartDifference) bool {
	if whole.Old != nil && whole.New != nil {
		return element.Action == Added && whole.New.Path != whole.Path || element.Action == Removed && whole.Old.Path != whole.Path
	}
	return whole.Action == Removed && element.Action == Added || whole.Action == Added && element.Action == Removed
}
