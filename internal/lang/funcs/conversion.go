package funcs

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// conversion returns the functions that convert a value to a type.
func conversion() family {
	return family{
		"convert":  convertFunc(),
		"tobool":   toFunc(cty.Bool),
		"tolist":   toFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":    toFunc(cty.Map(cty.DynamicPseudoType)),
		"tonumber": toFunc(cty.Number),
		"toset":    toFunc(cty.Set(cty.DynamicPseudoType)),
		"tostring": toFunc(cty.String),
	}
}

func toFunc(want cty.Type) function.Function {
	return function.New(&function.Spec{
		Description: "Converts a value to " + want.FriendlyNameForConstraint() + ".",
		Params:      []function.Parameter{anything("v")},
		Type: func(args []cty.Value) (cty.Type, error) {
			have := args[0].Type()
			if !have.Equals(want) && convert.GetConversionUnsafe(have, want) == nil {
				return cty.NilType, cannotConvert(have.FriendlyName(), want, "")
			}
			return want, nil
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if err := value.Bounded(args[0]); err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			v, err := value.Convert(args[0], ret)
			if err != nil {
				return cty.NilVal, whyNot(args[0], want)
			}
			return v, nil
		},
	})
}

// convertFunc returns convert. The parser replaces its second argument by a literal; see
// hclnative.TypeConstraint.
func convertFunc() function.Function {
	typ := function.Parameter{Name: "type", Type: hclnative.TypeArgument()}
	constraint := func(args []cty.Value) *hclnative.TypeConstraint {
		v, _ := args[1].Unmark()
		return v.EncapsulatedValue().(*hclnative.TypeConstraint)
	}
	return function.New(&function.Spec{
		Description: "Converts a value to a type, which is written as for a variable.",
		Params:      []function.Parameter{anything("value"), typ},
		Type: func(args []cty.Value) (cty.Type, error) {
			if !args[1].IsKnown() { // the signature is read
				return cty.DynamicPseudoType, nil
			}
			c := constraint(args)
			have, want := args[0].Type(), c.Type.WithoutOptionalAttributesDeep()
			if !have.Equals(want) && convert.GetConversionUnsafe(have, c.Type) == nil {
				return cty.NilType, cannotConvert(have.FriendlyName(), c.Type, "")
			}
			return want, nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if err := value.Bounded(args[0]); err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			c := constraint(args)
			v := args[0]
			if c.Defaults != nil && !v.IsNull() {
				v = value.WithDefaults(c.Defaults.Apply, v)
			}
			v, err := value.Convert(v, c.Type)
			if err != nil {
				return cty.NilVal, whyNot(args[0], c.Type)
			}
			return v, nil
		},
	})
}

// whyNot returns the reason for which v cannot be converted, although its type can.
func whyNot(v cty.Value, want cty.Type) error {
	bare, marks := v.Unmark()
	what := bare.Type().FriendlyName()
	switch {
	case secretMarks(marks):
		return cannotConvert("this sensitive "+what, want, "")
	case bare.Type() != cty.String || bare.IsNull() || !bare.IsKnown():
		return cannotConvert(what, want, "")
	}
	what = strconv.Quote(bare.AsString())
	switch want {
	case cty.Bool:
		return cannotConvert(what, want, `; only the strings "true" or "false" are allowed`)
	case cty.Number:
		return cannotConvert(what, want, "; given string must be a decimal representation of a number")
	}
	return cannotConvert(what, want, "")
}

func cannotConvert(what string, want cty.Type, hint string) error {
	return function.NewArgErrorf(0, "cannot convert %s to %s%s", what, want.FriendlyNameForConstraint(), hint)
}

// typeValue is the type of the results of the console's function type.
var typeValue = cty.Capsule("type", reflect.TypeFor[cty.Type]())

// typeFunc returns the console's function type. No other function accepts its result, so that
// it cannot become part of another value.
func typeFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Describes the type of a value; only in the console.",
		Params:      []function.Parameter{anything("value")},
		Type:        function.StaticReturnType(typeValue),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			ty := args[0].Type()
			return cty.CapsuleVal(typeValue, &ty), nil
		},
	})
}

// DescribedType returns the type that v describes, if v is a result of the console's function
// type.
func DescribedType(v cty.Value) (cty.Type, bool) {
	v, _ = v.Unmark()
	if v.Type() != typeValue || !v.IsKnown() || v.IsNull() {
		return cty.NilType, false
	}
	return *v.EncapsulatedValue().(*cty.Type), true
}

// ContainsType reports whether v is or contains a result of the console's function type, where
// that is not allowed.
func ContainsType(v cty.Value) bool {
	for _, part := range cty.DeepValues(v) {
		if part.Type() == typeValue {
			return true
		}
	}
	return false
}

// TypeString formats a type for the console: structural types have several lines, one for each
// attribute or element.
func TypeString(ty cty.Type) string {
	var b strings.Builder
	writeType(&b, ty, 0)
	return b.String()
}

const typeIndent = "    "

func writeType(b *strings.Builder, ty cty.Type, depth int) {
	switch {
	case ty.IsCollectionType():
		writeCollection(b, ty, depth)
	case ty.IsObjectType():
		attrs := ty.AttributeTypes()
		if len(attrs) == 0 {
			b.WriteString("object({})")
			return
		}
		names := make([]string, 0, len(attrs))
		for name := range attrs {
			names = append(names, name)
		}
		slices.Sort(names)
		b.WriteString("object({\n")
		for _, name := range names {
			b.WriteString(strings.Repeat(typeIndent, depth+1) + name + ": ")
			writeType(b, attrs[name], depth+1)
			b.WriteString(",\n")
		}
		b.WriteString(strings.Repeat(typeIndent, depth) + "})")
	case ty.IsTupleType():
		if ty.Length() == 0 {
			b.WriteString("tuple([])")
			return
		}
		b.WriteString("tuple([\n")
		for _, element := range ty.TupleElementTypes() {
			b.WriteString(strings.Repeat(typeIndent, depth+1))
			writeType(b, element, depth+1)
			b.WriteString(",\n")
		}
		b.WriteString(strings.Repeat(typeIndent, depth) + "])")
	default:
		b.WriteString(ty.FriendlyName())
	}
}

func writeCollection(b *strings.Builder, ty cty.Type, depth int) {
	switch {
	case ty.IsListType():
		b.WriteString("list(")
	case ty.IsSetType():
		b.WriteString("set(")
	default:
		b.WriteString("map(")
	}
	element := ty.ElementType()
	if !element.IsObjectType() && !element.IsTupleType() {
		writeType(b, element, depth)
		b.WriteByte(')')
		return
	}
	b.WriteString("\n" + strings.Repeat(typeIndent, depth+1))
	writeType(b, element, depth+1)
	b.WriteString(",\n" + strings.Repeat(typeIndent, depth) + ")")
}
