package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// setUnion returns setunion. If all sets are known, it merges them in one pass. Merging one set
// after the other takes time that is quadratic in their number.
func setUnion() function.Function {
	slow := stdlib.SetUnionFunc
	params, rest := opened(slow)
	return bounded(function.New(&function.Spec{
		Description: slow.Description(),
		Params:      params,
		VarParam:    rest,
		Type:        slow.ReturnTypeForValues,
		Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
			var all []cty.Value
			for _, arg := range args {
				if arg.ContainsMarked() || !arg.IsWhollyKnown() || arg.IsNull() {
					return slow.Call(args)
				}
				set, err := convert.Convert(arg, ty)
				if err != nil {
					return slow.Call(args)
				}
				all = append(all, set.AsValueSlice()...)
			}
			if len(all) == 0 {
				return slow.Call(args)
			}
			return cty.SetVal(all), nil
		},
	}), concatSize)
}
