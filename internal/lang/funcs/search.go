package funcs

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/terrace-iac/terrace/internal/base/value"
)

// searching returns the functions that search in a collection.
func searching() family {
	return family{
		"contains":  containsFunc(),
		"index":     indexFunc(),
		"lookup":    lookupFunc(),
		"matchkeys": matchKeysFunc(),
	}
}

// containsFunc returns contains. It accepts null as the value to search.
func containsFunc() function.Function {
	v := plain("value", cty.DynamicPseudoType)
	v.AllowNull, v.AllowDynamicType = true, true
	return function.New(&function.Spec{
		Description: "Tells whether a list, set or tuple has an element that equals a value.",
		Params:      []function.Parameter{plain("list", cty.DynamicPseudoType), v},
		Type: func(args []cty.Value) (cty.Type, error) {
			if !isSequence(args[0].Type()) {
				return cty.NilType, errors.New("argument must be list, tuple, or set")
			}
			return cty.Bool, nil
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result := cty.False
			for _, element := range args[0].Elements() {
				same := equal(element, args[1])
				switch {
				case !same.IsKnown():
					result = cty.UnknownVal(cty.Bool)
				case same.True():
					return cty.True, nil
				}
			}
			return result, nil
		},
	})
}

// equal is a.Equals(b), with a fast path for strings.
func equal(a, b cty.Value) cty.Value {
	if a.Type() == cty.String && b.Type() == cty.String && a.IsKnown() && b.IsKnown() && !a.IsNull() && !b.IsNull() {
		return cty.BoolVal(a.AsString() == b.AsString())
	}
	return a.Equals(b)
}

func indexFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the index of the first element of a list that equals a value.",
		Params:      []function.Parameter{plain("list", cty.DynamicPseudoType), plain("value", cty.DynamicPseudoType)},
		Type: func(args []cty.Value) (cty.Type, error) {
			if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
				return cty.NilType, errors.New("argument must be a list or tuple")
			}
			return cty.Number, nil
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].LengthInt() == 0 {
				return cty.NilVal, errors.New("cannot search an empty list")
			}
			for i, element := range args[0].Elements() {
				same := equal(element, args[1])
				if !same.IsKnown() {
					return cty.UnknownVal(cty.Number), nil
				}
				if same.True() {
					return i, nil
				}
			}
			return cty.NilVal, errors.New("item not found")
		},
	})
}

func lookupFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the element of a map or object that has a key, or the default if there is none.",
		Params:      []function.Parameter{param("inputMap", cty.DynamicPseudoType), param("key", cty.String)},
		VarParam: &function.Parameter{
			Name: "default", Type: cty.DynamicPseudoType,
			AllowUnknown: true, AllowDynamicType: true, AllowNull: true, AllowMarked: true,
		},
		Type: lookupType,
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			from, mapMarks := args[0].Unmark()
			key, keyMarks := args[1].Unmark()
			if !from.IsKnown() || !key.IsKnown() {
				return cty.UnknownVal(ret).WithMarks(mapMarks, keyMarks), nil
			}
			found, ok := lookup(from, key)
			if !ok {
				if len(args) < 3 {
					return cty.NilVal, errors.New("lookup failed to find key " + shown(args[1]))
				}
				var err error
				if found, err = convert.Convert(args[2], ret); err != nil {
					return cty.NilVal, errBadDefault()
				}
			}
			return found.WithMarks(mapMarks, keyMarks), nil
		},
	})
}

// lookup returns an element of a known map or object.
func lookup(from, key cty.Value) (cty.Value, bool) {
	if from.Type().IsObjectType() {
		if !from.Type().HasAttribute(key.AsString()) {
			return cty.NilVal, false
		}
		return from.GetAttr(key.AsString()), true
	}
	if !from.HasIndex(key).True() {
		return cty.NilVal, false
	}
	return from.Index(key), true
}

func lookupType(args []cty.Value) (cty.Type, error) {
	if len(args) > 3 {
		return cty.NilType, function.NewArgErrorf(3, "lookup() takes two or three arguments, got %d", len(args))
	}
	ty := args[0].Type()
	switch {
	case ty.IsMapType():
		if len(args) == 3 {
			if _, err := convert.Convert(args[2], ty.ElementType()); err != nil {
				return cty.NilType, errBadDefault()
			}
		}
		return ty.ElementType(), nil
	case !ty.IsObjectType():
		return cty.NilType, function.NewArgErrorf(0, "lookup() requires a map as the first argument")
	}
	key, _ := args[1].Unmark()
	switch {
	case !key.IsKnown():
		return cty.DynamicPseudoType, nil
	case ty.HasAttribute(key.AsString()):
		return ty.AttributeType(key.AsString()), nil
	case len(args) == 3:
		return args[2].Type(), nil
	}
	return cty.NilType, function.NewArgErrorf(0, "the given object has no attribute %s", shown(args[1]))
}

func errBadDefault() error {
	return function.NewArgErrorf(2, "the default value must have the same type as the map elements")
}

// shown returns a known string in the form in which errors contain it.
func shown(v cty.Value) string {
	bare, marks := v.Unmark()
	return call{args: []cty.Value{bare}, secret: []bool{secretMarks(marks)}}.quoted(0)
}

func secretMarks(marks cty.ValueMarks) bool {
	return marks.Has(value.Sensitive) || marks.Has(value.Hidden)
}

func matchKeysFunc() function.Function {
	list := cty.List(cty.DynamicPseudoType)
	return function.New(&function.Spec{
		Description: "Returns the elements of one list whose counterparts in a second list are in a third.",
		Params:      []function.Parameter{plain("values", list), plain("keys", list), plain("searchset", list)},
		Type: func(args []cty.Value) (cty.Type, error) {
			if ty, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()}); ty == cty.NilType {
				return cty.NilType, errors.New("keys and searchset must be of the same type")
			}
			return args[0].Type(), nil // values are returned unchanged
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if args[0].LengthInt() != args[1].LengthInt() {
				return cty.NilVal, errors.New("length of keys and values should be equal")
			}
			if !args[1].IsWhollyKnown() || !args[2].IsWhollyKnown() {
				return cty.UnknownVal(ret), nil
			}
			return matchKeys(args[0], args[1], args[2])
		},
	})
}

func matchKeys(values, keys, searchset cty.Value) (cty.Value, error) {
	common, _ := convert.UnifyUnsafe([]cty.Type{keys.Type(), searchset.Type()})
	keys, err := convert.Convert(keys, common)
	if err != nil {
		return cty.NilVal, function.NewArgError(1, err)
	}
	searchset, err = convert.Convert(searchset, common)
	if err != nil {
		return cty.NilVal, function.NewArgError(2, err)
	}
	wanted := make(valueSet)
	for _, key := range searchset.Elements() {
		wanted.add(key)
	}
	var found []cty.Value
	for i, key := range keys.Elements() {
		if wanted.has(key) {
			found = append(found, values.Index(i))
		}
	}
	if len(found) == 0 {
		return cty.ListValEmpty(values.Type().ElementType()), nil
	}
	return cty.ListVal(found), nil
}
