package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
)

// ruled are the rules of a run, with the parts of plans that they need. Without rules, it stores
// nothing.
type ruled struct {
	rules *rulecheck.Rules // nil means that there are no rules
	wants func(subject.Kind, string) bool
	mu    sync.Mutex
	plans map[*estate.Unit]*plan.Plan
}

// loadRules reads the rules for a command that plans.
func (r *estateRun) loadRules() diag.List {
	if r.op.Plan.Mode == plan.RefreshOnly || r.name != "plan" && r.name != "apply" && r.name != "destroy" {
		return nil
	}
	set, ds := rulecheck.LoadForPlan(r.Call)
	r.ruled.rules, r.ruled.plans = set, map[*estate.Unit]*plan.Plan{}
	if set != nil {
		r.ruled.wants = set.Wants(true)
	}
	return ds
}

// take stores the parts of a unit's plan that rules need.
func (x *ruled) take(u *estate.Unit, p *plan.Plan) {
	if x.rules == nil {
		return
	}
	n := rulecheck.Needed(p, x.wants)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.plans[u] = n
}

// takeSaved takes the plans that workers have returned. A plan that this process cannot read is an
// error, also if it is encrypted with a key that only the workers have: rules about its changes would
// pass without having been checked.
func (r *estateRun) takeSaved(ctx context.Context, results []*estate.Result) diag.List {
	enc, ds := workdir.EncryptionOf(ctx, r.Directory, r.op.Vars, "")
	if ds.HasErrors() {
		return ds
	}
	for _, res := range results {
		p, err := r.kept.Saving.Plan(res.Unit.Name, enc.Plan(ctx).Plans())
		switch {
		case err != nil:
			ds = append(ds, workdir.PlanFileError("plan of the unit "+res.Unit.Name, err)...)
		case p != nil:
			r.ruled.take(res.Unit, p)
		}
	}
	return ds
}

// checkRules checks the rules for the plans of a run and reports the failures. It returns false if
// one of the level error failed, so that the plan must not be applied.
func (r *estateRun) checkRules(ctx context.Context, results []*estate.Result) bool {
	if r.ruled.rules == nil || results == nil {
		return true
	}
	var ds diag.List
	if r.f.On != "" {
		ds = r.takeSaved(ctx, results)
	}
	res, more := r.ruled.rules.Estate(ctx, r.estate, rulecheck.OfEstate{Plans: r.ruled.plans})
	failed := rulecheck.Messages(res)
	set := r.ruleSources(failed)
	r.page.Rules = planpage.Rules{Set: set, All: failed, Of: map[string]diag.List{}}
	of := rulecheck.ByUnit(res)
	for _, x := range results {
		r.page.Rules.Of[x.Unit.Name] = of[r.ruled.rules.UnitName(r.estate, x.Unit)]
	}
	r.tellEstate(append(ds, more...))
	if len(failed) > 0 {
		r.Report.AsideWith(set, failed)
	}
	return !slices.Concat(ds, more, failed).HasErrors()
}

// ruleSources returns the files of messages about rules: those of the estate, and those of modules, which
// the estate does not contain.
func (r *estateRun) ruleSources(ds diag.List) *source.Set {
	set := &source.Set{}
	set.Include(r.estate.Sources())
	set.Include(r.Report.Set)
	for _, m := range ds {
		if m.At == nil || set.File(m.At.Filename) != nil {
			continue
		}
		name := m.At.Filename
		path := r.Path(filepath.FromSlash(name))
		if set.Adopt(name, r.estate.Sources(), path); set.File(name) != nil {
			continue
		}
		if !strings.HasSuffix(name, ".tf") && !strings.HasSuffix(name, ".tofu") {
			continue // a file with variables may contain secrets
		}
		if text, err := r.Files.Whole(path); err == nil {
			set.Add(&source.File{Path: name, Bytes: text})
		}
	}
	return set
}
