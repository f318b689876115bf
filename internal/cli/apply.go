package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

type applyOptions struct {
	operationFlags
	file           string // a saved plan
	approved       bool
	quietForgotten bool
	name           string // apply or destroy
}

func applyCommand(ctx context.Context, s *session, args []string) int {
	return applyOrDestroy(ctx, s, "apply", args)
}

func applyOrDestroy(ctx context.Context, s *session, name string, args []string) int {
	o := applyOptions{name: name}
	f := newFlags(name)
	o.add(f)
	f.BoolVar(&o.approved, "auto-approve", false, "")
	f.BoolVar(&o.quietForgotten, "suppress-forget-errors", false, "")
	if !s.parse(f, args) {
		return 1
	}
	switch {
	case f.NArg() > 1:
		return s.usageError(name, "Too many command line arguments", "Expected at most one positional argument.")
	case f.NArg() == 1 && name == "destroy":
		return s.fail(diag.Errorf(nil, "Destroy can't be called with a plan file", "If this plan was created using plan -destroy, apply it using:\n  %s apply %q", view.Program, f.Arg(0)))
	case name == "destroy" && o.refreshOnly:
		return s.usageError(name, "Invalid mode option", "The -refresh-only option is not valid for \""+view.Program+" destroy\".")
	}
	o.file = f.Arg(0)
	if name == "destroy" {
		o.destroy = true
	}
	if !s.useJSON(o.json) {
		return 1
	}
	defer s.finish()
	if o.json.on && !o.approved && o.file == "" {
		return s.fail(diag.Errorf(nil, "Plan file or auto-approve required", "%s cannot ask for interactive approval when -json is set. You can either apply a saved plan file, or enable the -auto-approve option.", view.Product))
	}
	return runApply(ctx, s, &o)
}

func runApply(ctx context.Context, s *session, o *applyOptions) int {
	if o.file != "" {
		return applyFile(ctx, s, o)
	}
	r, ds := s.start(ctx, &o.operationFlags, o.name, "OperationTypeApply")
	if r == nil {
		return s.fail(ds)
	}
	defer r.stop()
	r.pending = ds
	p, ds := r.make(ctx)
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
			return s.fail(ds)
		}
	}
	return r.apply(ctx, p, o, nil)
}

// approve asks whether the plan is to be carried out. The answer must be "yes".
func (r *run) approve(ctx context.Context, o *applyOptions) (bool, diag.List) {
	in := ""
	if r.workspace != "default" {
		in = fmt.Sprintf(" in workspace %q", r.workspace)
	}
	q := question{
		title: "\nDo you want to perform these actions" + in + "?",
		text:  view.Product + " will perform the actions described above.\nOnly 'yes' will be accepted to approve.",
	}
	what := "Apply"
	switch r.options.Mode {
	case plan.Destroy:
		q.title = "\nDo you really want to destroy all resources" + in + "?"
		q.text = view.Product + " will destroy all your managed infrastructure, as shown above.\nThere is no undo. Only 'yes' will be accepted to confirm."
		what = "Destroy"
	case plan.RefreshOnly:
		q.title = "\nWould you like to update the " + view.Product + " state" + in + " to reflect these detected changes?"
		q.text = view.Product + " will write these changes to the state without modifying any real infrastructure.\nThere is no undo. Only 'yes' will be accepted to confirm."
	}
	answer, err := r.ask(ctx, q)
	if err != nil {
		return false, diag.Errorf(nil, what+" was not approved", "There was no answer to the question whether to go on: %s. Answer it, or use the -auto-approve option.", err)
	}
	if answer != "yes" {
		r.human.Say(what + " cancelled.\n")
		return false, nil
	}
	return true, nil
}

// apply carries out a plan and reports what came of it. given are the values of
// ephemeral variables for a saved plan, nil for those of the run.
func (r *run) apply(ctx context.Context, p *plan.Plan, o *applyOptions, given map[string]engine.InputValue) int {
	every, ds := r.persistEvery()
	if ds.HasErrors() {
		return r.fail(ds)
	}
	if given == nil {
		given = r.vars
	}
	if ds := r.held.begin(ctx, len(p.Changes)); ds.HasErrors() {
		return r.fail(ds)
	}
	r.applying()
	r.tellImports(p)
	stop := make(chan struct{})
	var once sync.Once
	r.gently(func() { once.Do(func() { close(stop) }) })
	defer r.gently(nil)
	res, ds := r.engine.Apply(context.WithoutCancel(ctx), p, engine.ApplyOptions{
		Variables: given, Persist: r.held.Write, Every: every, Journal: r.held, Stop: stop,
	})
	ds = append(ds, r.held.end(res.State)...)
	ds = append(ds, targeted(p)...)
	ds = append(notRepeated(r.pending, ds), ds...)
	n := plan.Counts{Add: res.Added, Change: res.Changed, Destroy: res.Destroyed, Import: res.Imported, Forget: res.Forgotten}
	if ds.HasErrors() || res.Stopped {
		r.tell(ds)
		if res.Stopped && !ds.HasErrors() {
			r.tell(diag.Errorf(nil, "Apply was interrupted", "Not everything that was planned was done, since the run was interrupted. What was done is in the state."))
		}
		return 1
	}
	r.tell(ds)
	if o.destroy && n.Forget > 0 && !o.quietForgotten {
		return r.fail(forgotten())
	}
	r.complete(o, n, res.State)
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
		r.event(e)
		e.Kind = event.ImportDone
		r.event(e)
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

func (r *run) complete(o *applyOptions, n plan.Counts, s *state.State) {
	operation := o.name
	r.human.Say("\n")
	r.human.Good(view.Complete(operation, n))
	r.human.Say("\n")
	r.stream.Summary(operation, n)
	if operation == "destroy" {
		return
	}
	if o.state.out != "" {
		r.human.Say("\nThe state of your infrastructure has been saved to the path below. This state\nis required to modify and destroy your infrastructure, so keep it safe. To\ninspect the complete state use the `" + view.Program + " show` command.\n\nState path: " + o.state.out + "\n")
	}
	r.outputs(s, o.reveal)
	r.stream.Outputs(s.Outputs)
}

// outputs shows the outputs of a state, if there are any.
func (r *run) outputs(s *state.State, reveal bool) {
	if r.human == nil || len(s.Outputs) == 0 {
		return
	}
	r.human.Good("\nOutputs:\n\n")
	_ = view.Outputs(r.Stdout, s.Outputs, reveal)
}

func applyUsage() string {
	return usageText("Usage: "+view.Program+" [global options] apply [options] [PLAN]\n\n"+
		"  Creates or updates infrastructure according to "+view.Product+" configuration\n  files in the current directory.\n\n"+
		"  By default, "+view.Product+" will generate a new plan and present it for your\n  approval before taking any action. You can optionally provide a plan file\n  created by a previous call to \""+view.Program+" plan\", in which case "+view.Product+" will\n  take the actions described in that plan without any confirmation prompt.",
		append(operationOptions(),
			option("-auto-approve", "Skip interactive approval of the plan before applying."),
			option("-backup=path", "Where to back up the existing state file before it changes. Defaults to the state file with \".backup\"; \"-\" for no backup."),
			option("-state-out=path", "Write the state to this file, not to the one that -state names."),
			option("-suppress-forget-errors", "Take a destroy that leaves objects behind, because of lifecycle.destroy = false, for success."))...)()
}
