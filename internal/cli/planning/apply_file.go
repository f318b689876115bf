package planning

import (
	"context"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// applyFile applies a saved plan. It uses the configuration, variables and workspace in the
// plan file, and the encryption, providers and backend of the working directory.
func applyFile(ctx context.Context, c *command.Call, o *applyOptions) int {
	f, ds := c.ReadPlanFile(ctx, o.Vars, o.file)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if f.Plan.Errored {
		return c.Fail(diag.Errorf(diag.CodePlanSaved, nil, "Saved plan is incomplete", "The plan in %q was saved although planning ended with errors. It cannot be applied: plan again.", o.file))
	}
	b, more := f.Open(ctx, c.Directory, o.Vars)
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	options := f.Options(o.Vars)
	options.Parallelism = o.Parallelism
	p, more := project.Load(ctx, c, options)
	if ds = append(ds, more...); p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	if more := p.Plugins.CheckPlanned(f.Lock, p.Required(f.Plan.PrevRun, f.Plan.Prior)); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	r := &run{Project: p, flags: &o.Flags, backend: b, what: "OperationTypeApply"}
	given, more := r.ephemeral(ctx, f.Plan, o)
	if r.said = append(ds, more...); more.HasErrors() {
		return c.Fail(r.said)
	}
	r.ready()
	r.op.Values, r.options.Mode = given, f.Plan.Mode
	done, code := r.apply(ctx, o, workdir.Want{Saved: f.Plan, Apply: true}, func(ctx context.Context, p *plan.Plan, ds diag.List) (bool, diag.List) {
		ds = append(ds, r.checkRules(ctx, p)...)
		if !ds.HasErrors() {
			r.Report.Stream.Changes(p)
		}
		return true, ds
	})
	if !done.Applied {
		return code
	}
	return r.left(o, f.Plan)
}

// ephemeral returns the values of ephemeral variables, which a saved plan does not contain. It
// checks that other given values are equal to those in the plan.
func (r *run) ephemeral(ctx context.Context, p *plan.Plan, o *applyOptions) (map[string]engine.InputValue, diag.List) {
	ds := r.checkAgain(p)
	out := make(map[string]engine.InputValue)
	for _, name := range p.Ephemeral {
		if v, ok := r.Vars[name]; ok {
			out[name] = v
			continue
		}
		d := r.Engine.Root().Variables[name]
		if d == nil || !d.Required() {
			continue
		}
		if !r.Prompt.May(o.Input) {
			ds = append(ds, diag.Errorf(diag.CodeVarsMissing, &d.At, "No value for required variable", "The value of the ephemeral variable %q is not kept in a saved plan, so it must be given again: use a -var or -var-file option, or an environment variable.", name)...)
			continue
		}
		text, err := r.Prompt.Ask(ctx, prompt.Question{Title: prompt.Variable(d), Text: d.Description, Secret: true})
		if err != nil {
			ds = append(ds, diag.Errorf(diag.CodeVarsMissing, &d.At, "No value for required variable", "The value of the ephemeral variable %q is not kept in a saved plan, and nobody entered it: %s.", name, err)...)
			continue
		}
		out[name] = engine.InputValue{Text: &text}
	}
	return out, ds
}

// checkAgain returns errors for values that differ from those in the plan. It ignores variable
// files that are loaded by their name: the plan may have been made with a flag that overrides
// them.
func (r *run) checkAgain(p *plan.Plan) diag.List {
	var ds diag.List
	for _, name := range slices.Sorted(maps.Keys(r.Vars)) {
		planned, ok := p.Variables[name]
		d := r.Engine.Root().Variables[name]
		if !ok || d == nil || slices.Contains(p.Ephemeral, name) {
			continue
		}
		v := r.Vars[name]
		if v.From.Kind == source.VarFile && v.From.Auto {
			continue
		}
		got, more := workdir.ReadVariable(d, v)
		if ds = append(ds, more...); more.HasErrors() {
			continue
		}
		if !sameInput(d, got, planned) {
			ds = append(ds, diag.Errorf(diag.CodeCLIPlanVariable, v.At, "Mismatch between input and plan variable value", "Value saved in the plan file for variable %q is different from the one given to the current command.", name)...)
		}
	}
	return ds
}

// sameInput reports whether two values of a variable are equal after defaults and conversion.
// The plan contains values before both.
func sameInput(d *config.Variable, a, b cty.Value) bool {
	final := func(v cty.Value) (cty.Value, bool) {
		if d.Defaults != nil && !v.IsNull() {
			v = d.Defaults.Apply(v)
		}
		out, err := convert.Convert(v, d.Type)
		return out, err == nil
	}
	x, okX := final(a)
	y, okY := final(b)
	return okX && okY && x.RawEquals(y)
}
