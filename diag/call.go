package diag

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A Call is a function call that failed.
type Call struct {
	Name     string // as in the configuration
	Params   []Param
	Variadic *Param   // nil if there is none
	Returns  cty.Type // cty.DynamicPseudoType if it depends on the arguments
	Known    bool     // false if only the name is known
}

// A Param is a parameter of a function.
type Param struct {
	Name     string
	Type     cty.Type
	Nullable bool
}

// String returns the signature for a reader: "substr(str, offset, length)".
func (c *Call) String() string { return c.Name + c.parameters() }

func (c *Call) parameters() string {
	if !c.Known {
		return ""
	}
	var names []string
	for _, p := range c.Params {
		names = append(names, p.Name)
	}
	if c.Variadic != nil {
		names = append(names, c.Variadic.Name+"...")
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// failedCall returns the function call to which an HCL message refers, or nil.
func failedCall(d *hcl.Diagnostic) *Call {
	extra, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	if !ok || extra.CalledFunctionName() == "" {
		return nil
	}
	c := &Call{Name: extra.CalledFunctionName(), Returns: cty.DynamicPseudoType}
	for ctx := d.EvalContext; ctx != nil; ctx = ctx.Parent() {
		if f, ok := ctx.Functions[c.Name]; ok {
			c.describe(f)
			break
		}
	}
	return c
}

func (c *Call) describe(f function.Function) {
	c.Known = true
	var types []cty.Type
	for _, p := range f.Params() {
		c.Params = append(c.Params, param(p))
		types = append(types, p.Type)
	}
	if v := f.VarParam(); v != nil {
		p := param(*v)
		c.Variadic = &p
	}
	if ty, err := f.ReturnType(types); err == nil {
		c.Returns = ty
	}
}

func param(p function.Parameter) Param {
	return Param{Name: p.Name, Type: p.Type, Nullable: p.AllowNull}
}
