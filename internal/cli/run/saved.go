package run

import (
	"bytes"

	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/plan"
)

// about returns the plan options to store in a saved plan.
func (r *estateRun) about() estate.SavedRun {
	workspace, _ := r.Workspace() // planning reports the error
	return estate.SavedRun{
		Destroy: r.op.Plan.Mode == plan.Destroy, RefreshOnly: r.op.Plan.Mode == plan.RefreshOnly, NoRefresh: r.op.Plan.SkipRefresh, Minimal: r.op.Plan.MinimalRefresh,
		Targets: addresses(r.selected.targets), Excludes: addresses(r.selected.excludes), Replace: r.op.Scope.Replace, Defer: r.op.Plan.Defer, Causes: r.op.Plan.Causes, Time: r.began, Dir: r.WorkspaceName(workspace),
	}
}

func addresses(all []addr.Target) []string {
	var out []string
	for _, t := range all {
		out = append(out, t.String())
	}
	return out
}

// limited reports whether the command has plan options, which a saved plan contains.
func (r *estateRun) limited() bool {
	o := &r.op
	return o.Plan.Mode != plan.Normal || o.Plan.SkipRefresh || o.Plan.MinimalRefresh || o.Plan.Causes || o.Plan.Defer || o.Rounds > 0 || len(o.Scope.Targets)+len(o.Scope.Excludes)+len(o.Scope.Replace)+len(o.Scope.TargetFiles)+len(o.Scope.ExcludeFiles) > 0
}

// readSaved reads the saved plan to apply, if there is one, and sets its plan options.
func (r *estateRun) readSaved() int {
	switch {
	case r.name != "apply":
	case r.planFile != "":
		p, err := savedplan.Read(r.Call, r.planFile)
		if err == nil {
			err = p.Check()
		}
		if err != nil {
			return r.Fail(workdir.PlanFileError(r.planFile, err))
		}
		return r.applySaved(r.planFile, p)
	case r.f.OutDir != "":
		p, ds := savedplan.ReadDir(r.Call, r.f.OutDir)
		if ds.HasErrors() {
			return r.Fail(ds)
		}
		return r.applySaved(r.f.OutDir, p)
	}
	return 0
}

// applySaved sets the plan to apply, and its plan options.
func (r *estateRun) applySaved(name string, p *estate.SavedPlan) int {
	for _, u := range p.Units {
		if u.Result == estate.Failed || u.Result == estate.EarlyExit {
			return r.Fail(diag.Errorf(diag.CodePlanSaved, nil, "Saved plan is incomplete", "The plan in %q was saved although the unit %s could not be planned. It cannot be applied: plan again.", name, u.Name))
		}
	}
	r.saved = p
	r.op.Plan.Mode, r.op.Plan.SkipRefresh, r.op.Plan.MinimalRefresh = p.About.Mode(), p.About.NoRefresh, p.About.Minimal
	r.op.Scope.Targets, r.op.Scope.Excludes, r.op.Scope.Replace = p.About.Targets, p.About.Excludes, p.About.Replace
	r.op.Plan.Defer = p.About.Defer
	return 0
}

// takeApproved sets the plan of a job and its plan options, if the plan came from a file.
func (r *estateRun) takeApproved() int {
	b := r.Serving.Approved
	if b == nil || r.Serving.Job.Asked {
		return 0
	}
	p, err := saved.Read(bytes.NewReader(b), int64(len(b)), release.Version)
	if err != nil {
		return r.Fail(workdir.PlanFileError("of the run", err))
	}
	return r.applySaved("of the run", p)
}
