package workdir

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/source"
)

// workspaceVariables adds the values that the remote workspace contains for variables without a value.
// It returns no error if the backend cannot be opened: the step that needs the backend reports it.
func (p *Loaded) workspaceVariables(ctx context.Context, values Variables) diag.List {
	dir := p.c.Backend()
	r, ds := dir.Recorded()
	if ds.HasErrors() || r == nil || len(p.Engine.Root().Variables) == 0 {
		return nil
	}
	if k, ds := dir.Backends.Kind(r.Type); ds.HasErrors() || !k.Runs {
		return nil
	}
	cfg, ds := dir.Current(p.Engine.Root().Backend, p.staticWith(ctx, values))
	if ds.HasErrors() {
		return nil
	}
	opened, ds := dir.Open(ctx, cfg, p.Engine.Root().Backend)
	if ds.HasErrors() {
		return nil
	}
	from, ok := opened.(backend.VariableSource)
	if !ok {
		return nil
	}
	all, err := from.InputVariables(ctx, p.Workspace)
	if err != nil {
		ds := backend.Message(diag.CodeBackendReadFailed, "Failed to read the variables of the workspace", "", err)
		if block := p.Engine.Root().Backend; block != nil {
			ds = dir.Locate(ds, cfg, block)
		}
		return ds
	}
	for name, v := range all {
		if _, given := values[name]; !given && p.Engine.Root().Variables[name] != nil {
			values[name] = engine.InputValue{Value: v, From: source.Layer{Kind: source.Environment}}
		}
	}
	return nil
}
