package planning

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/internal/cli/project"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/remoterun"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/internal/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// Apply declares apply.
func Apply() command.Command {
	return command.Command{
		Name: "apply", Synopsis: "Create or update infrastructure", Main: true, Usage: "[options] [PLAN]",
		Units: command.InUnit | command.NeedsInputs | command.OverEstate,
		Help: `Creates or updates infrastructure according to Terrace configuration
files in the current directory.

By default, Terrace will generate a new plan and present it for your
approval before taking any action. You can optionally provide a plan file
created by a previous call to "terrace plan", in which case Terrace will
take the actions described in that plan without any confirmation prompt.`,
		Args: []command.Arg{{Name: "PLAN", Help: "A plan that \"plan -out\" saved.", Optional: true, Complete: command.Files}},
		Examples: []command.Example{
			{Line: "apply", Text: "Plan, show the plan, ask, and apply it."},
			{Line: "apply tfplan", Text: "Apply a saved plan, without a question."},
		},
		Prepare: func() (command.Flags, command.Run) { return prepareApply("apply") },
	}
}

// Destroy declares destroy, which is apply -destroy with another name in its texts.
func Destroy() command.Command {
	return command.Command{
		Name: "destroy", Synopsis: "Destroy previously-created infrastructure", Main: true, Usage: "[options]",
		Units: command.InUnit | command.NeedsInputs | command.OverEstate,
		Help: `Destroy Terrace-managed infrastructure.

This command is a convenience alias for:
    terrace apply -destroy

This command also accepts many of the plan-customization options accepted by
the "terrace plan" command. For more information on those options, run:
    terrace plan -help`,
		Prepare: func() (command.Flags, command.Run) {
			fs, run := prepareApply("destroy")
			return fs.Hide(), run
		},
	}
}

func prepareApply(name string) (command.Flags, command.Run) {
	o := &applyOptions{name: name}
	fs := append(o.Declare(name == "destroy"), command.Bool(&o.approved, "auto-approve", "Skip interactive approval of the plan before applying."))
	fs = append(append(fs, o.State.WriteFlags()...), o.State.JournalFlag())
	fs = append(fs, command.Bool(&o.quietForgotten, "suppress-forget-errors", "Take a destroy that leaves objects behind, because of lifecycle.destroy = false, for success."))
	return fs, func(ctx context.Context, c *command.Call) int { return applyOrDestroy(ctx, c, o) }
}

func applyOrDestroy(ctx context.Context, c *command.Call, o *applyOptions) int {
	switch {
	case len(c.Args) > 1:
		return c.UsageError("Too many command line arguments", "Expected at most one positional argument.")
	case len(c.Args) == 1 && o.name == "destroy":
		return c.Fail(diag.Errorf(nil, "Destroy can't be called with a plan file", "If this plan was created using plan -destroy, apply it using:\n  %s apply %q", view.Program, c.Arg(0)))
	case o.name == "destroy" && o.RefreshOnly:
		return c.UsageError("Invalid mode option", "The -refresh-only option is not valid for \""+view.Program+" destroy\".")
	}
	o.file = c.Arg(0)
	if o.name == "destroy" {
		o.Destroy = true
	}
	if !o.Json.Use(c.Report) {
		return 1
	}
	defer c.Report.Finish()
	if o.Json.On && !o.approved && o.file == "" {
		return c.Fail(diag.Errorf(nil, "Plan file or auto-approve required", "%s cannot ask for interactive approval when -json is set. You can either apply a saved plan file, or enable the -auto-approve option.", view.Product))
	}
	return runApply(ctx, c, o)
}

type applyOptions struct {
	Flags
	file           string // a saved plan
	approved       bool
	quietForgotten bool
	name           string // apply or destroy
}

func runApply(ctx context.Context, c *command.Call, o *applyOptions) int {
	q := remoterun.Request{Command: o.name, Approved: o.approved, PlanFile: o.file}
	if o.file != "" && remoterun.IsBookmark(c, o.file) {
		q.PlanFile, q.Vars, q.Input, q.Parallelism = "", o.Vars, o.input, o.Parallelism
		return remoterun.Apply(ctx, c, o.file, q)
	}
	if code, done := atService(ctx, c, &o.Flags, q); done {
		return code
	}
	if o.file != "" {
		return applyFile(ctx, c, o)
	}
	r, ds := start(ctx, c, &o.Flags, o.name, "OperationTypeApply")
	if r == nil {
		return c.Fail(ds)
	}
	defer r.stop()
	r.pending = ds
	p, ds := r.op.Plan(ctx, r.options)
	if ds.HasErrors() && r.options.Mode == plan.Destroy { // half of what is to be destroyed is nothing to show
		p = nil
	}
	r.showPlan(ctx, p, ds)
	if ds.HasErrors() || p == nil || p.Errored {
		return 1
	}
	if o.approved { // apply will evaluate what was left open in a moment
		r.pending = slices.DeleteFunc(r.pending, func(m *diag.Message) bool { return m.Code == "eval/check-open" })
	}
	if p.HasChanges() && !p.OnlyMoves() && !o.approved {
		r.flush()
		if ok, ds := r.approve(ctx, o); !ok {
			return c.Fail(ds)
		}
	}
	return r.apply(ctx, p, o)
}

// approve asks whether the plan is to be carried out. The answer must be "yes".
func (r *run) approve(ctx context.Context, o *applyOptions) (bool, diag.List) {
	in := ""
	if r.Workspace != "default" {
		in = fmt.Sprintf(" in workspace %q", r.Workspace)
	}
	q := prompt.Question{
		Title: "\nDo you want to perform these actions" + in + "?",
		Text:  view.Product + " will perform the actions described above.\nOnly 'yes' will be accepted to approve.",
	}
	what := "Apply"
	switch r.options.Mode {
	case plan.Destroy:
		q.Title = "\nDo you really want to destroy all resources" + in + "?"
		q.Text = view.Product + " will destroy all your managed infrastructure, as shown above.\nThere is no undo. Only 'yes' will be accepted to confirm."
		what = "Destroy"
	case plan.RefreshOnly:
		q.Title = "\nWould you like to update the " + view.Product + " state" + in + " to reflect these detected changes?"
		q.Text = view.Product + " will write these changes to the state without modifying any real infrastructure.\nThere is no undo. Only 'yes' will be accepted to confirm."
	}
	answer, err := r.Prompt.Ask(ctx, q)
	if err != nil {
		return false, diag.Errorf(nil, what+" was not approved", "Not approved: %s. Run the command in a terminal, or with -auto-approve.", err)
	}
	if answer != "yes" {
		r.Report.Human.Say(what + " cancelled.\n")
		return false, nil
	}
	return true, nil
}

// apply carries out a plan and reports what came of it.
func (r *run) apply(ctx context.Context, p *plan.Plan, o *applyOptions) int {
	every, ds := project.PersistEvery(r.Call)
	if ds.HasErrors() {
		return r.Fail(ds)
	}
	if ds := r.op.Transfer(ctx, p); ds.HasErrors() {
		return r.Fail(ds)
	}
	r.held.Started = func() {
		r.Report.Applying()
		r.tellImports(p)
	}
	stop := make(chan struct{})
	var once sync.Once
	r.Interrupts.Gently(func() { once.Do(func() { close(stop) }) })
	defer r.Interrupts.Gently(nil)
	r.op.Stop = stop
	res, ds := r.op.Apply(ctx, p, every)
	if !res.Started {
		return r.Fail(ds)
	}
	ds = append(ds, targeted(p)...)
	ds = append(notRepeated(r.pending, ds), ds...)
	if r.Report.Tell(ds); ds.HasErrors() {
		return 1
	}
	n := operation.Counts(res)
	if o.Destroy && n.Forget > 0 && !o.quietForgotten && slices.ContainsFunc(p.Changes, (*plan.Change).Outlives) {
		return r.Fail(forgotten())
	}
	r.done(o, n, res.State)
	return 0
}

// notRepeated leaves out the messages of a plan that its apply came to as well,
// such as those of checks that still fail.
func notRepeated(planned, applied diag.List) diag.List {
	type same struct{ summary, detail, address, at string }
	key := func(m *diag.Message) same {
		at := ""
		if m.At != nil {
			at = m.At.String()
		}
		return same{m.Summary, m.Detail, m.Address, at}
	}
	again := make(map[same]bool, len(applied))
	for _, m := range applied {
		again[key(m)] = true
	}
	var out diag.List
	for _, m := range planned {
		if !again[key(m)] {
			out = append(out, m)
		}
	}
	return out
}

// tellImports tells of the objects that the plan takes over: they were read
// while it was made, and enter the state now.
func (r *run) tellImports(p *plan.Plan) {
	for _, c := range p.Changes {
		if c.Import == nil {
			continue
		}
		e := event.Event{Kind: event.ImportStart, Object: addr.Object{Instance: c.Addr}}
		if e.IDKey, e.IDValue = "id", c.Import.ID; e.IDValue == "" {
			e.IDKey, e.IDValue = resourceclient.Identify(c.Import.Identity)
		}
		r.Report.Event(e)
		e.Kind = event.ImportDone
		r.Report.Event(e)
	}
}

func forgotten() diag.List {
	return diag.Errorf(nil, "Destroy was successful but left behind forgotten instances", "As requested, %s has not deleted some remote objects that are no longer managed by this configuration. Those objects continue to exist in their remote system and so may continue to incur charges. Refer to the original plan for more information.\n\nTo suppress this error for the future 'destroy' runs, you can add the CLI flag \"-suppress-forget-errors\".", view.Product)
}

// targeted warns after an apply that was not about everything.
func targeted(p *plan.Plan) diag.List {
	if len(p.Targets) == 0 && len(p.Excludes) == 0 {
		return nil
	}
	return diag.Warnf(nil, "Applied changes may be incomplete", "The plan was created with the -target or the -exclude option in effect, so some changes requested in the configuration may have been ignored and the output values may not be fully updated. Run the following command to verify that no other changes are pending:\n    %s plan\n\n"+
		"Note that the -target and -exclude options are not suitable for routine use, and are provided only for exceptional situations such as recovering from errors or mistakes, or when %s specifically suggests to use it as part of an error message.", view.Program, view.Product)
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
		r.Report.Human.Say("\nThe state of your infrastructure has been saved to the path below. This state\nis required to modify and destroy your infrastructure, so keep it safe. To\ninspect the complete state use the `" + view.Program + " show` command.\n\nState path: " + o.State.Out + "\n")
	}
	r.outputs(s, o.Reveal)
	r.Report.Stream.Outputs(s.Outputs)
}

// outputs shows the outputs of a state, if there are any.
func (r *run) outputs(s *state.State, reveal bool) {
	if r.Report.Human == nil || len(s.Outputs) == 0 {
		return
	}
	r.Report.Human.Good("\nOutputs:\n\n")
	_ = view.Outputs(r.Stdout, s.Outputs, reveal)
}
