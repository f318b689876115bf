package schema

import (
	"github.com/zclconf/go-cty/cty"
)

// SensitivePaths returns the paths of the sensitive attributes in v at every depth, in the
// order of the schema's names. Values in sets have no path; the path of the set is returned
// once instead. Attributes of unknown or null objects are omitted.
func (b *Block) SensitivePaths(v cty.Value) []cty.Path {
	if !b.facts().sensitive {
		return nil
	}
	f := finder{want: func(a *Attribute) bool { return a.Sensitive }}
	f.block(b, v, nil)
	return f.found
}

// WriteOnlyPaths is like SensitivePaths for write-only attributes.
func (b *Block) WriteOnlyPaths(v cty.Value) []cty.Path {
	if !b.facts().writeOnly {
		return nil
	}
	f := finder{want: func(a *Attribute) bool { return a.WriteOnly }}
	f.block(b, v, nil)
	return f.found
}

type finder struct {
	want  func(*Attribute) bool
	found []cty.Path
}

func (f *finder) block(b *Block, v cty.Value, path cty.Path) {
	v, _ = v.Unmark()
	if absent(v) {
		return
	}
	for _, name := range b.facts().attrs {
		f.attr(b.Attributes[name], v, name, path)
	}
	for _, name := range b.facts().blocks {
		nb := b.Blocks[name]
		if k := nb.Block.facts(); !k.sensitive && !k.writeOnly {
			continue
		}
		f.nested(nb.Nesting, v.GetAttr(name), path.GetAttr(name), func(e cty.Value, p cty.Path) { f.block(nb.Block, e, p) })
	}
}

func (f *finder) attr(a *Attribute, obj cty.Value, name string, path cty.Path) {
	if f.want(a) {
		f.found = append(f.found, path.GetAttr(name))
		return
	}
	if a.Nested == nil {
		return
	}
	o := a.Nested
	f.nested(o.Nesting, obj.GetAttr(name), path.GetAttr(name), func(e cty.Value, p cty.Path) { f.object(o, e, p) })
}

func (f *finder) object(o *Object, v cty.Value, path cty.Path) {
	v, _ = v.Unmark()
	if absent(v) {
		return
	}
	for _, name := range sortedNames(o.Attributes) {
		f.attr(o.Attributes[name], v, name, path)
	}
}

func (f *finder) nested(n Nesting, v cty.Value, path cty.Path, one func(cty.Value, cty.Path)) {
	v, _ = v.Unmark()
	if absent(v) {
		return
	}
	if n == Single || n == Group {
		one(v, path)
		return
	}
	keys, vals := elements(v)
	before := len(f.found)
	for i, e := range vals {
		switch {
		case keys != nil && v.Type().IsObjectType():
			one(e, path.GetAttr(keys[i]))
		default:
			one(e, path.Index(elementKey(n, keys, vals, i)))
		}
		if n == Set && len(f.found) > before {
			f.found = append(f.found[:before], path)
			return
		}
	}
}

// firstWriteOnly returns the path of a write-only attribute that is not null.
func (b *Block) firstWriteOnly(v cty.Value) (cty.Path, bool) {
	if !b.mayHoldWriteOnly(v) {
		return nil, false
	}
	if b.StripWriteOnly(v).RawEquals(v) {
		return nil, false
	}
	for _, path := range b.WriteOnlyPaths(v) {
		if at, err := path.Apply(v); err != nil || !at.IsNull() {
			return path, true
		}
	}
	return nil, true
}

// mayHoldWriteOnly returns false if no write-only attribute of v is set at any depth. It does
// not examine existing nested attributes and blocks, for which it returns true.
func (b *Block) mayHoldWriteOnly(v cty.Value) bool {
	if !b.facts().writeOnly || absent(v) {
		return false
	}
	for _, name := range b.facts().holders {
		if !v.GetAttr(name).IsNull() {
			return true
		}
	}
	for name, nb := range b.Blocks {
		if !nb.Block.facts().writeOnly {
			continue
		}
		e := v.GetAttr(name)
		if absent(e) || nb.Nesting != Single && nb.Nesting != Group && e.LengthInt() == 0 {
			continue
		}
		return true
	}
	return false
}

// StripWriteOnly returns v with null for each write-only attribute, at every depth. If none is
// set, it returns v itself. v must conform to the block's implied type and must not have marks.
func (b *Block) StripWriteOnly(v cty.Value) cty.Value {
	if !b.mayHoldWriteOnly(v) {
		return v
	}
	out := v.AsValueMap()
	stripAttrs(b.Attributes, out)
	for name, nb := range b.Blocks {
		if e := out[name]; nb.Block.facts().writeOnly && !absent(e) {
			out[name] = mapElements(nb.Nesting, e, nb.Block.StripWriteOnly)
		}
	}
	return cty.ObjectVal(out)
}

func stripAttrs(attrs map[string]*Attribute, vals map[string]cty.Value) {
	for name, a := range attrs {
		switch {
		case a.WriteOnly:
			vals[name] = cty.NullVal(a.Type)
		case a.Nested != nil && a.anyWriteOnly() && !absent(vals[name]):
			vals[name] = mapElements(a.Nested.Nesting, vals[name], a.Nested.stripWriteOnly)
		}
	}
}

func (o *Object) stripWriteOnly(v cty.Value) cty.Value {
	if absent(v) {
		return v
	}
	out := v.AsValueMap()
	stripAttrs(o.Attributes, out)
	return cty.ObjectVal(out)
}

// FirstUnknown returns the path of an unknown part of v. ok is false if v is wholly known.
// Providers must not return unknown parts after an apply or a read.
func FirstUnknown(v cty.Value) (path cty.Path, ok bool) {
	if v.IsWhollyKnown() {
		return nil, false
	}
	found := cty.Path{}
	_ = cty.Walk(v, func(p cty.Path, v cty.Value) (bool, error) {
		if ok {
			return false, nil
		}
		if !v.IsKnown() {
			found, ok = p.Copy(), true
			return false, nil
		}
		return true, nil
	})
	return found, ok
}
