package value

import "github.com/zclconf/go-cty/cty"

// PathSet is a set of paths, stored as a tree, so that one walk over a value visits all of
// them. A nil *PathSet is empty. All methods except Add may be called concurrently. A
// path into a set means the whole set.
type PathSet struct {
	here bool
	kids map[string]*PathSet
}

// NewPathSet returns the set of the paths, or nil without paths.
func NewPathSet(list []cty.Path) *PathSet {
	var p *PathSet
	for _, path := range list {
		p = p.Add(path)
	}
	return p
}

// Whole returns the set with only the empty path if marked, else an empty set.
func Whole(marked bool) *PathSet { return &PathSet{here: marked} }

// Add adds a path and returns the set. If p is nil, it returns a new set.
func (p *PathSet) Add(path cty.Path) *PathSet {
	if p == nil {
		p = new(PathSet)
	}
	at := p
	for _, step := range path {
		key, ok := stepKey(step)
		if !ok {
			break
		}
		next := at.kids[key]
		if next == nil {
			next = new(PathSet)
			if at.kids == nil {
				at.kids = make(map[string]*PathSet)
			}
			at.kids[key] = next
		}
		at = next
	}
	at.here = true
	return p
}

// stepKey returns the map key of a step. Keys of attributes, string indexes and number
// indexes differ in their first byte.
func stepKey(step cty.PathStep) (string, bool) {
	switch s := step.(type) {
	case cty.GetAttrStep:
		return "." + s.Name, true
	case cty.IndexStep:
		return indexKey(s.Key)
	}
	return "", false
}

func indexKey(k cty.Value) (string, bool) {
	if k == cty.NilVal || !k.IsKnown() || k.IsNull() {
		return "", false
	}
	switch k.Type() {
	case cty.String:
		return "[" + k.AsString(), true
	case cty.Number:
		return "#" + k.AsBigFloat().Text('f', -1), true
	}
	return "", false
}

// Marked reports whether the path to this node is in the set.
func (p *PathSet) Marked() bool { return p != nil && p.here }

// Any reports whether the set contains a path.
func (p *PathSet) Any() bool { return p != nil }

// Attr returns the part of the set below an attribute.
func (p *PathSet) Attr(name string) *PathSet {
	if p == nil {
		return nil
	}
	return p.kids["."+name]
}

// Named returns the part below an attribute or a map key of that name.
func (p *PathSet) Named(name string) *PathSet {
	if p == nil {
		return nil
	}
	if k := p.kids["."+name]; k != nil {
		return k
	}
	return p.kids["["+name]
}

// At returns the part below an element of a list.
func (p *PathSet) At(i int) *PathSet {
	if p == nil || p.kids == nil {
		return nil
	}
	key, _ := indexKey(cty.NumberIntVal(int64(i)))
	return p.kids[key]
}
