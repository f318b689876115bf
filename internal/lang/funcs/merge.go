package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// mergeFunc returns merge. It merges objects without computing the result type first, which
// takes several times as long as the merge itself.
func mergeFunc() function.Function {
	slow := stdlib.MergeFunc
	params, rest := opened(slow)
	return function.New(&function.Spec{
		Description: slow.Description(),
		Params:      params,
		VarParam:    rest,
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := concatSize(args); err != nil {
				return cty.NilType, err
			}
			if plainObjects(args) {
				return cty.DynamicPseudoType, nil
			}
			return slow.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !plainObjects(args) {
				return slow.Call(args)
			}
			n := 0
			for _, arg := range args {
				n += arg.LengthInt()
			}
			out := make(map[string]cty.Value, n)
			for _, arg := range args {
				for name := range arg.Type().AttributeTypes() {
					out[name] = arg.GetAttr(name)
				}
			}
			return cty.ObjectVal(out), nil
		},
	})
}

// plainObjects reports whether all arguments are known objects without marks of their own.
func plainObjects(args []cty.Value) bool {
	for _, arg := range args {
		if !arg.Type().IsObjectType() || arg.IsMarked() || !arg.IsKnown() || arg.IsNull() {
			return false
		}
	}
	return len(args) > 0
}
