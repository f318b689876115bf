package cli

import (
	"bytes"
	"context"
	"os"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/plan"
)

type planOptions struct {
	operationFlags
	out      string
	detailed bool
}

func planCommand(ctx context.Context, s *session, args []string) int {
	var o planOptions
	f := newFlags("plan")
	o.add(f)
	f.StringVar(&o.out, "out", "", "")
	f.BoolVar(&o.detailed, "detailed-exitcode", false, "")
	f.StringVar(&o.generate, "generate-config-out", "", "")
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 0 {
		return s.usageError("plan", "Too many command line arguments", "To specify a working directory for the plan, use the global -chdir flag.")
	}
	if !s.useJSON(o.json) {
		return 1
	}
	defer s.finish()
	return runPlan(ctx, s, &o)
}

func runPlan(ctx context.Context, s *session, o *planOptions) int {
	if o.generate != "" {
		if _, err := os.Stat(s.Path(o.generate)); err == nil {
			return s.fail(diag.Errorf(nil, "Target generated file already exists", "%s can only write generated config into a new file. Either choose a different target location or move all existing configuration out of the target file, delete it and try again.", view.Product))
		}
	}
	r, ds := s.start(ctx, &o.operationFlags, "plan", "OperationTypePlan")
	if r == nil {
		return s.fail(ds)
	}
	defer r.stop()
	r.pending = ds
	p, ds := r.make(ctx)
	saves := o.out != "" && p != nil && !r.refused(ctx, p)
	var f *savedPlan
	parallel.Each(2, 0, func(i int) {
		switch {
		case i == 0:
			r.showPlan(ctx, p, ds)
		case saves:
			f = r.encode(p)
		}
	})
	r.flush()
	ds = append(ds, r.afterPlan(p, o, f)...)
	switch {
	case ds.HasErrors():
		return 1
	case o.detailed && p.HasChanges() && !p.OnlyMoves():
		return 2
	}
	return 0
}

// refused reports whether a plan failed for something that can be found without
// state: then no file is written, as with OpenTofu 1.12.6. Another plan with
// errors is saved, to be looked at.
func (r *run) refused(ctx context.Context, p *plan.Plan) bool {
	return p.Refused || p.Errored && r.engine.Validate(ctx).HasErrors()
}

// afterPlan saves the plan, if there is a file for it, and says what can be done
// with it.
func (r *run) afterPlan(p *plan.Plan, o *planOptions, f *savedPlan) diag.List {
	var ds diag.List
	if f != nil {
		if ds = f.write(r.Path(o.out)); ds.HasErrors() {
			r.tell(ds)
			return ds
		}
	}
	if p == nil || p.Errored {
		return ds
	}
	if !p.HasChanges() || p.OnlyMoves() || r.human == nil || r.automated() {
		return ds
	}
	view.Rule(r.Stdout)
	if slices.ContainsFunc(p.Changes, generated) {
		r.human.Say("\n" + view.Product + " has generated configuration and written it to " + o.generate + ". Please review the\nconfiguration and edit it as necessary before adding it to version control.\n")
	}
	if o.out == "" {
		r.human.Say("\nNote: You didn't use the -out option to save this plan, so " + view.Product + " can't\nguarantee to take exactly these actions if you run \"" + view.Program + " apply\" now.\n")
	} else {
		r.human.Say("\nSaved the plan to: " + o.out + "\n\nTo perform exactly these actions, run the following command to apply:\n    " + view.Program + " apply " + quoteArg(o.out) + "\n")
	}
	return ds
}

func generated(c *plan.Change) bool { return c.Import != nil && c.Import.GeneratedConfig != "" }

// A savedPlan is the file of a plan before it is written.
type savedPlan struct {
	body bytes.Buffer
	err  error
	ds   diag.List
}

// encode makes the file of a plan, with what is needed to apply it.
func (r *run) encode(p *plan.Plan) *savedPlan {
	out := &savedPlan{}
	files, ds := r.snapshot()
	if out.ds = ds; ds.HasErrors() {
		return out
	}
	f := &planfile.File{Plan: p, Config: files, Backend: planfile.Backend{Type: r.backend.config.Type, Config: r.backend.config.Value, Workspace: r.workspace}}
	f.Lock, _ = os.ReadFile(r.plugins.lockPath())
	out.err = planfile.Write(&out.body, f, Version)
	return out
}

func (f *savedPlan) write(path string) diag.List {
	if f.ds.HasErrors() {
		return f.ds
	}
	err := f.err
	if err == nil {
		err = atomicfile.Write(path, f.body.Bytes(), 0o600)
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to write plan file", "The plan file could not be written: %s.", err)
	}
	return nil
}

func planUsage() string {
	return usageText("Usage: "+view.Program+" [global options] plan [options]\n\n"+
		"  Generates a speculative execution plan, showing what actions "+view.Product+" would\n  take to apply the current configuration. This command will not actually\n  perform the planned actions.\n\n"+
		"  You can optionally save the plan to a file, which you can then pass to the\n  \"apply\" command to perform exactly the actions described in the plan.",
		append(operationOptions(),
			option("-detailed-exitcode", "Return detailed exit codes when the command exits: 0 means succeeded with an empty plan, 1 an error, 2 succeeded with changes."),
			option("-generate-config-out=path", "(Experimental) If import blocks are present in configuration, write configuration for resources that have none to this file, which must not exist."),
			option("-out=path", "Write the plan to a file, as input for the \"apply\" command."))...)()
}

// operationOptions is the help on the flags that plan, apply, destroy and
// refresh share.
func operationOptions() []string {
	return []string{
		option("-destroy", "Select the \"destroy\" planning mode: a plan to destroy all objects that this configuration manages."),
		option("-refresh-only", "Select the \"refresh only\" planning mode: check whether remote objects still match the most recent apply, without undoing anything."),
		option("-refresh=false", "Skip checking for external changes to remote objects while creating the plan."),
		option("-replace=resource", "Force replacement of a resource instance. May be repeated."),
		option("-target=resource", "Limit the plan to the given module, resource, or resource instance and what it depends on. May be repeated. Cannot be used together with -exclude."),
		option("-target-file=path", "Like -target, for each address in a file: one a line, lines that begin with # are comments."),
		option("-exclude=resource", "Leave the given module, resource, or resource instance and what depends on it out of the plan. May be repeated."),
		option("-exclude-file=path", "Like -exclude, for each address in a file."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		option("-var-file=path", "Load variable values from a file, besides terraform.tfvars and *.auto.tfvars. May be repeated."),
		option("-compact-warnings", "Show warnings that are not accompanied by errors in a compact form."),
		option("-consolidate-warnings=false", "Show every warning, also where several are alike."),
		option("-consolidate-errors", "Show of several errors that are alike only the first."),
		option("-concise", "Leave out the lines about progress."),
		option("-input=false", "Do not ask for input. Missing variables are errors then."),
		option("-lock=false", "Do not hold a state lock. This is dangerous if others might run commands on the same workspace at the same time."),
		option("-lock-timeout=0s", "How long to retry a state lock."),
		option("-no-color", "No color in the output."),
		option("-parallelism=n", "How many operations run at the same time. Defaults to 10."),
		option("-show-sensitive", "Show sensitive values."),
		option("-state=path", "A legacy option of the local backend: the state file."),
		option("-json", "Produce output in a machine-readable JSON format."),
		option("-json-into=path", "Write the machine-readable output to a file, besides the output for people."),
	}
}
