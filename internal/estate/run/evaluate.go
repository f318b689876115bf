package run

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
)

// Given are the values of variables that come by other ways than a unit's inputs.
func (r *Runner) Given(task *demand.Task, u *discovery.Unit, d *workdir.Dir, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	return r.site(task, u, d).given(declared)
}

// Engine opens an engine in a unit's directory, for what only evaluates its module.
func (r *Runner) Engine(ctx context.Context, task *demand.Task, d *workdir.Dir) (*engine.Engine, diag.List) {
	s := r.site(task, &discovery.Unit{Unit: d.Unit}, d)
	return engine.Open(ctx, s.engine(s.Folder(), nil, nil))
}
