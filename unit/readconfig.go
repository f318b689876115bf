package unit

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// readConfig returns the file that a call of read_terragrunt_config reads, or nil after an
// error.
func (c *evaluator) readConfig(e *evaluation, x *syntax.Expr) node {
	at := x.At()
	if len(x.Args) > 2 {
		c.errorf(&at, diag.CodeUnitFunctionError, "Error in function call", "Call to function \"read_terragrunt_config\" failed: at most 2 arguments expected, not %d.", len(x.Args))
		return nil
	}
	one := c.sub(c.leaf, c.full)
	path := one.convert(one.eval(e, x.Args[0]), cty.String, "path", x.Args[0].At())
	v, _ := path.Unmark()
	c.merge(one)
	if c.stuck() {
		return nil
	}
	c.redact(&exprNode{e: e, x: x.Args[0]}, v, one.facts)
	if !v.IsKnown() {
		return valueNode{cty.DynamicVal, e, &at}
	}
	if v.IsNull() {
		c.errorf(&at, diag.CodeUnitFunctionError, "Error in function call", "Call to function \"read_terragrunt_config\" failed: the path is null.")
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
		c.errorf(&at, diag.CodeUnitFunctionError, "Error in function call", "Call to function \"read_terragrunt_config\" failed: %s.", funcs.Guard(err, []cty.Value{path}))
	}
	return nil
}

var errNoFile = errors.New("there is no such file")

// readFrom reads a file for read_terragrunt_config.
func (c *evaluator) readFrom(e *evaluation, path string) (node, error) {
	full := c.l.disk.Near(e.file().Dir, e.dir, path)
	if c.l.disk.IsDir(full) {
		if f := c.l.unitFile(full); f != "" {
			full = f
		} else {
			return nil, fmt.Errorf("%w: %s holds no %s", errNoFile, full, c.l.env.configName())
		}
	}
	if !c.l.disk.Exists(full) {
		return nil, fmt.Errorf("%w: %s", errNoFile, full)
	}
	c.readFile(full)
	if filepath.Base(full) == syntax.ValuesName {
		v := c.l.evs.Local(evKey{full, valuesRole}, func() (*evaluation, bool) {
			f := c.l.file(full, valuesSpec)
			return newEvaluation(c.l, f, valuesRole, f.Dir), f.Src != nil
		})
		c.add(v.file().Diags)
		if v.file().Root == nil {
			return nil, errors.New("the file cannot be read")
		}
		return &blockNode{v, v.file().Root}, nil
	}
	in := c.l.shared(full, readRole)
	c.add(in.file().Diags)
	if in.file().Root == nil {
		return nil, errors.New("the file cannot be read")
	}
	return &configNode{e: in, style: readStyle}, nil
}
