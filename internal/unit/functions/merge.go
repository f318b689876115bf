package functions

import (
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// DeepMerge returns deep_merge for calls whose arguments cannot be computed separately.
func DeepMerge() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "maps", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true, AllowUnknown: true, AllowMarked: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			v, err := deepMergeAll(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return deepMergeAll(args) },
	})
}

// deepMergeAll merges values from left to right. Null values are ignored.
func deepMergeAll(args []cty.Value) (cty.Value, error) {
	out := cty.NilVal
	for i, a := range args {
		bare, _ := a.Unmark()
		if bare.IsNull() {
			continue
		}
		if ty := bare.Type(); ty != cty.DynamicPseudoType && !ty.IsObjectType() && !ty.IsMapType() {
			return cty.DynamicVal, function.NewArgErrorf(i, "maps or objects expected, not %s", ty.FriendlyName())
		}
		if out == cty.NilVal {
			out = a
			continue
		}
		v, err := value.DeepMerge(out, a)
		if err != nil {
			return cty.DynamicVal, function.NewArgError(i, err)
		}
		out = v
	}
	if out == cty.NilVal {
		return cty.EmptyObjectVal, nil
	}
	return out, nil
}
