package planning

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/remoterun"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// Apply declares the command apply.
func Apply() command.Command {
	return command.Command{
		Name: "apply", Synopsis: "Create or update infrastructure", Main: true, Usage: "[options] [PLAN]",
		Uses:  command.State | command.Providers | command.Applies,
		Units: command.InUnit | command.NeedsInputs | command.OverEstate,
		Help: `Creates or updates infrastructure according to Terrace configuration
files in the current directory.

By default, Terrace will generate a new plan and present it for your
approval before taking any action. You can optionally provide a plan file
created by a previous call to "terrace plan", in which case Terrace will
take the actions described in that plan without any confirmation prompt.`,
		Args: []command.Arg{{Name: "PLAN", Help: "A plan that \"plan -out\" saved.", Optional: true, Complete: flag.Files}},
		Examples: []command.Example{
			{Line: "apply", Text: "Plan, show the plan, ask, and apply it."},
			{Line: "apply tfplan", Text: "Apply a saved plan, without a question."},
		},
		Prepare: func() (flag.Flags, command.Run) { return prepareApply("apply") },
	}
}

// Destroy declares the command destroy, which is apply -destroy with "destroy" in its texts.
func Destroy() command.Command {
	return command.Command{
		Name: "destroy", Synopsis: "Destroy previously-created infrastructure", Main: true, Brief: true, Usage: "[options]",
		Uses:  command.State | command.Providers | command.Applies,
		Units: command.InUnit | command.NeedsInputs | command.OverEstate,
		Help: `Destroy Terrace-managed infrastructure.

This command is a convenience alias for:
    terrace apply -destroy

This command also accepts many of the plan-customization options accepted by
the "terrace plan" command. For more information on those options, run:
    terrace plan -help`,
		Prepare: func() (flag.Flags, command.Run) {
			return prepareApply("destroy")
		},
	}
}

func prepareApply(name string) (flag.Flags, command.Run) {
	o := &applyOptions{name: name}
	return applyFlags(&o.Request, name == "destroy"), func(ctx context.Context, c *command.Call) int { return applyOrDestroy(ctx, c, o) }
}

func applyFlags(o *flags.Request, destroy bool) flag.Flags {
	fs := append(o.Planning(destroy), flag.Bool(&o.Approved, "auto-approve", "Skip interactive approval of the plan before applying."))
	if !destroy {
		fs = append(fs, o.Causes())
		fs = append(fs, roundsFlags(o)...)
	}
	fs = append(append(fs, o.State.WriteFlags()...), o.State.JournalFlag())
	return append(fs, flag.Bool(&o.Plan.Forget, "suppress-forget-errors", "Take a destroy that leaves objects behind, because of lifecycle.destroy = false, for success."))
}

// ApplyOver returns the form of apply for many units: the user approves one plan of all units,
// or gives a saved one.
func ApplyOver() *flags.Over {
	return &flags.Over{Flags: func(o *flags.Request) flag.Flags { return applyFlags(o, false) }, Refused: stateFiles()}
}

// DestroyOver returns the form of destroy for many units. Dependents are destroyed before
// their dependencies.
func DestroyOver() *flags.Over {
	return &flags.Over{
		Flags:   func(o *flags.Request) flag.Flags { return applyFlags(o, true) },
		Settle:  func(o *flags.Request) { o.Plan.Mode |= plan.Destroy },
		Refused: stateFiles(),
	}
}

func applyOrDestroy(ctx context.Context, c *command.Call, o *applyOptions) int {
	switch {
	case len(c.Args) > 1:
		return c.UsageError("Too many command line arguments", "Expected at most one positional argument.")
	case len(c.Args) == 1 && o.name == "destroy":
		return c.Fail(diag.Errorf(diag.CodeCLIDestroyPlanFile, nil, "Destroy can't be called with a plan file", "If this plan was created using plan -destroy, apply it using:\n  %s apply %q", view.Program, c.Arg(0)))
	case o.name == "destroy" && o.Plan.Mode&plan.RefreshOnly != 0:
		return c.UsageError("Invalid mode option", "The -refresh-only option is not valid for \""+view.Program+" destroy\".")
	}
	o.file = c.Arg(0)
	if o.name == "destroy" {
		o.Plan.Mode |= plan.Destroy
	}
	if !o.Json.Use(c.Report) {
		return 1
	}
	defer c.Report.Finish()
	if o.Json.On && !o.Approved && o.file == "" {
		return c.Fail(diag.Errorf(diag.CodeCLINotApproved, nil, "Plan file or auto-approve required", "%s cannot ask for interactive approval when -json is set. You can either apply a saved plan file, or enable the -auto-approve option.", view.Product))
	}
	return runApply(ctx, c, o)
}

type applyOptions struct {
	Flags
	file string // path of a saved plan; "" for none
	name string // "apply" or "destroy"
}

func runApply(ctx context.Context, c *command.Call, o *applyOptions) int {
	q := remoterun.Request{Command: o.name, Approved: o.Approved, PlanFile: o.file}
	if o.file != "" && remoterun.IsBookmark(c, o.file) {
		q.PlanFile, q.Vars, q.Input, q.Parallelism = "", o.Vars, o.Input, o.Parallelism
		return remoterun.Apply(ctx, c, o.file, q)
	}
	if code, done := atService(ctx, c, &o.Flags, q); done {
		return code
	}
	if o.file != "" && o.Plan.Defer {
		return c.Fail(diag.Errorf(diag.CodeCLIPlanOptions, nil, "Can't change plan options", "A saved plan contains what it defers, so -defer and -rounds cannot be given with one. Use -defer with the plan. After the apply, \"%s apply -rounds=N\" continues with what was deferred.", view.Program))
	}
	if o.file != "" && o.Plan.Causes {
		return c.Fail(diag.Errorf(diag.CodeCLIPlanOptions, nil, "Can't change plan options", "A saved plan does not contain the places that set its values, so -show-causes cannot be given with one. Use it with the plan."))
	}
	if o.file != "" {
		return applyFile(ctx, c, o)
	}
	r, ds := start(ctx, c, &o.Flags, o.name, "OperationTypeApply")
	if r == nil {
		return c.Fail(ds)
	}
	defer r.Close()
	return r.rounds(ctx, o)
}

// unlessPrevented reports whether an error leaves objects out of a destroy plan. Errors about
// prevent_destroy do not.
func unlessPrevented(m *diag.Message) bool { return m.Code != diag.CodePlanPreventDestroy }

// approve asks the user to approve the plan. It returns true only for the answer "yes".
func (r *run) approve(ctx context.Context, o *applyOptions) (bool, diag.List) {
	in := ""
	if r.Workspace != "default" {
		in = fmt.Sprintf(" in workspace %q", r.Workspace)
	}
	product := r.Report.Names.Product()
	q := prompt.Question{
		Title: "\nDo you want to perform these actions" + in + "?",
		Text:  product + " will perform the actions described above.\nOnly 'yes' will be accepted to approve.",
	}
	what := "Apply"
	switch r.options.Mode {
	case plan.Destroy:
		q.Title = "\nDo you really want to destroy all resources" + in + "?"
		q.Text = product + " will destroy all your managed infrastructure, as shown above.\nThere is no undo. Only 'yes' will be accepted to confirm."
		what = "Destroy"
	case plan.RefreshOnly:
		q.Title = "\nWould you like to update the " + product + " state" + in + " to reflect these detected changes?"
		q.Text = product + " will write these changes to the state without modifying any real infrastructure.\nThere is no undo. Only 'yes' will be accepted to confirm."
	}
	answer, err := r.Prompt.Ask(ctx, q)
	if errors.Is(err, context.Canceled) {
		return false, diag.Errorf(diag.CodeCLINotApproved, nil, what+" was not approved", "The command was interrupted before the plan was approved. Nothing was changed.")
	}
	if err != nil {
		return false, diag.Errorf(diag.CodeCLINotApproved, nil, what+" was not approved", "Not approved: %s. Run the command in a terminal, or with -auto-approve.", err)
	}
	if answer != "yes" {
		r.Report.Human.Say(what + " cancelled.\n")
		return false, nil
	}
	return true, nil
}

// apply plans and applies, reports the result, and returns the exit status. planned is the
// function Planned of workdir.Steps.
func (r *run) apply(ctx context.Context, o *applyOptions, w workdir.Want, planned func(context.Context, *plan.Plan, diag.List) (bool, diag.List)) (workdir.Done, int) {
	every, ds := project.PersistEvery(r.Call)
	if ds.HasErrors() {
		return workdir.Done{}, r.Fail(ds)
	}
	w.Every, w.ShowSensitive = every, o.Reveal
	stop := make(chan struct{})
	var once sync.Once
	defer r.Interrupts.Gently(nil)
	r.op.Stop = stop
	done, ds := r.do(ctx, w, workdir.Steps{
		Planned: func(ctx context.Context, p *plan.Plan, ds diag.List) (bool, diag.List) {
			yes, left := planned(ctx, p, ds)
			if yes {
				r.Interrupts.Gently(func() { once.Do(func() { close(stop) }) })
			}
			return yes, left
		},
		Applying: func(*plan.Plan) { r.Report.Applying() },
	})
	if r.Report.Tell(ds); !done.Applied {
		return done, 1
	}
	r.done(o, done.Counts, done.State)
	return done, 0
}

func (r *run) done(o *applyOptions, n plan.Counts, s *state.State) {
	operation := o.name
	r.Report.Human.Say("\n")
	r.Report.Human.Good(view.Complete(operation, n))
	r.Report.Human.Say("\n")
	r.Report.Stream.Summary(operation, n)
	if operation == "destroy" {
		return
	}
	if o.State.Out != "" {
		r.Report.Human.Say("\nThe state of your infrastructure has been saved to the path below. This state\nis required to modify and destroy your infrastructure, so keep it safe. To\ninspect the complete state use the `" + r.Report.Names.Program() + " show " + o.State.Out + "` command.\n\nState path: " + o.State.Out + "\n")
	}
	r.outputs(s, o.Reveal)
	r.Report.Stream.Outputs(s.Outputs)
}

// outputs prints the outputs of a state, if it has any.
func (r *run) outputs(s *state.State, reveal bool) {
	if r.Report.Human == nil || len(s.Outputs) == 0 {
		return
	}
	r.Report.Human.Good("\nOutputs:\n\n")
	_ = view.Outputs(r.Stdout, s.Outputs, reveal)
}
