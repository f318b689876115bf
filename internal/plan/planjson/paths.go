package planjson

import (
	"strconv"

	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/zclconf/go-cty/cty"
)

// paths is a set of paths as a tree. A nil *paths is empty.
type paths struct {
	here bool
	kids map[string]*paths
}

func newPaths(list []cty.Path) *paths {
	var p *paths
	for _, path := range list {
		p = p.add(path)
	}
	return p
}

func (p *paths) add(path cty.Path) *paths {
	if p == nil {
		p = new(paths)
	}
	at := p
	for _, step := range path {
		key, ok := stepKey(step)
		if !ok {
			break // a part of a set: the set itself
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
	return p
}

func stepKey(step cty.PathStep) (string, bool) {
	switch s := step.(type) {
	case cty.GetAttrStep:
		return s.Name, true
	case cty.IndexStep:
		if s.Key == cty.NilVal || !s.Key.IsKnown() || s.Key.IsNull() {
			return "", false
		}
		switch s.Key.Type() {
		case cty.String:
			return s.Key.AsString(), true
		case cty.Number:
			return "#" + s.Key.AsBigFloat().Text('f', -1), true
		}
	}
	return "", false
}

func (p *paths) marked() bool { return p != nil && p.here }

func (p *paths) named(name string) *paths {
	if p == nil {
		return nil
	}
	return p.kids[name]
}

func (p *paths) at(i int) *paths {
	if p == nil || p.kids == nil {
		return nil
	}
	return p.kids["#"+strconv.Itoa(i)]
}

// sensitive adds to the paths of a value what the schema declares sensitive.
func sensitive(list []cty.Path, v cty.Value, b *schema.Block) *paths {
	p := newPaths(list)
	if b == nil || v == cty.NilVal || !v.IsKnown() || v.IsNull() || !v.Type().IsObjectType() || !declares(b) {
		return p
	}
	s := &declared{p: p}
	s.block(v, b, nil)
	return s.p
}

// declares reports whether anything in a block is declared sensitive.
func declares(b *schema.Block) bool {
	for _, a := range b.Attributes {
		if a.Sensitive || a.Nested != nil && declaresObject(a.Nested) {
			return true
		}
	}
	for _, nb := range b.Blocks {
		if declares(nb.Block) {
			return true
		}
	}
	return false
}

func declaresObject(o *schema.Object) bool {
	for _, a := range o.Attributes {
		if a.Sensitive || a.Nested != nil && declaresObject(a.Nested) {
			return true
		}
	}
	return false
}

type declared struct{ p *paths }

func (s *declared) mark(path cty.Path) { s.p = s.p.add(path) }

func (s *declared) block(v cty.Value, b *schema.Block, path cty.Path) {
	s.attrs(v, b.Attributes, path)
	for name, nb := range b.Blocks {
		if !declares(nb.Block) {
			continue
		}
		at := append(path[:len(path):len(path)], cty.GetAttrStep{Name: name})
		if !v.Type().HasAttribute(name) {
			continue
		}
		s.nesting(v.GetAttr(name), nb.Nesting, at, func(e cty.Value, at cty.Path) { s.block(e, nb.Block, at) })
	}
}

func (s *declared) attrs(v cty.Value, attrs map[string]*schema.Attribute, path cty.Path) {
	for name, a := range attrs {
		at := append(path[:len(path):len(path)], cty.GetAttrStep{Name: name})
		switch {
		case !v.Type().HasAttribute(name): // a value of another version of the provider
		case a.Sensitive:
			s.mark(at)
		case a.Nested != nil && declaresObject(a.Nested):
			s.nesting(v.GetAttr(name), a.Nested.Nesting, at, func(e cty.Value, at cty.Path) { s.attrs(e, a.Nested.Attributes, at) })
		}
	}
}

func (s *declared) nesting(v cty.Value, n schema.Nesting, path cty.Path, f func(cty.Value, cty.Path)) {
	if !v.IsKnown() || v.IsNull() {
		return
	}
	if !v.CanIterateElements() { // a value of another version of the provider
		return
	}
	switch n {
	case schema.Set:
		if v.LengthInt() > 0 {
			s.mark(path)
		}
	case schema.List, schema.Map:
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if e.IsKnown() && !e.IsNull() && e.Type().IsObjectType() {
				f(e, append(path[:len(path):len(path)], cty.IndexStep{Key: k}))
			}
		}
	default:
		if v.Type().IsObjectType() {
			f(v, path)
		}
	}
}
