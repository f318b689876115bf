package config

import (
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/zclconf/go-cty/cty"
)

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
				ds = append(ds, ignoredAttributes(kv.ValueExpr, ty.ElementType(), path+"["+quote(name)+"]")...)
			case !ty.IsObjectType() || name == "":
			case ty.HasAttribute(name):
				ds = append(ds, ignoredAttributes(kv.ValueExpr, ty.AttributeType(name), path+"."+name)...)
			default:
				ds = append(ds, warnAt(diag.CodeConfigIgnoredAttribute, kv.KeyExpr.Range(), "Object attribute is ignored",
					"The type of %s has no attribute named %q, and so this value is never used. Remove it, or add the attribute to the type.", path, name)...)
			}
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
