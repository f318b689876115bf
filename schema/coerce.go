package schema

import (
	"fmt"

	"github.com/terrace-iac/terrace/internal/base/value"

	"github.com/zclconf/go-cty/cty"
)

// Coerce converts a loosely typed value, an object or a map, to the implied type of the block.
// Attributes are converted. Missing attributes become null, or are an error if they are
// required. Missing nested blocks become the value for no blocks. A name that the block does
// not have is an error. Marks are kept, and null and unknown values are unchanged. Errors are
// cty.PathError.
func (b *Block) Coerce(v cty.Value) (cty.Value, error) { return b.coerce(v, nil) }

func (b *Block) coerce(v cty.Value, path cty.Path) (cty.Value, error) {
	want := b.ImpliedType()
	if v.Type().Equals(want) && !want.HasDynamicTypes() {
		return v, nil
	}
	v, marks := v.Unmark()
	switch {
	case v.IsNull():
		return cty.NullVal(want).WithMarks(marks), nil
	case !v.IsKnown():
		return cty.UnknownVal(want).WithMarks(marks), nil
	}
	get, err := fields(v, path, b.has)
	if err != nil {
		return cty.DynamicVal, err
	}
	f := b.facts()
	out := make(map[string]cty.Value, len(f.attrs)+len(f.blocks))
	for _, name := range f.attrs {
		a := b.Attributes[name]
		if out[name], err = a.coerceField(get(name), path.GetAttr(name)); err != nil {
			return cty.DynamicVal, err
		}
	}
	for _, name := range f.blocks {
		nb := b.Blocks[name]
		fv := get(name)
		if fv == cty.NilVal {
			out[name] = nb.EmptyValue()
			continue
		}
		if out[name], err = nb.coerceBlocks(fv, path.GetAttr(name)); err != nil {
			return cty.DynamicVal, err
		}
	}
	return cty.ObjectVal(out).WithMarks(marks), nil
}

func (b *Block) has(name string) bool {
	return b.Attributes[name] != nil || b.Blocks[name] != nil
}

// fields returns a function that returns a field of an object or map, or NilVal. Every unknown
// name is an error.
func fields(v cty.Value, path cty.Path, known func(string) bool) (func(string) cty.Value, error) {
	ty := v.Type()
	switch {
	case ty.IsObjectType():
		for name := range ty.AttributeTypes() {
			if !known(name) {
				return nil, unexpected(v, path, known)
			}
		}
		return func(name string) cty.Value {
			if !ty.HasAttribute(name) {
				return cty.NilVal
			}
			return v.GetAttr(name)
		}, nil
	case ty.IsMapType():
		m := v.AsValueMap()
		for name := range m {
			if !known(name) {
				return nil, unexpected(v, path, known)
			}
		}
		return func(name string) cty.Value { return m[name] }, nil
	}
	return nil, path.NewErrorf("an object is required, not %s", ty.FriendlyName())
}

// unexpected returns an error for the first unknown name in sorted order, so that the text is
// deterministic.
func unexpected(v cty.Value, path cty.Path, known func(string) bool) error {
	for it := v.ElementIterator(); it.Next(); {
		if k, _ := it.Element(); !known(k.AsString()) {
			return path.NewErrorf("there is no argument or block named %q here", k.AsString())
		}
	}
	return path.NewErrorf("unexpected name")
}

func (a *Attribute) coerceField(v cty.Value, path cty.Path) (cty.Value, error) {
	if v == cty.NilVal {
		if a.Required {
			return cty.DynamicVal, path[:len(path)-1].NewErrorf("the required attribute %q is missing", attrName(path))
		}
		return cty.NullVal(a.Type), nil
	}
	if v.Type().Equals(a.Type) {
		return v, nil
	}
	if a.Nested != nil && !a.Type.HasDynamicTypes() {
		return a.Nested.coerce(a.Type, v, path)
	}
	out, err := value.Convert(v, a.Type)
	if err != nil {
		return cty.DynamicVal, path.NewError(err)
	}
	return out, nil
}

func attrName(path cty.Path) string {
	if s, ok := path[len(path)-1].(cty.GetAttrStep); ok {
		return s.Name
	}
	return ""
}

func (o *Object) coerce(ty cty.Type, v cty.Value, path cty.Path) (cty.Value, error) {
	one := func(v cty.Value, path cty.Path) (cty.Value, error) { return o.coerceOne(v, path) }
	return coerceNested(o.Nesting, ty, v, path, one)
}

// coerceOne converts one object of a nested attribute.
func (o *Object) coerceOne(v cty.Value, path cty.Path) (cty.Value, error) {
	v, marks := v.Unmark()
	want := (&Object{Attributes: o.Attributes, Nesting: Single}).ImpliedType()
	switch {
	case v.IsNull():
		return cty.NullVal(want).WithMarks(marks), nil
	case !v.IsKnown():
		return cty.UnknownVal(want).WithMarks(marks), nil
	}
	get, err := fields(v, path, func(name string) bool { return o.Attributes[name] != nil })
	if err != nil {
		return cty.DynamicVal, err
	}
	out := make(map[string]cty.Value, len(o.Attributes))
	for name, a := range o.Attributes {
		if out[name], err = a.coerceField(get(name), path.GetAttr(name)); err != nil {
			return cty.DynamicVal, err
		}
	}
	return cty.ObjectVal(out).WithMarks(marks), nil
}

func (nb *NestedBlock) coerceBlocks(v cty.Value, path cty.Path) (cty.Value, error) {
	if nb.Nesting == Single || nb.Nesting == Group {
		return nb.Block.coerce(v, path)
	}
	ty := nb.Block.ImpliedType()
	switch {
	case nb.Nesting == Set:
		ty = cty.Set(ty)
	case ty.HasDynamicTypes():
		ty = cty.DynamicPseudoType
	case nb.Nesting == List:
		ty = cty.List(ty)
	default:
		ty = cty.Map(ty)
	}
	if u, _ := v.Unmark(); u.IsNull() { // the value for no blocks is never null
		return nb.EmptyValue().WithSameMarks(v), nil
	}
	return coerceNested(nb.Nesting, ty, v, path, nb.Block.coerce)
}

// coerceNested converts the elements of a collection of nested objects, and returns a
// collection of type ty. ty is dynamic if the elements' types may differ.
func coerceNested(n Nesting, ty cty.Type, v cty.Value, path cty.Path, one func(cty.Value, cty.Path) (cty.Value, error)) (cty.Value, error) {
	if n == Single || n == Group {
		return one(v, path)
	}
	v, marks := v.Unmark()
	switch {
	case v.IsNull():
		return cty.NullVal(ty).WithMarks(marks), nil
	case !v.IsKnown():
		return cty.UnknownVal(ty).WithMarks(marks), nil
	}
	vty := v.Type()
	named := vty.IsMapType() || vty.IsObjectType()
	if n == Map && !named || n != Map && !vty.IsListType() && !vty.IsSetType() && !vty.IsTupleType() {
		return cty.DynamicVal, path.NewErrorf("%s is required, not %s", nestingWord(n), vty.FriendlyName())
	}
	keys, vals := elements(v)
	for i, e := range vals {
		step := path.Index(elementKey(n, keys, vals, i))
		if named {
			step = path.IndexString(keys[i])
		}
		out, err := one(e, step)
		if err != nil {
			return cty.DynamicVal, err
		}
		vals[i] = out
	}
	if n == Set && !consistent(vals) {
		return cty.DynamicVal, path.NewErrorf("the elements of a set must all have the same type")
	}
	like := cty.UnknownVal(ty)
	if ty == cty.DynamicPseudoType {
		like = structural(n)
	}
	return collect(n, like, keys, vals).WithMarks(marks), nil
}

func structural(n Nesting) cty.Value {
	if n == Map {
		return cty.EmptyObjectVal
	}
	return cty.EmptyTupleVal
}

// elementKey returns the key in the path step to element i.
func elementKey(n Nesting, keys []string, vals []cty.Value, i int) cty.Value {
	switch n {
	case Map:
		return cty.StringVal(keys[i])
	case Set:
		return vals[i]
	default:
		return cty.NumberIntVal(int64(i))
	}
}

func nestingWord(n Nesting) string {
	switch n {
	case List:
		return "a list of objects"
	case Set:
		return "a set of objects"
	case Map:
		return "a map of objects"
	default:
		return "an object"
	}
}

// Validate returns an error if a schema that a provider sent is invalid: missing types,
// attributes with contradictory or missing properties, and nesting modes that the protocol does
// not have.
func (b *Block) Validate() error { return b.validate("") }

func (b *Block) validate(where string) error {
	f := b.facts()
	for _, name := range f.attrs {
		if err := b.Attributes[name].validate(where + name); err != nil {
			return err
		}
		if b.Blocks[name] != nil {
			return fmt.Errorf("%s%s is both an attribute and a block", where, name)
		}
	}
	for _, name := range f.blocks {
		nb := b.Blocks[name]
		if nb.Nesting == NestingInvalid || nb.Nesting > Map {
			return fmt.Errorf("the block %s%s has no nesting mode that the protocol knows", where, name)
		}
		if err := nb.Block.validate(where + name + "."); err != nil {
			return err
		}
		if nb.Nesting == Set && nb.Block.ImpliedType().HasDynamicTypes() {
			return fmt.Errorf("the block %s%s is a set, so its attributes need one type each", where, name)
		}
	}
	return nil
}

func (a *Attribute) validate(where string) error {
	switch {
	case where == "" || where[len(where)-1] == '.':
		return fmt.Errorf("an attribute %shas no name", where)
	case a.Required && (a.Optional || a.Computed):
		return fmt.Errorf("the attribute %s is required and also optional or computed", where)
	case !a.Required && !a.Optional && !a.Computed:
		return fmt.Errorf("the attribute %s is neither required nor optional nor computed", where)
	case a.Type == cty.NilType:
		return fmt.Errorf("the attribute %s has no type", where)
	case a.Nested == nil:
		return nil
	case a.Nested.Nesting == NestingInvalid || a.Nested.Nesting > Map || a.Nested.Nesting == Group:
		return fmt.Errorf("the attribute %s has no nesting mode that the protocol knows", where)
	case a.Nested.Nesting != Single && a.Type.HasDynamicTypes():
		return fmt.Errorf("the attribute %s is a collection, so its nested attributes need one type each", where)
	}
	for name, n := range a.Nested.Attributes {
		if err := n.validate(where + "." + name); err != nil {
			return err
		}
	}
	return nil
}
