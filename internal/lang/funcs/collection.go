package funcs

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// collections returns the functions that build and split lists, sets and maps. The functions
// that search in them are in search.go.
func collections() family {
	return family{
		"alltrue":         boolsFunc("Tells whether all elements of a list are true; true for an empty list.", true),
		"anytrue":         boolsFunc("Tells whether any element of a list is true; false for an empty list.", false),
		"chunklist":       stdlib.ChunklistFunc,
		"coalesce":        coalesceFunc(),
		"coalescelist":    stdlib.CoalesceListFunc,
		"compact":         stdlib.CompactFunc,
		"concat":          bounded(stdlib.ConcatFunc, concatSize),
		"distinct":        distinctFunc(),
		"element":         stdlib.ElementFunc,
		"flatten":         stdlib.FlattenFunc,
		"keys":            stdlib.KeysFunc,
		"length":          lengthFunc(),
		"merge":           mergeFunc(),
		"one":             oneFunc(),
		"range":           stdlib.RangeFunc,
		"reverse":         stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc,
		"setproduct":      bounded(stdlib.SetProductFunc, productSize),
		"setsubtract":     stdlib.SetSubtractFunc,
		"setunion":        setUnion(),
		"slice":           stdlib.SliceFunc,
		"transpose":       guarded(transposeFunc()), // its errors contain keys
		"values":          stdlib.ValuesFunc,
		"zipmap":          stdlib.ZipmapFunc,
	}
}

// boolsFunc returns alltrue (all = true) or anytrue (all = false). A null element counts as
// false. If one element decides the result, unknown elements are ignored.
func boolsFunc(about string, all bool) function.Function {
	return function.New(&function.Spec{
		Description:  about,
		Params:       []function.Parameter{plain("list", cty.List(cty.Bool))},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result := cty.BoolVal(all)
			for _, element := range args[0].Elements() {
				if !element.IsKnown() {
					result = cty.UnknownVal(cty.Bool)
					continue
				}
				if is := !element.IsNull() && element.True(); is != all {
					return cty.BoolVal(is), nil
				}
			}
			return result, nil
		},
	})
}

func coalesceFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the first of its arguments that is neither null nor an empty string.",
		VarParam: &function.Parameter{
			Name: "vals", Type: cty.DynamicPseudoType,
			AllowUnknown: true, AllowDynamicType: true, AllowNull: true,
		},
		Type: func(args []cty.Value) (cty.Type, error) {
			types := make([]cty.Type, len(args))
			for i, arg := range args {
				types[i] = arg.Type()
			}
			common, _ := convert.UnifyUnsafe(types)
			if common == cty.NilType {
				return cty.NilType, errors.New("all arguments must have the same type")
			}
			return common, nil
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			for i, arg := range args {
				v, err := convert.Convert(arg, ret)
				switch {
				case err != nil:
					return cty.NilVal, function.NewArgError(i, err)
				case !v.IsKnown():
					return cty.UnknownVal(ret), nil
				case v.IsNull() || v.Type() == cty.String && v.AsString() == "":
					continue
				}
				return v, nil
			}
			return cty.NilVal, errors.New("no non-null, non-empty-string arguments")
		},
	})
}

func distinctFunc() function.Function {
	return function.New(&function.Spec{
		Description:  "Removes duplicate elements from a list; of equal ones the first stays.",
		Params:       []function.Parameter{plain("list", cty.List(cty.DynamicPseudoType))},
		Type:         func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		RefineResult: notNull,
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(ret), nil
			}
			var kept []cty.Value
			seen := make(valueSet)
			for _, element := range args[0].Elements() {
				if seen.add(element) {
					kept = append(kept, element)
				}
			}
			if len(kept) == 0 {
				return cty.ListValEmpty(ret.ElementType()), nil
			}
			return cty.ListVal(kept), nil
		},
	})
}

// valueSet is a set of wholly known values of one type without marks, by hash.
type valueSet map[int][]cty.Value

// add adds v and reports whether it is new.
func (s valueSet) add(v cty.Value) bool {
	h := v.Hash()
	if s.in(h, v) {
		return false
	}
	s[h] = append(s[h], v)
	return true
}

func (s valueSet) has(v cty.Value) bool { return s.in(v.Hash(), v) }

func (s valueSet) in(h int, v cty.Value) bool {
	for _, other := range s[h] {
		if equal(v, other).True() {
			return true
		}
	}
	return false
}

func lengthFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the number of elements of a list, set, map, tuple or object, or of characters (grapheme clusters) of a string.",
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType,
			AllowDynamicType: true, AllowUnknown: true, AllowMarked: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			if ty != cty.String && ty != cty.DynamicPseudoType && !ty.IsCollectionType() && !ty.IsTupleType() && !ty.IsObjectType() {
				return cty.NilType, errors.New("argument must be a string, a collection type, or a structural type")
			}
			return cty.Number, nil
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, marks := args[0].Unmark()
			switch ty := v.Type(); {
			case ty == cty.DynamicPseudoType:
				return cty.UnknownVal(cty.Number).WithMarks(marks), nil
			case ty == cty.String:
				n, err := stdlib.Strlen(v)
				return n.WithMarks(marks), err
			case ty.IsTupleType():
				return cty.NumberIntVal(int64(len(ty.TupleElementTypes()))).WithMarks(marks), nil
			case ty.IsObjectType():
				return cty.NumberIntVal(int64(len(ty.AttributeTypes()))).WithMarks(marks), nil
			}
			return v.Length().WithMarks(marks), nil
		},
	})
}

var errNotOne = errors.New("must be a list, set, or tuple value with either zero or one elements")

func oneFunc() function.Function {
	list := param("list", cty.DynamicPseudoType)
	return function.New(&function.Spec{
		Description: "Returns the only element of a list, set or tuple, or null if there is none.",
		Params:      []function.Parameter{list},
		Type: func(args []cty.Value) (cty.Type, error) {
			switch ty := args[0].Type(); {
			case ty.IsListType() || ty.IsSetType():
				return ty.ElementType(), nil
			case ty.IsTupleType() && ty.Length() == 0:
				return cty.DynamicPseudoType, nil
			case ty.IsTupleType() && ty.Length() == 1:
				return ty.TupleElementType(0), nil
			}
			return cty.NilType, function.NewArgError(0, errNotOne)
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			list, marks := args[0].Unmark()
			if !list.IsKnown() || !list.Length().IsKnown() {
				return cty.UnknownVal(ret).WithMarks(marks), nil
			}
			switch list.LengthInt() {
			case 0:
				return cty.NullVal(ret).WithMarks(marks), nil
			case 1:
				for _, element := range list.Elements() {
					return element.WithMarks(marks), nil
				}
			}
			return cty.NilVal, function.NewArgError(0, errNotOne)
		},
	})
}

func transposeFunc() function.Function {
	return function.New(&function.Spec{
		Description:  "Swaps keys and values of a map of lists of strings.",
		Params:       []function.Parameter{plain("values", cty.Map(cty.List(cty.String)))},
		Type:         function.StaticReturnType(cty.Map(cty.List(cty.String))),
		RefineResult: notNull,
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(ret), nil
			}
			return transpose(args[0])
		},
	})
}

func transpose(in cty.Value) (cty.Value, error) {
	turned := make(map[string][]cty.Value)
	for key, list := range in.Elements() {
		if list.IsNull() {
			return cty.NilVal, function.NewArgErrorf(0, "cannot use null list for [%q]", key.AsString())
		}
		for i, element := range list.Elements() {
			if element.IsNull() {
				return cty.NilVal, function.NewArgErrorf(0, "cannot use null string for [%q][%s]", key.AsString(), i.AsBigFloat().Text('f', 0))
			}
			turned[element.AsString()] = append(turned[element.AsString()], key)
		}
	}
	if len(turned) == 0 {
		return cty.MapValEmpty(cty.List(cty.String)), nil
	}
	lists := make(map[string]cty.Value, len(turned))
	for name, keys := range turned {
		lists[name] = cty.ListVal(keys)
	}
	return cty.MapVal(lists), nil
}

// removed returns functions that only return an error with their replacement.
func removed() family {
	gone := func(text string) function.Function {
		fail := func([]cty.Value) (cty.Type, error) { return cty.NilType, errors.New(text) }
		return function.New(&function.Spec{
			Description: text,
			VarParam: &function.Parameter{
				Name: "vals", Type: cty.DynamicPseudoType,
				AllowUnknown: true, AllowDynamicType: true, AllowNull: true, AllowMarked: true,
			},
			Type: fail,
			Impl: func([]cty.Value, cty.Type) (cty.Value, error) { return cty.NilVal, errors.New(text) },
		})
	}
	const old = "the %q function left the language with version 0.12; use %s to write a literal %s"
	return family{
		"defaults": gone(`the "defaults" function was part of an experiment that ended; write the default into the type constraint, as optional(TYPE, DEFAULT)`),
		"list":     gone(fmt.Sprintf(old, "list", "tolist([ ... ])", "list")),
		"map":      gone(fmt.Sprintf(old, "map", "tomap({ ... })", "map")),
	}
}
