package run

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/plan"
)

// # The saved plan of one unit
//
// --out-dir saves the plan of each unit in a file of its own. In the unit's directory, apply
// accepts such a file. It plans the unit again and compares the result with the file, as in a
// run over all units.

// isUnitPlan reports whether a file is a saved plan of an estate.
func isUnitPlan(c *command.Call, name string) bool {
	return !strings.HasPrefix(name, "-") && savedplan.IsPlan(c, name)
}

// alone limits the run to the unit in the working directory, and checks that the saved plan is
// the plan of this unit alone.
func (r *estateRun) alone(o *estate.Options) diag.List {
	if r.saved == nil || len(r.saved.Units) != 1 {
		return diag.Errorf(diag.CodePlanSaved, nil, "Saved plan of several units", "The file holds the plans of several units. Apply it with \"%s run --all apply FILE\" in the directory that it was made in.", view.Program)
	}
	u := r.saved.Units[0]
	here, own := filepath.ToSlash(r.Dir), "."
	if r.f.Module != "" {
		here, own = here+"/"+r.f.Module, r.f.Module
	}
	name := u.Name // relative to the directory of the run that saved the plan, which may be a sibling
	for strings.HasPrefix(name, "../") {
		name = strings.TrimPrefix(name, "../")
	}
	if name != "." && name != ".." && !strings.HasSuffix(here, "/"+name) {
		return diag.Errorf(diag.CodePlanSaved, nil, "Saved plan of another unit", "The file holds the plan of the unit %s, which the directory %s does not hold.", u.Name, r.Dir)
	}
	u.Name, u.Needs = own, nil
	o.Discovery.Filters, o.Discovery.Generate = []string{"{" + own + "}"}, false
	r.f.Forward = true
	return nil
}

// includeNamedUnit includes the unit that the user named, even if filters or dependencies
// exclude it. If the unit's own file excludes it, or an error occurs, skip is true and code is
// the exit status.
func (r *estateRun) includeNamedUnit(ctx context.Context) (skip bool, code int) {
	for _, u := range r.estate.Found.Units {
		why, ds := r.estate.Skipped(ctx, u)
		if r.tellEstate(ds); ds.HasErrors() {
			return true, 1
		}
		if why != "" {
			r.Report.Say("Nothing is run: " + why + ".\n")
			return true, 0
		}
		if yes, _ := r.estate.Protected(ctx, u); yes && r.op.Plan.Mode == plan.Destroy {
			return true, r.Fail(diag.Errorf(diag.CodeCLIPreventDestroy, nil, "Unit protected from destruction", "The unit has prevent_destroy = true, so it cannot be destroyed."))
		}
		u.Excluded = ""
	}
	return false, 0
}
