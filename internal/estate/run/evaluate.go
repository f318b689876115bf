package run

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
)

// Given are the values of variables that come by other ways than a unit's inputs.
func (r *Runner) Given(task *demand.Task, u *discovery.Unit, d *workdir.Dir, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	t := &Turn{execution: &execution{Runner: r}, Unit: u, task: task, dir: d}
	if d.Terraform != nil {
		t.extra = arguments.Read(d.Terraform.ExtraArguments, r.Command, d.Locate)
	}
	return t.given(declared)
}

// Engine opens an engine in a unit's directory, for what only evaluates its module.
func (r *Runner) Engine(ctx context.Context, task *demand.Task, d *workdir.Dir) (*engine.Engine, diag.List) {
	t := &Turn{execution: &execution{Runner: r}, Unit: &discovery.Unit{Unit: d.Unit}, task: task, dir: d}
	if d.Terraform != nil {
		t.extra = arguments.Read(d.Terraform.ExtraArguments, r.Command, d.Locate)
	}
	at := t.folder()
	o := r.Host.Engine(at, nil, nil)
	o.Set, o.Sources, o.Now = d.Parsed.Set, &d.Parsed.Sources, r.Machine.Now
	o.Workspace = r.States.Workspace(d.Path, at.Env)
	return engine.Open(ctx, o)
}
