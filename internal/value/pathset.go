package value

import "github.com/zclconf/go-cty/cty"

// A PathSet is a set of paths as a tree, so that one walk over a value meets
// all of them. A nil *PathSet is empty, and every method but Add can be called
// on it concurrently. A path into a set stands for the whole set.
type PathSet struct {
	here bool
	kids map[string]*PathSet
}

// NewPathSet makes a set; of no paths it is nil.
func NewPathSet(list []cty.Path) *PathSet {
	var p *PathSet
	for _, path := range list {
		p = p.Add(path)
	}
	return p
}

// Whole is the set of the empty path alone, or of none.
func Whole(marked bool) *PathSet { return &PathSet{here: marked} }

// Add puts a path into the set and returns it; of nil it makes a new one.
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

// stepKey: keys of attributes, of string indexes and of numbers differ in their first byte.
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

// Marked reports whether the path that led here is in the set.
func (p *PathSet) Marked() bool { return p != nil && p.here }

// Any reports whether there is anything in the set, here or below.
func (p *PathSet) Any() bool { return p != nil }

// Attr is what lies below an attribute.
func (p *PathSet) Attr(name string) *PathSet {
	if p == nil {
		return nil
	}
	return p.kids["."+name]
}

// Named is what lies below an attribute or a key, where objects and maps are the same.
func (p *PathSet) Named(name string) *PathSet {
	if p == nil {
		return nil
	}
	if k := p.kids["."+name]; k != nil {
		return k
	}
	return p.kids["["+name]
}

// At is what lies below an element of a list.
func (p *PathSet) At(i int) *PathSet {
	if p == nil || p.kids == nil {
		return nil
	}
	key, _ := indexKey(cty.NumberIntVal(int64(i)))
	return p.kids[key]
}
