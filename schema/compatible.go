package schema

import (
	"fmt"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// AssertObjectCompatible checks that an object after an apply, or in a second plan with more
// known values, agrees with the plan: every known part of planned is equal in actual; unknown
// parts may have any value. Each error is a *Mismatch. Values must not have marks. For
// providers with the loose type system only [AssertUsable] applies.
func AssertObjectCompatible(b *Block, planned, actual cty.Value) []error {
	if err := conforms(b, actual); err != nil {
		return []error{err}
	}
	var c checker
	c.gotBlock(b, planned, actual, nil)
	return c.errs
}

// AssertSameValue is like AssertObjectCompatible for a value without a schema.
func AssertSameValue(planned, actual cty.Value) []error {
	var c checker
	c.gotValue(planned, actual, nil, false)
	return c.errs
}

// AssertUsable checks the guarantees of every provider, including those with the loose type
// system. The object has the type of the block, write-only attributes are null and, if
// wantKnown is set, there are no unknown parts.
func AssertUsable(b *Block, v cty.Value, wantKnown bool) error {
	if err := conforms(b, v); err != nil {
		return err
	}
	if path, ok := b.firstWriteOnly(v); ok {
		return &Mismatch{Path: path, Msg: "a write-only attribute must be null", Sensitive: true}
	}
	if wantKnown {
		if path, ok := FirstUnknown(v); ok {
			return &Mismatch{Path: path, Msg: "the value is unknown, but must be known now"}
		}
	}
	return nil
}

func (c *checker) gotPresence(planned, actual cty.Value, path cty.Path, sensitive bool) bool {
	if planned.IsNull() == actual.IsNull() {
		return true
	}
	if planned.IsNull() {
		c.differ(path, planned, actual, sensitive, "it was planned to be absent, but is present now")
	} else {
		c.differ(path, planned, actual, sensitive, "it was planned to be present, but is absent now")
	}
	return false
}

// gotObjectAtAll checks everything except attributes, and reports whether the attributes must
// be checked.
func (c *checker) gotObjectAtAll(planned, actual cty.Value, path cty.Path) bool {
	switch {
	case !planned.IsKnown():
		return false
	case !actual.IsKnown():
		c.lost(planned, actual, path, false)
		return false
	}
	return c.gotPresence(planned, actual, path, false) && !planned.IsNull()
}

// lost reports a value that was known in the plan and is unknown now.
func (c *checker) lost(planned, actual cty.Value, path cty.Path, sensitive bool) {
	c.differ(path, planned, actual, sensitive, "the value was known in the plan, but is unknown now")
}

func (c *checker) gotBlock(b *Block, planned, actual cty.Value, path cty.Path) {
	if !c.gotObjectAtAll(planned, actual, path) {
		return
	}
	for _, name := range b.facts().attrs {
		c.gotAttr(b.Attributes[name], planned.GetAttr(name), actual.GetAttr(name), path, name)
	}
	for _, name := range b.facts().blocks {
		nb := b.Blocks[name]
		n := gotNester{nb.Nesting, nb.Block.Attributes, "blocks", func(c *checker, p, a cty.Value, at cty.Path) { c.gotBlock(nb.Block, p, a, at) }}
		c.gotNested(n, planned.GetAttr(name), actual.GetAttr(name), path.GetAttr(name))
	}
}

func (c *checker) gotAttr(a *Attribute, planned, actual cty.Value, path cty.Path, name string) {
	switch {
	case a.WriteOnly:
		if !actual.IsNull() {
			c.writeOnly(path.GetAttr(name), "result")
		}
	case !planned.IsKnown():
	case a.Nested == nil && became(planned, actual):
	case a.Nested != nil && planned.RawEquals(actual):
	case a.Nested != nil:
		if actual.IsKnown() && !c.gotPresence(planned, actual, path.GetAttr(name), a.Sensitive) {
			return
		}
		o := a.Nested
		n := gotNester{o.Nesting, o.Attributes, "elements", func(c *checker, p, a cty.Value, at cty.Path) { c.gotObject(o, p, a, at) }}
		c.gotNested(n, planned, actual, path.GetAttr(name))
	default:
		c.gotValue(planned, actual, path.GetAttr(name), a.Sensitive)
	}
}

func (c *checker) gotObject(o *Object, planned, actual cty.Value, path cty.Path) {
	if !c.gotObjectAtAll(planned, actual, path) {
		return
	}
	for _, name := range sortedNames(o.Attributes) {
		c.gotAttr(o.Attributes[name], planned.GetAttr(name), actual.GetAttr(name), path, name)
	}
}

// became reports whether actual agrees with planned, a value without a schema. It is a fast
// path: if it returns false, gotValue must be called for the errors.
func became(planned, actual cty.Value) bool {
	switch {
	case !planned.IsKnown():
		return true
	case !actual.IsKnown() || planned.IsNull() != actual.IsNull():
		return false
	case planned.IsNull():
		return true
	}
	switch ty, now := planned.Type(), actual.Type(); {
	case ty.IsPrimitiveType():
		return value.Same(planned, actual)
	case ty.IsObjectType():
		if !now.IsObjectType() || len(ty.AttributeTypes()) != len(now.AttributeTypes()) {
			return false
		}
		for name := range ty.AttributeTypes() {
			if !now.HasAttribute(name) || !became(planned.GetAttr(name), actual.GetAttr(name)) {
				return false
			}
		}
		return true
	case ty.IsListType() && now.IsListType() || ty.IsTupleType() && now.IsTupleType():
		if planned.LengthInt() != actual.LengthInt() {
			return false
		}
		p, a := planned.ElementIterator(), actual.ElementIterator()
		for p.Next() && a.Next() {
			_, x := p.Element()
			_, y := a.Element()
			if !became(x, y) {
				return false
			}
		}
		return true
	}
	return value.Same(planned, actual)
}

// gotValue compares two values without a schema.
func (c *checker) gotValue(planned, actual cty.Value, path cty.Path, sensitive bool) {
	switch {
	case !planned.IsKnown():
		return
	case !actual.IsKnown():
		c.lost(planned, actual, path, sensitive)
		return
	}
	if !c.gotPresence(planned, actual, path, sensitive) || planned.IsNull() {
		return
	}
	ty := planned.Type()
	if actual.Type().IsPrimitiveType() != ty.IsPrimitiveType() || ty.IsSetType() != actual.Type().IsSetType() {
		c.differ(path, planned, actual, sensitive, "the value has another type than planned")
		return
	}
	switch {
	case ty.IsSetType():
		n := gotNester{Set, nil, "elements", func(c *checker, p, a cty.Value, at cty.Path) { c.gotValue(p, a, at, sensitive) }}
		c.gotNested(n, planned, actual, path)
	case ty.IsMapType() || ty.IsObjectType() || ty.IsListType() || ty.IsTupleType():
		if planned.IsWhollyKnown() && planned.RawEquals(actual) {
			return
		}
		n := gotNester{List, nil, "elements", func(c *checker, p, a cty.Value, at cty.Path) { c.gotValue(p, a, at, sensitive) }}
		if ty.IsMapType() || ty.IsObjectType() {
			n.nesting = Map
		}
		c.gotNested(n, planned, actual, path)
	default:
		if !planned.RawEquals(actual) {
			c.differ(path, planned, actual, sensitive, "the value is not the planned one")
		}
	}
}

// A gotNester compares collections of blocks, objects or plain values.
type gotNester struct {
	nesting Nesting
	attrs   map[string]*Attribute // nil for plain values
	what    string
	one     func(c *checker, planned, actual cty.Value, at cty.Path)
}

// blocks reports whether the elements are blocks, not objects or values.
func (n gotNester) blocks() bool { return n.what == "blocks" }

func (c *checker) gotNested(n gotNester, planned, actual cty.Value, path cty.Path) {
	if n.nesting == Single || n.nesting == Group {
		n.one(c, planned, actual, path)
		return
	}
	if !planned.IsKnown() {
		return
	}
	if !actual.IsKnown() {
		c.lost(planned, actual, path, false)
		return
	}
	if n.blocks() && (planned.IsNull() || actual.IsNull()) {
		return // OpenTofu 1.12.6 accepts null blocks for any plan
	}
	if !c.gotPresence(planned, actual, path, false) || planned.IsNull() {
		return
	}
	if !iterable(planned.Type()) || !iterable(actual.Type()) {
		c.add(path, "the value has another type than planned")
		return
	}
	if n.nesting == Set {
		c.gotSet(n, planned, actual, path)
		return
	}
	pk, pv := elements(planned)
	ak, av := elements(actual)
	if n.nesting == Map {
		c.gotMap(n, keyedList{pk, pv}, keyedList{ak, av}, path)
		return
	}
	if len(pv) != len(av) && n.blocks() { // test suites of providers search for this text
		c.add(path, "block count changed from %d to %d", len(pv), len(av))
		return
	}
	if len(pv) != len(av) {
		c.add(path, "%d %s were planned, but there are %d now", len(pv), n.what, len(av))
		return
	}
	for i := range pv {
		n.one(c, pv[i], av[i], path.IndexInt(i))
	}
}

func iterable(ty cty.Type) bool {
	return ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType()
}

func (c *checker) gotMap(n gotNester, planned, actual keyedList, path cty.Path) {
	want, have := planned.byKey(), actual.byKey()
	for _, k := range planned.keys {
		a, ok := have[k]
		if !ok {
			c.add(path, "the element %q was planned, but is absent now", k)
			continue
		}
		n.one(c, want[k], a, path.IndexString(k))
	}
	for _, k := range actual.keys {
		if _, ok := want[k]; !ok {
			c.add(path, "the element %q was not planned, but is present now", k)
		}
	}
}

// gotSet checks that each planned element could have become an actual one, and that each actual
// element could come from a planned one. The numbers may differ, since several unknown elements
// may become equal.
func (c *checker) gotSet(n gotNester, planned, actual cty.Value, path cty.Path) {
	if planned.IsWhollyKnown() && planned.RawEquals(actual) {
		return
	}
	_, pv := elements(planned)
	_, av := elements(actual)
	fits := func(p, a cty.Value) bool {
		var try checker
		n.one(&try, p, a, nil)
		return len(try.errs) == 0
	}
	came := make([]bool, len(av))
	index := newSetIndex(n.attrs, av)
	lost := 0
	for _, p := range pv {
		found := false
		for _, j := range index.candidates(p) {
			if fits(p, av[j]) {
				found, came[j] = true, true
			}
		}
		if !found {
			lost++
		}
	}
	extra := 0
	for _, ok := range came {
		if !ok {
			extra++
		}
	}
	if lost+extra > 0 && len(pv) != len(av) && n.blocks() {
		c.differ(path, planned, actual, false, fmt.Sprintf("block set length changed from %d to %d", len(pv), len(av)))
		return
	}
	if lost+extra > 0 {
		c.differ(path, planned, actual, false, fmt.Sprintf("of the %d planned %s of the set %d are absent now, and %d are there that were not planned", len(pv), n.what, lost, extra))
	}
}

// A setIndex finds the elements of a set that a planned element may have become: objects with
// equal known plain attributes, or other values that are equal.
type setIndex struct {
	attrs   map[string]*Attribute
	vals    []cty.Value
	all     []int
	byShape map[string]map[int][]int
	whole   map[int][]int // by the hash of the whole element; nil until it is needed
}

func newSetIndex(attrs map[string]*Attribute, vals []cty.Value) *setIndex {
	x := &setIndex{attrs: attrs, vals: vals, byShape: map[string]map[int][]int{}, all: make([]int, len(vals))}
	for i := range x.all {
		x.all[i] = i
	}
	return x
}

func (x *setIndex) candidates(p cty.Value) []int {
	if absent(p) || !p.Type().IsObjectType() || len(p.Type().AttributeTypes()) == 0 {
		if !p.IsWhollyKnown() {
			return x.all
		}
		if x.whole == nil {
			x.whole = make(map[int][]int, len(x.vals))
			for j, v := range x.vals {
				h := v.Hash()
				x.whole[h] = append(x.whole[h], j)
			}
		}
		return x.whole[p.Hash()]
	}
	var s shape
	for it := p.ElementIterator(); it.Next(); {
		k, v := it.Element()
		name := k.AsString()
		if a := x.attrs[name]; x.attrs != nil && (a == nil || a.Nested != nil || a.WriteOnly) || !v.IsWhollyKnown() {
			continue
		}
		s.names = append(s.names, name)
		s.key += name + "\x00"
	}
	index, ok := x.byShape[s.key]
	if !ok {
		index = make(map[int][]int, len(x.vals))
		for j, v := range x.vals {
			if !absent(v) {
				h := s.hash(v)
				index[h] = append(index[h], j)
			}
		}
		x.byShape[s.key] = index
	}
	return index[s.hash(p)]
}
