package view

import (
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/zclconf/go-cty/cty"
)

// paths is a set of paths as a tree, so that one walk over a value meets all
// of them. A nil *paths is empty.
type paths struct {
	here bool
	kids map[string]*paths
}

// newPaths makes the tree. A path into a set stands for the whole set.
func newPaths(list []cty.Path) *paths {
	if len(list) == 0 {
		return nil
	}
	root := new(paths)
	for _, path := range list {
		root.add(path)
	}
	return root
}

func (p *paths) add(path cty.Path) {
	at := p
	for _, step := range path {
		key, ok := stepKey(step)
		if !ok {
			break
		}
		next := at.kids[key]
		if next == nil {
			next = new(paths)
			if at.kids == nil {
				at.kids = make(map[string]*paths)
			}
			at.kids[key] = next
		}
		at = next
	}
	at.here = true
}

// Keys of attributes and of string indexes differ in their first byte.
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

func (p *paths) marked() bool { return p != nil && p.here }

// any reports whether the tree holds a path at all.
func (p *paths) any() bool { return p != nil }

func (p *paths) attr(name string) *paths {
	if p == nil {
		return nil
	}
	return p.kids["."+name]
}

func (p *paths) index(k cty.Value) *paths {
	if p == nil {
		return nil
	}
	key, ok := indexKey(k)
	if !ok {
		return nil
	}
	return p.kids[key]
}

// either looks for an attribute and for an index, where objects and maps are the same.
func (p *paths) either(name string) *paths {
	if p == nil {
		return nil
	}
	if k := p.kids["."+name]; k != nil {
		return k
	}
	return p.kids["["+name]
}

func (p *paths) at(i int) *paths {
	if p == nil {
		return nil
	}
	return p.index(cty.NumberIntVal(int64(i)))
}

// anySensitive reports whether an attribute inside is declared sensitive.
func anySensitive(o *schema.Object) bool {
	for _, a := range o.Attributes {
		if a.Sensitive || a.Nested != nil && anySensitive(a.Nested) {
			return true
		}
	}
	return false
}

func anySensitiveBlock(b *schema.Block) bool {
	for _, a := range b.Attributes {
		if a.Sensitive || a.Nested != nil && anySensitive(a.Nested) {
			return true
		}
	}
	for _, nb := range b.Blocks {
		if anySensitiveBlock(nb.Block) {
			return true
		}
	}
	return false
}
