package planjson

import (
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// sensitive returns the paths in list and those that the schema marks as sensitive.
func sensitive(list []cty.Path, v cty.Value, b *schema.Block) *value.PathSet {
	p := value.NewPathSet(list)
	if b == nil || v == cty.NilVal || !v.IsKnown() || v.IsNull() || !v.Type().IsObjectType() || !b.HasSensitive() {
		return p
	}
	s := &declared{p: p}
	s.block(v, b, nil)
	return s.p
}

type declared struct{ p *value.PathSet }

func (s *declared) mark(path cty.Path) { s.p = s.p.Add(path) }

func (s *declared) block(v cty.Value, b *schema.Block, path cty.Path) {
	s.attrs(v, b.Attributes, path)
	for name, nb := range b.Blocks {
		if !nb.Block.HasSensitive() {
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
		case !v.Type().HasAttribute(name): // a value of another schema version
		case a.Sensitive:
			s.mark(at)
		case a.Nested != nil && a.Nested.HasSensitive():
			s.nesting(v.GetAttr(name), a.Nested.Nesting, at, func(e cty.Value, at cty.Path) { s.attrs(e, a.Nested.Attributes, at) })
		}
	}
}

func (s *declared) nesting(v cty.Value, n schema.Nesting, path cty.Path, f func(cty.Value, cty.Path)) {
	if !v.IsKnown() || v.IsNull() {
		return
	}
	if !v.CanIterateElements() { // a value of another schema version
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
