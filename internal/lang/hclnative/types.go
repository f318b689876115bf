package hclnative

import (
	"reflect"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// A TypeConstraint is the second argument of the function convert.
type TypeConstraint struct {
	Type     cty.Type           // may contain optional attributes and any
	Defaults *typeexpr.Defaults // of optional attributes; nil if there are none
}

// TypeArgument returns the type of values that contain a *TypeConstraint.
var TypeArgument = sync.OnceValue(func() cty.Type { return cty.Capsule("type constraint", reflect.TypeFor[TypeConstraint]()) })

// takesType reports whether the second argument of a function is a type constraint, which is no
// value: its names, such as string, are no references.
func takesType(name string) bool { return name == "convert" || name == "core::convert" }

// ResolveTypes replaces the type constraints in the calls of convert by literals, in a tree that
// hclsyntax built. Trees of this package contain the literals already. An argument that is not a
// valid type constraint stays as it is.
func ResolveTypes(x hclsyntax.Node) {
	_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && takesType(call.Name) && len(call.Args) > 1 {
			call.Args[1] = typeLiteral(call.Args[1])
		}
		return nil
	})
}

// typeLiteral returns a literal for a type constraint. It returns other expressions unchanged.
func typeLiteral(x hclsyntax.Expression) hclsyntax.Expression {
	ty, defaults, diags := typeexpr.TypeConstraintWithDefaults(x)
	if diags.HasErrors() {
		return x
	}
	return &hclsyntax.LiteralValueExpr{Val: cty.CapsuleVal(TypeArgument(), &TypeConstraint{ty, defaults}), SrcRange: x.Range()}
}
