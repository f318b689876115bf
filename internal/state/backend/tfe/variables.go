package tfe

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/zclconf/go-cty/cty"
)

// InputVariables implements backend.VariableSource. It omits sensitive variables, because
// the service does not return their values.
func (b *Backend) InputVariables(ctx context.Context, workspace string) (map[string]cty.Value, error) {
	name, err := b.remote(workspace)
	if err != nil {
		return nil, err
	}
	w, err := b.find(ctx, name, false)
	if err == errNoSuchWorkspace || err == nil && w.ExecutionMode == "local" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := b.pages(ctx, at("workspaces", w.ID, "vars"), nil)
	if err != nil {
		return nil, b.explain(err)
	}
	out := map[string]cty.Value{}
	for _, r := range all {
		var v struct {
			Key, Category string
			Value         *string
			HCL           bool
		}
		if err := r.attributes(&v); err != nil {
			return nil, b.explain(err)
		}
		if v.Category != "terraform" || v.Value == nil {
			continue
		}
		out[v.Key] = cty.StringVal(*v.Value)
		if v.HCL {
			if out[v.Key], err = constant(*v.Value); err != nil {
				return nil, &backend.Error{Answer: fmt.Sprintf("the value of the variable %q of the workspace is no constant expression", v.Key), Advice: "Correct it at " + b.Host + ", or give another with -var."}
			}
		}
	}
	return out, nil
}

func constant(text string) (cty.Value, error) {
	if diag.TooDeep("", []byte(text)) != nil {
		return cty.NilVal, fmt.Errorf("it is nested too deeply")
	}
	x, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	v, diags := x.Value(nil)
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	return v, nil
}
