package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// readPlanFile reads a saved plan. The error is as of os or of package planfile.
func readPlanFile(c *command.Call, name string) (*planfile.File, error) {
	return readFile(c.Path(name), func(r io.ReaderAt, size int64) (*planfile.File, error) { return planfile.Read(r, size, Version) })
}

// readFile has a file read whose size must be known first.
func readFile[T any](path string, read func(io.ReaderAt, int64) (T, error)) (T, error) {
	var none T
	f, err := os.Open(path)
	if err != nil {
		return none, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return none, err
	}
	return read(f, info.Size())
}

// applyFile applies a saved plan: with the configuration, the variables, the
// backend and the workspace that it was made with.
func applyFile(ctx context.Context, c *command.Call, o *applyOptions) int {
	f, err := readPlanFile(c, o.file)
	if err != nil {
		return c.Fail(planFileError(o.file, err))
	}
	if f.Plan.Errored {
		return c.Fail(diag.Errorf(nil, "Saved plan is incomplete", "The plan in %q was saved although planning ended with errors. It cannot be applied: plan again.", o.file))
	}
	p, ds := load(ctx, c, loadOptions{vars: o.vars, workspace: f.Backend.Workspace, saved: f.Config, parallelism: o.parallelism, partial: true})
	if p == nil {
		return c.Fail(ds)
	}
	b, more := p.backendOf(ctx, f.Backend)
	if ds = append(ds, more...); more.HasErrors() {
		p.close()
		return c.Fail(ds)
	}
	r := &run{project: p, flags: &o.operationFlags, backend: b}
	given, more := r.ephemeral(ctx, f.Plan, o)
	if ds = append(ds, more...); more.HasErrors() {
		p.close()
		return c.Fail(ds)
	}
	r.held, more = p.hold(ctx, r.backend, o.state, "OperationTypeApply")
	if ds = append(ds, more...); more.HasErrors() {
		p.close()
		return c.Fail(ds)
	}
	defer r.stop()
	if stale(f.Plan.PrevRun, r.held.Current()) {
		return c.Fail(append(ds, diag.Errorf(nil, "Saved plan is stale", "The given plan file can no longer be applied because the state was changed by another operation after the plan was created.")...))
	}
	if more = p.selectProviders(ctx, r.held.Current(), f.Plan.Prior); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	r.pending = append(ds, more...)
	if f.Plan.PrevRun == f.Plan.Prior {
		f.Plan.Prior = r.translate(f.Plan.Prior)
		f.Plan.PrevRun = f.Plan.Prior
	}
	r.Report.Stream.Changes(f.Plan)
	return r.apply(ctx, f.Plan, o, given)
}

// backendOf opens the backend that a plan was made with.
func (p *project) backendOf(ctx context.Context, b planfile.Backend) (*place, diag.List) {
	if ds := refuse(p.Call, p.engine.Root()); len(ds) > 0 {
		return nil, ds
	}
	c, ds := folderOf(p.Call).Of(b.Type, b.Config)
	if ds.HasErrors() {
		return nil, ds
	}
	return openBackend(ctx, p.Call, c, p.engine.Root().Backend)
}

func planFileError(name string, err error) diag.List {
	detail := err.Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		detail = "There is no such file."
	case errors.Is(err, planfile.ErrBundle):
		detail = "The file is the plan of an estate. Apply it with \"" + view.Program + " run --all apply\" in the folder that it was made in."
	case errors.Is(err, planfile.ErrNotPlan):
		detail = "The file is no plan that this program saved: " + err.Error() + ". Plans of other tools can be applied by those tools only."
	}
	return diag.List{{Code: "plan/read", Summary: "Failed to load \"" + name + "\" as a plan file", Detail: detail}}
}

// ephemeral collects the values that a saved plan does not hold, and holds
// others that were given again to those that it does.
func (r *run) ephemeral(ctx context.Context, p *plan.Plan, o *applyOptions) (map[string]engine.InputValue, diag.List) {
	ds := r.checkAgain(p)
	out := make(map[string]engine.InputValue)
	for _, name := range p.Ephemeral {
		if v, ok := r.vars[name]; ok {
			out[name] = v
			continue
		}
		d := r.engine.Root().Variables[name]
		if d == nil || !d.Required() {
			continue
		}
		if !r.Prompt.May(o.input) {
			ds = append(ds, diag.Errorf(&d.At, "No value for required variable", "The value of the ephemeral variable %q is not kept in a saved plan, so it must be given again: use a -var or -var-file option, or an environment variable.", name)...)
			continue
		}
		text, err := r.Prompt.Ask(ctx, prompt.Question{Title: prompt.Variable(d), Text: d.Description, Secret: true})
		if err != nil {
			ds = append(ds, diag.Errorf(&d.At, "No value for required variable", "The value of the ephemeral variable %q is not kept in a saved plan, and there was no answer to the prompt.Question for it: %s.", name, err)...)
			continue
		}
		out[name] = engine.InputValue{Text: &text}
	}
	return out, ds
}

// checkAgain refuses values that differ from those in the plan.
func (r *run) checkAgain(p *plan.Plan) diag.List {
	var ds diag.List
	for _, name := range slices.Sorted(maps.Keys(r.vars)) {
		planned, ok := p.Variables[name]
		d := r.engine.Root().Variables[name]
		if !ok || d == nil || slices.Contains(p.Ephemeral, name) {
			continue
		}
		v := r.vars[name]
		got, more := vars.Read(d, v)
		if ds = append(ds, more...); more.HasErrors() {
			continue
		}
		if !sameInput(d, got, planned) {
			ds = append(ds, diag.Errorf(v.At, "Mismatch between input and plan variable value", "Value saved in the plan file for variable %q is different from the one given to the current command.", name)...)
		}
	}
	return ds
}

// sameInput reports whether two values of a variable come to the same: the plan holds
// what was given, before the type's defaults and conversion.
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
