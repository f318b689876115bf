package config

import (
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/zclconf/go-cty/cty"
)

// IgnoredAttributes returns a warning for each attribute that an expression for a variable
// writes out and that the type of the variable does not have: the conversion drops these
// attributes. The path names the variable.
func IgnoredAttributes(x hcl.Expression, ty cty.Type, path string) diag.List {
	if !containsObject(ty) {
		return nil
	}
	if late, ok := x.(interface{ UnwrapExpression() hcl.Expression }); ok {
		x = late.UnwrapExpression()
	}
	return ignoredAttributes(x, ty, path)
}

// containsObject reports whether an object type is part of a type.
func containsObject(ty cty.Type) bool {
	switch {
	case ty.IsObjectType():
		return true
	case ty.IsTupleType():
		return slices.ContainsFunc(ty.TupleElementTypes(), containsObject)
	case ty.IsCollectionType():
		return containsObject(ty.ElementType())
	}
	return false
}

// ignoredAttributes warns about attributes in a literal default value that the variable's type
// does not have. The conversion drops them silently.
func ignoredAttributes(x hcl.Expression, ty cty.Type, path string) (ds diag.List) {
	switch x := x.(type) {
	case *hclsyntax.TupleConsExpr:
		for i, e := range x.Exprs {
			step := path + "[" + strconv.Itoa(i) + "]"
			switch {
			case ty.IsListType() || ty.IsSetType():
				ds = append(ds, ignoredAttributes(e, ty.ElementType(), step)...)
			case ty.IsTupleType() && i < ty.Length():
				ds = append(ds, ignoredAttributes(e, ty.TupleElementType(i), step)...)
			}
		}
	case *hclsyntax.ObjectConsExpr:
		for _, kv := range x.Items {
			name := literalKey(kv.KeyExpr)
			switch {
			case ty.IsMapType():
				step := "[...]" // the key is not written out
				if name != "" {
					step = "[" + quote(name) + "]"
				}
				ds = append(ds, ignoredAttributes(kv.ValueExpr, ty.ElementType(), path+step)...)
			case !ty.IsObjectType() || name == "":
			case ty.HasAttribute(name):
				ds = append(ds, ignoredAttributes(kv.ValueExpr, ty.AttributeType(name), path+"."+name)...)
			default:
				ds = append(ds, warnAt(diag.CodeConfigIgnoredAttribute, kv.KeyExpr.Range(), "Object attribute is ignored",
					"The type of %s has no attribute named %q, and so this value is never used. Remove it, or add the attribute to the type.", path, name)...)
			}
		}
	case *hclsyntax.ForExpr:
		if ofMap := x.KeyExpr != nil; ofMap && ty.IsMapType() || !ofMap && (ty.IsListType() || ty.IsSetType()) {
			ds = append(ds, ignoredAttributes(x.ValExpr, ty.ElementType(), path+"[...]")...)
		}
	}
	return ds
}

// literalKey returns the key of an object item if it is literal, otherwise "".
func literalKey(x hclsyntax.Expression) string {
	v, diags := x.Value(nil)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}
