package schema

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// facts contains cached properties of a block. A block is immutable, so that they are computed
// once.
type facts struct {
	attrs     []string // sorted
	blocks    []string // sorted
	sensitive bool     // the block contains a sensitive attribute at any depth
	writeOnly bool
	holders   []string // attributes that are write-only or contain write-only attributes
}

func (b *Block) facts() *facts {
	b.factsOnce.Do(func() {
		f := &b.known
		f.attrs = slices.Sorted(maps.Keys(b.Attributes))
		f.blocks = slices.Sorted(maps.Keys(b.Blocks))
		for _, name := range f.attrs {
			a := b.Attributes[name]
			f.sensitive = f.sensitive || a.anySensitive()
			if a.anyWriteOnly() {
				f.holders, f.writeOnly = append(f.holders, name), true
			}
		}
		for _, nb := range b.Blocks {
			below := nb.Block.facts()
			f.sensitive = f.sensitive || below.sensitive
			f.writeOnly = f.writeOnly || below.writeOnly
		}
	})
	return &b.known
}

// HasSensitive reports whether any attribute of the block, at any depth, is sensitive.
func (b *Block) HasSensitive() bool { return b.facts().sensitive }

// HasWriteOnly reports whether any attribute of the block, at any depth, is write-only.
func (b *Block) HasWriteOnly() bool { return b.facts().writeOnly }

func (a *Attribute) anySensitive() bool {
	return a.Sensitive || a.Nested != nil && a.Nested.HasSensitive()
}

// HasSensitive reports whether any attribute of the object, at any depth, is sensitive.
func (o *Object) HasSensitive() bool {
	for _, n := range o.Attributes {
		if n.anySensitive() {
			return true
		}
	}
	return false
}

func (a *Attribute) anyWriteOnly() bool {
	if a.WriteOnly {
		return true
	}
	if a.Nested != nil {
		for _, n := range a.Nested.Attributes {
			if n.anyWriteOnly() {
				return true
			}
		}
	}
	return false
}

// absent reports whether a value has no elements.
func absent(v cty.Value) bool { return v == cty.NilVal || v.IsNull() || !v.IsKnown() }

// collect builds the value of a nested block or attribute from the values of its elements. keys
// are the keys for Map. like is the value that is replaced; its type determines whether the
// result is a collection or a structural type.
func collect(n Nesting, like cty.Value, keys []string, vals []cty.Value) cty.Value {
	ty := like.Type()
	switch n {
	case List:
		switch {
		case ty.IsTupleType() || !consistent(vals):
			return cty.TupleVal(vals)
		case len(vals) == 0:
			return emptyLike(ty, cty.ListValEmpty)
		}
		return cty.ListVal(vals)
	case Set:
		if len(vals) == 0 {
			return emptyLike(ty, cty.SetValEmpty)
		}
		return cty.SetVal(vals)
	case Map:
		m := make(map[string]cty.Value, len(vals))
		for i, k := range keys {
			m[k] = vals[i]
		}
		switch {
		case ty.IsObjectType() || !consistent(vals):
			return cty.ObjectVal(m)
		case len(vals) == 0:
			return emptyLike(ty, cty.MapValEmpty)
		}
		return cty.MapVal(m)
	}
	return like
}

func emptyLike(ty cty.Type, empty func(cty.Type) cty.Value) cty.Value {
	if ty.IsCollectionType() {
		return empty(ty.ElementType())
	}
	return empty(cty.DynamicPseudoType)
}

// consistent reports whether values could be elements of one collection.
func consistent(vals []cty.Value) bool {
	for _, v := range vals[min(1, len(vals)):] {
		if !v.Type().Equals(vals[0].Type()) {
			return false
		}
	}
	return true
}

// elements returns the elements of a known, non-null collection, tuple or object in cty's
// order, with the keys of maps and objects.
func elements(v cty.Value) (keys []string, vals []cty.Value) {
	n := v.LengthInt()
	vals = make([]cty.Value, 0, n)
	ty := v.Type()
	named := ty.IsMapType() || ty.IsObjectType()
	if named {
		keys = make([]string, 0, n)
	}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if named {
			keys = append(keys, k.AsString())
		}
		vals = append(vals, e)
	}
	return keys, vals
}

func sortedNames(attrs map[string]*Attribute) []string { return slices.Sorted(maps.Keys(attrs)) }
