// Package planning implements the commands plan, apply, destroy, refresh and drift.
//
// Main types: Flags, the flags that the commands share; run, one command in progress. The one
// rule: the package prints and asks, and workdir.Run decides what happens in which order.
package planning

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/cli/affected"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/remoterun"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
)

// Plan declares the command plan.
func Plan() command.Command {
	return command.Command{
		Name: "plan", Synopsis: "Show changes required by the current configuration", Main: true, Usage: "[options]",
		Uses:  command.State | command.Providers,
		Units: command.InUnit | command.NeedsInputs | command.OverEstate,
		Help: `Generates a speculative execution plan, showing what actions Terrace would
take to apply the current configuration. This command will not actually
perform the planned actions.

You can optionally save the plan to a file, which you can then pass to the
"apply" command to perform exactly the actions described in the plan.`,
		Examples: []command.Example{
			{Line: "plan -out=tfplan", Text: "Save the plan, to look at it with \"show tfplan\" and to apply it with \"apply tfplan\"."},
			{Line: "plan -target=module.app -var-file=prod.tfvars", Text: "Plan one module and what it depends on, with the values of a file."},
		},
		Exits: []command.Exit{
			{Code: 0, Help: "The plan was made; with -detailed-exitcode, and it has no changes."},
			{Code: 1, Help: "There was an error."},
			{Code: 2, Help: "With -detailed-exitcode: the plan was made and has changes."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o := &Flags{}
			return planFlags(&o.Request), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "To specify a working directory for the plan, use the global -chdir flag.")
				}
				if !o.Json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return runPlan(ctx, c, o)
			}
		},
	}
}

func planFlags(o *flags.Request) flag.Flags {
	fs := append(o.Planning(false), o.Causes(), deferFlag(o),
		flag.Bool(&o.Detailed, "detailed-exitcode", "Return detailed exit codes when the command exits: 0 means succeeded with an empty plan, 1 an error, 2 succeeded with changes."),
		flag.Text(&o.Plan.GenerateTo, "generate-config-out", "path", "(Experimental) If import blocks are present in configuration, write configuration for resources that have none to this file, which must not exist.").Completes(flag.Files),
		flag.Text(&o.Out, "out", "path", "Write the plan to a file, as input for the \"apply\" command.").Completes(flag.Files))
	fs = append(fs, flag.Text(&o.Origins, "causes-out", "FILE", "Write the files and lines that set the new values to a file, as JSON. Implies -show-causes.").Completes(flag.Files).Then(func(flag.Setting) { o.Plan.Causes = true }))
	fs = append(fs, flag.Bool(&o.Plan.AllOrigins, "all-origins", "Also write the files and lines that set all other values: to the file of -causes-out, and to the JSON form of a saved plan of units."))
	fs = append(fs, flag.Text(&o.Since, "since", "BASE", "Show beside the file and line that set a new value what was there in a commit, branch or tag. Implies -show-causes.").Then(func(flag.Setting) { o.Plan.Causes = true }))
	fs = append(fs, flags.Markdown(&o.Markdown)...)
	return append(fs, o.State.WriteFlags().Hide()...)
}

// PlanOver returns the form of plan for many units: one plan of all, which -out saves as a
// whole.
func PlanOver() *flags.Over { return &flags.Over{Flags: planFlags, Refused: stateFiles()} }

// stateFiles are the flags that name a file of state. They are refused over many units,
// because each unit has its own state.
func stateFiles() map[string]string {
	return map[string]string{"state": flags.OneFile, "state-out": flags.OneFile, "backup": flags.OneFile}
}

func runPlan(ctx context.Context, c *command.Call, o *Flags) int {
	comment := planpage.Comment{Call: c, To: o.Markdown, Mode: o.Plan.Mode}
	fail := func(ds diag.List) int { return c.Fail(append(ds, comment.Write(ds)...)) }
	if o.Plan.GenerateTo != "" {
		if _, err := os.Stat(c.Path(o.Plan.GenerateTo)); err == nil {
			return fail(diag.Errorf(diag.CodeCLIGenerateExists, nil, "Target generated file already exists", "%s can only write generated config into a new file. Either choose a different target location or move all existing configuration out of the target file, delete it and try again.", view.Product))
		}
	}
	if code, done := atService(ctx, c, o, remoterun.Request{Command: "plan", Detailed: o.Detailed, Out: o.Out, Generate: o.Plan.GenerateTo}); done {
		return code
	}
	if o.Since != "" {
		var ds diag.List
		if c.Unit != nil {
			o.Plan.Was, ds = affected.UnitSince(ctx, c, o.Since)
		} else {
			o.Plan.Was, ds = affected.Since(ctx, c, o.Since, o.Vars)
		}
		if ds.HasErrors() {
			return fail(ds)
		}
	}
	if ds := LoadAccepted(c, o); ds.HasErrors() {
		return fail(ds)
	}
	o.Plan.Accept = o.Plan.Accept.In(o.Plan.Accept.Dir)
	r, ds := start(ctx, c, o, "plan", "OperationTypePlan")
	if r == nil {
		return fail(ds)
	}
	defer r.Close()
	failed := false
	done, ds := r.do(ctx, workdir.Want{Plan: r.options}, workdir.Steps{
		Planned: func(ctx context.Context, p *plan.Plan, ds diag.List) (bool, diag.List) {
			saves := o.Out != "" && p != nil && !r.refused(ctx, p)
			var f *savedPlan
			var shown diag.List
			parallel.Each(2, 0, func(i int) {
				switch {
				case i == 0:
					shown = r.showPlan(ctx, p)
				case saves:
					f = r.encode(p)
				}
			})
			shown = append(shown, r.checkRules(ctx, p)...)
			if p != nil && o.Drift {
				shown = append(shown, ReportAccepted(c, o, []UnitDrift{{"", p.Accepted}}, o.readByDrift(ds))...)
			}
			r.Report.Tell(append(ds, shown...))
			if p != nil && o.Markdown.File != "" {
				comment.Plan(p, r.Engine.Root().Variables, r.Schemas(ctx))
			}
			written := comment.Write(append(ds, shown...))
			if p != nil && o.Origins != "" {
				written = append(written, view.WriteOrigins(r.ReportPath(o.Origins), map[string]any{"format_version": "1.0", "changes": view.AllOrigins(p)})...)
			}
			r.Report.Tell(written)
			failed = slices.Concat(ds, shown, r.afterPlan(p, o, f), written).HasErrors()
			return false, nil
		},
	})
	switch {
	case ds.HasErrors():
		return fail(ds)
	case failed:
		return 1
	case o.Detailed && done.Plan.HasChanges() && !done.Plan.OnlyMoves():
		return 2
	}
	return 0
}

// refused reports whether a plan failed with an error that is found without values of objects.
// In this case no file is written, as in OpenTofu 1.12.6. A plan with other errors is saved for
// inspection.
func (r *run) refused(ctx context.Context, p *plan.Plan) bool {
	return p.Refused || p.Errored && r.Engine.ValidateUnknown(ctx).HasErrors()
}

// afterPlan saves the plan if -out is set, and prints hints about the next command.
func (r *run) afterPlan(p *plan.Plan, o *Flags, f *savedPlan) diag.List {
	var ds diag.List
	if f != nil {
		if ds = f.write(r.Path(o.Out)); ds.HasErrors() {
			r.Report.Tell(ds)
			return ds
		}
	}
	if p == nil || p.Errored {
		return ds
	}
	if !p.HasChanges() || p.OnlyMoves() || r.Report.Human == nil || r.Report.Automated() {
		return ds
	}
	view.Rule(r.Stdout, r.Report.Human.Style)
	if slices.ContainsFunc(p.Changes, generated) {
		r.Report.Human.Say(view.Generated(r.Report.Names, o.Plan.GenerateTo) + "\n")
	}
	if o.Drift {
		r.Report.Human.Say("\nTo accept these changes into the state, run \"" + r.Report.Names.Program() + " apply -refresh-only\".\nTo undo them, run \"" + r.Report.Names.Program() + " apply\".\n")
	} else if o.Out == "" {
		r.Report.Human.Say("\nNote: You didn't use the -out option to save this plan, so " + r.Report.Names.Product() + " can't\nguarantee to take exactly these actions if you run \"" + r.Report.Names.Program() + " apply\" now.\n")
	} else {
		r.Report.Human.Say("\nSaved the plan to: " + o.Out + "\n\nTo perform exactly these actions, run the following command to apply:\n    " + r.Report.Names.Program() + " apply " + strconv.Quote(o.Out) + "\n")
	}
	return ds
}

// A savedPlan is the content of a plan file, before it is written.
type savedPlan struct {
	body []byte
	err  error
	ds   diag.List
}

// encode returns the content of a plan file, with the configuration that apply needs.
func (r *run) encode(p *plan.Plan) *savedPlan {
	out := &savedPlan{}
	files, ds := r.snapshot()
	if out.ds = ds; ds.HasErrors() {
		return out
	}
	f := &planfile.File{Plan: p, Config: files, Backend: planfile.Backend{Type: r.backend.Config.Type, Config: r.backend.Config.Value, Workspace: r.Workspace}}
	f.Lock, _ = readfile.Whole(r.Plugins.LockPath())
	f.Schemas = r.PlanSchemas(r.Report.Context, p)
	var body bytes.Buffer
	if out.err = planfile.Write(&body, f, release.Version); out.err == nil {
		out.body, out.err = workdir.SealPlan(r.Report.Context, r.backend.Encryption, body.Bytes())
	}
	return out
}

func (f *savedPlan) write(path string) diag.List {
	if f.ds.HasErrors() {
		return f.ds
	}
	err := f.err
	if err == nil {
		err = atomicfile.Write(path, f.body, 0o600)
	}
	if err != nil {
		return diag.Errorf(diag.CodeFilesWrite, store.PlaceOf(err), "Failed to write plan file", "The plan file could not be written: %s.", err)
	}
	return nil
}
