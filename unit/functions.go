package unit

import (
	"errors"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// rawMerge returns the whole value of a call of merge or deep_merge.
func (c *evaluator) rawMerge(e *evaluation, x *syntax.Expr) cty.Value {
	args := make([]cty.Value, len(x.Args))
	for i, a := range x.Args {
		args[i] = c.eval(e, a)
		if c.needsLeaf {
			return cty.DynamicVal
		}
	}
	if c.failed {
		return cty.DynamicVal
	}
	name := "merge"
	f := c.l.pure().Functions["merge"]
	if x.Kind == syntax.DeepCall {
		name, f = "deep_merge", functions.DeepMerge()
	}
	v, err := f.Call(args)
	if err != nil {
		at := x.At()
		var bad function.ArgError
		if errors.As(err, &bad) && bad.Index < len(x.Args) {
			at = x.Args[bad.Index].At()
		}
		return c.errorf(&at, diag.CodeUnitFunctionError, "Error in function call", "Call to function %q failed: %s.", name, err)
	}
	return v
}
