package check

import (
	"context"
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
)

// # Saved plans
//
// The rules are those of the working directory, not those that applied when the plan was made. The
// values and operations of objects come from the plan, also from its JSON form. For the plan of a directory, all else comes
// from the configuration in the file; for the plan of an estate, from the unit files and modules.

// planFindings checks the rules for a saved plan. Without rules, set is nil.
func planFindings(ctx context.Context, c *command.Call, o *options, set *rulecheck.Rules) ([]*finding.Finding, diag.List) {
	var res rules.Result
	text, doc, ds := readJSON(c, o)
	switch {
	case ds.HasErrors():
		return nil, ds
	case doc != nil:
		res, ds = jsonPlan(ctx, c, o, set, text, doc)
	case savedplan.IsPlan(c, o.plan):
		res, ds = estatePlan(ctx, c, o, set)
	default:
		res, ds = directoryPlan(ctx, c, o, set)
	}
	return res.Findings, append(ds, res.Diags...)
}

func directoryPlan(ctx context.Context, c *command.Call, o *options, set *rulecheck.Rules) (res rules.Result, _ diag.List) {
	dir, ds := planDir(ctx, c, o)
	if ds.HasErrors() {
		return res, ds
	}
	d := c.Directory.In(dir, c.Env, nil)
	d.Set = &source.Set{}
	f, more := d.ReadPlanFile(ctx, nil, o.plan)
	if ds = append(ds, more...); more.HasErrors() || set == nil {
		return res, ds
	}
	p, more := workdir.Load(ctx, d, f.Options(nil))
	if ds = append(ds, more...); p == nil {
		return res, ds
	}
	defer p.Close()
	given := map[string]engine.InputValue{}
	for name, v := range f.Plan.Variables {
		given[name] = engine.InputValue{Value: v}
	}
	res, more = set.Directory(ctx, p.Engine, rulecheck.Given{Explain: engine.ExplainOptions{Variables: given}, Plan: f.Plan, Schema: p.KeptSchemas(ctx)})
	return res, append(ds, more...)
}

// planDir returns the directory to which the path of a plan is relative: the working directory, or the
// one in which the unit of the working directory runs, where plan -out writes the file.
func planDir(ctx context.Context, c *command.Call, o *options) (string, diag.List) {
	if _, err := os.Stat(c.Path(o.plan)); err == nil || !units.IsUnit(c, &o.units.Selection) {
		return c.Dir, nil
	}
	e, _, ds := openEstate(ctx, c, o, nil)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return "", ds
	}
	for _, u := range e.Found.Units {
		if dir, ok := e.WorkingDir(ctx, u); ok && u.Dir == c.Dir {
			return dir, nil
		}
	}
	return c.Dir, nil
}

func estatePlan(ctx context.Context, c *command.Call, o *options, set *rulecheck.Rules) (res rules.Result, _ diag.List) {
	p, err := savedplan.Read(c, o.plan)
	if err != nil {
		return res, workdir.PlanFileError(o.plan, err)
	}
	if set == nil {
		return res, nil
	}
	enc, ds := workdir.EncryptionOf(ctx, c.Directory, nil, "")
	if ds.HasErrors() {
		return res, ds
	}
	var all []unitPlan
	for _, saved := range p.Units {
		if saved.Planned {
			all = append(all, unitPlan{saved.Name, func() (*plan.Plan, error) {
				saved.Decrypt(enc.Plan(ctx).Plans())
				return saved.Plan()
			}})
		}
	}
	return unitPlans(ctx, c, o, set, all, p.About.Alone, false)
}

// unitPlan is the plan of one unit in a file.
type unitPlan struct {
	name string
	read func() (*plan.Plan, error)
}

// unitPlans checks the rules for the plans of units. The only plan of an estate with alone is that of
// the only unit, whatever its name. inJSON is as in rules.Planned.
func unitPlans(ctx context.Context, c *command.Call, o *options, set *rulecheck.Rules, all []unitPlan, alone, inJSON bool) (res rules.Result, _ diag.List) {
	if set == nil {
		return res, nil
	}
	e, _, ds := openEstate(ctx, c, o, nil)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return res, ds
	}
	byName := map[string]*estate.Unit{}
	for _, u := range e.Found.Units {
		byName[u.Name] = u
	}
	plans, wants := map[*estate.Unit]*plan.Plan{}, set.Wants(true)
	for _, x := range all {
		u := byName[x.name]
		if u == nil && alone && len(e.Found.Units) == 1 {
			u = e.Found.Units[0]
		}
		if u == nil {
			ds = append(ds, diag.Errorf(diag.CodeRulesPlan, nil, "Unit of the plan not found", "The plan in %q contains the unit %s, which is not below the working directory. Run the command in the directory in which the plan was made.", o.plan, x.name)...)
			continue
		}
		planned, err := x.read()
		if err != nil {
			ds = append(ds, workdir.PlanFileError(o.plan, err)...)
			continue
		}
		plans[u] = rulecheck.Needed(planned, wants)
	}
	if ds.HasErrors() {
		return res, ds
	}
	res, more := set.Estate(ctx, e, rulecheck.OfEstate{Plans: plans, InJSON: inJSON, Schemas: units.KeptSchemas(c, func(dir string) string { return dir })})
	return res, append(ds, more...)
}
