package unit

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/funcs"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// readConfig is what a call of read_terragrunt_config reads, nil after an error.
func (c *evaluator) readConfig(e *evaluation, x *syntax.Expr) node {
	at := x.At()
	if len(x.Args) > 2 {
		c.errorf(&at, "unit/function-error", "Error in function call", "Call to function \"read_terragrunt_config\" failed: at most 2 arguments expected, not %d.", len(x.Args))
		return nil
	}
	path := c.convert(c.eval(e, x.Args[0]), cty.String, "path", x.Args[0].At())
	v, _ := path.Unmark()
	if c.stuck() {
		return nil
	}
	if !v.IsKnown() {
		return valueNode{cty.DynamicVal, e, &at}
	}
	if v.IsNull() {
		c.errorf(&at, "unit/function-error", "Error in function call", "Call to function \"read_terragrunt_config\" failed: the path is null.")
		return nil
	}
	n, err := c.readFrom(e, v.AsString())
	switch {
	case err == nil:
		return n
	case len(x.Args) == 2 && errors.Is(err, errNoFile):
		return &exprNode{e: e, x: x.Args[1]}
	}
	if !c.failed {
		c.errorf(&at, "unit/function-error", "Error in function call", "Call to function \"read_terragrunt_config\" failed: %s.", funcs.Guard(err, []cty.Value{path}))
	}
	return nil
}

var errNoFile = errors.New("there is no such file")

// readFrom opens a file for read_terragrunt_config.
func (c *evaluator) readFrom(e *evaluation, path string) (node, error) {
	full := absPath(e.dir, path)
	if c.l.isDir(full) {
		if f := c.l.unitFile(full); f != "" {
			full = f
		} else {
			return nil, fmt.Errorf("%w: %s holds no %s", errNoFile, full, c.l.env.configName())
		}
	}
	if !c.l.exists(full) {
		return nil, fmt.Errorf("%w: %s", errNoFile, full)
	}
	c.readFile(full)
	if filepath.Base(full) == syntax.ValuesName {
		v := c.l.evs.Do(evKey{full, valuesRole}, func() *evaluation {
			f := c.l.file(full, valuesSpec)
			return newEvaluation(c.l, f, valuesRole, f.Dir)
		})
		c.add(v.f.Diags)
		if v.f.Root == nil {
			return nil, errors.New("the file cannot be read")
		}
		return &blockNode{v, v.f.Root}, nil
	}
	in := c.l.shared(full, readRole)
	c.add(in.f.Diags)
	if in.f.Root == nil {
		return nil, errors.New("the file cannot be read")
	}
	return &configNode{e: in, style: readStyle}, nil
}

// readConfigFunc is read_terragrunt_config within other expressions: it reads
// the file as a whole, and its errors can be caught by try().
func (k *call) readConfigFunc() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "path", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			v, err := k.readWhole(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return k.readWhole(args) },
	})
}

func (k *call) readWhole(args []cty.Value) (cty.Value, error) {
	if len(args) > 2 {
		return cty.DynamicVal, fmt.Errorf("at most 2 arguments expected, not %d", len(args))
	}
	if !args[0].IsKnown() {
		return cty.DynamicVal, nil
	}
	c := k.c.sub(k.c.leaf, k.c.full)
	n, err := c.readFrom(k.e, args[0].AsString())
	if errors.Is(err, errNoFile) && len(args) == 2 {
		return args[1], nil
	}
	v := cty.DynamicVal
	if err == nil {
		v = n.value(c)
	}
	k.c.facts = k.c.facts.with(c.facts)
	k.c.needsLeaf = k.c.needsLeaf || c.needsLeaf
	if c.needsLeaf {
		return cty.DynamicVal, nil
	}
	k.c.needsOut = k.c.needsOut || c.needsOut
	if c.failed {
		return cty.DynamicVal, c.ds.Err()
	}
	k.c.add(c.ds)
	return v, err
}
