package tfe

import (
	"context"
)

// A Variable is a variable of a workspace.
type Variable struct {
	Key       string
	Value     *string // nil for a sensitive one, which the service does not give out
	HCL       bool
	Sensitive bool
	Category  string
}

// Variables are the input variables of a workspace, for what runs here though the
// workspace is made for runs there.
func (b *Backend) Variables(ctx context.Context, w *Workspace) ([]Variable, error) {
	all, err := b.pages(ctx, at("workspaces", w.ID, "vars"), nil)
	if err != nil {
		return nil, b.explain(err)
	}
	var out []Variable
	for _, r := range all {
		var v Variable
		if err := r.attributes(&v); err != nil {
			return nil, b.explain(err)
		}
		if v.Category == "terraform" {
			out = append(out, v)
		}
	}
	return out, nil
}
