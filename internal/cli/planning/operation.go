package planning

import (
	"context"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/remoterun"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/rounds"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// Flags are the flags of plan, apply, destroy, refresh and drift.
type Flags struct{ flags.Request }

// Options returns the options of the plan that the flags request.
func (o *Flags) Options(c *command.Call) (plan.Options, diag.List) {
	out := o.Plan
	if ds := o.checkReads(); ds.HasErrors() {
		return out, ds
	}
	switch {
	case o.Plan.Mode == plan.Destroy|plan.RefreshOnly:
		return out, diag.Errorf(diag.CodeCLIFlags, nil, "Incompatible plan mode options", "The -destroy and -refresh-only options are mutually-exclusive.")
	case o.Plan.Mode == plan.RefreshOnly && o.Plan.SkipRefresh:
		return out, diag.Errorf(diag.CodeCLIFlags, nil, "Incompatible refresh options", "It doesn't make sense to use -refresh-only at the same time as -refresh=false, because %s would have nothing to do.", view.Product)
	case o.Parallelism < 0:
		return out, diag.Errorf(diag.CodeCLIFlags, nil, "Invalid parallelism", "The -parallelism option needs a number from 1 on.")
	}
	if ds := rounds.CheckFlags(o.Rounds, o.RoundsAllow, o.Approved); ds.HasErrors() {
		return out, ds
	}
	ds := o.resolve(c, &out)
	if len(out.Replace)+len(out.ReplacePatterns) > 0 && out.Mode != plan.Normal {
		ds = append(ds, diag.Errorf(diag.CodeCLIFlags, nil, "Unsupported plan mode", "Forcing resource instance replacement (with -replace=...) is allowed only in normal planning mode.")...)
	}
	if o.Plan.GenerateTo != "" && out.Mode != plan.Normal {
		ds = append(ds, diag.Errorf(diag.CodeCLIFlags, nil, "Invalid generate-config-out flag", "Config can only be generated during a normal plan operation, and not during a refresh-only or destroy plan.")...)
	}
	return out, ds
}

// atService runs the operation at the service that the backend is configured for, if that
// service runs operations. done is false if the caller must run it here.
func atService(ctx context.Context, c *command.Call, o *Flags, q remoterun.Request) (code int, done bool) {
	if c.Unit != nil { // only this process has the inputs of a unit
		return 0, false
	}
	options, ds := o.Options(c)
	if ds.HasErrors() {
		return 0, false // start reports these errors
	}
	q.Vars, q.Plan, q.Input, q.Parallelism, q.LockTimeout = o.Vars, options, o.Input, o.Parallelism, o.State.Timeout
	q.Causes = options.Causes || options.AllOrigins || o.Origins != "" || o.Markdown.File != ""
	q.Defers = options.Defer
	q.ReadsLess = options.MinimalRefresh || options.MinimalData || options.RefreshMaxAge > 0
	return remoterun.Do(ctx, c, q)
}

// resolve parses the addresses of the flags into out.
func (o *Flags) resolve(c *command.Call, out *plan.Options) diag.List {
	var ds, more diag.List
	out.Targets, ds = targetsOf(c, "target", o.Scope.Targets, o.Scope.TargetFiles)
	out.Excludes, more = targetsOf(c, "exclude", o.Scope.Excludes, o.Scope.ExcludeFiles)
	ds = append(ds, more...)
	if len(out.Targets) > 0 && len(out.Excludes) > 0 {
		ds = append(ds, diag.Errorf(diag.CodeCLIFlags, nil, "Invalid combination of arguments", "The target and exclude planning options are mutually-exclusive. Each plan must use either only the target options or only the exclude options.")...)
	}
	for _, text := range o.Scope.Replace {
		t, err := addr.ParsePattern(text)
		what := ""
		switch {
		case err != nil:
			what = project.AsSentence(err)
		case t.Pattern != "" && t.IsModule():
			what = "A pattern must match resource instances, such as " + text + ".*.*, not modules."
		case t.IsModule():
			what = o.wholeModule(c.Report.Context, c, t)
		case t.Resource.Mode != addr.Managed:
			what = "Only managed resources can be used with the -replace=... option."
		}
		if what != "" {
			ds = append(ds, &diag.Message{Code: diag.CodeCLIReplaceAddress, Summary: fmt.Sprintf("Invalid force-replace address %q", text), Detail: what})
			continue
		}
		if t.Pattern != "" {
			out.ReplacePatterns = append(out.ReplacePatterns, t)
			continue
		}
		out.Replace = append(out.Replace, t.Instance())
	}
	return ds
}

// targetsOf parses the addresses in flags and in files, which contain one address per line.
func targetsOf(c *command.Call, what string, texts, files []string) ([]addr.Target, diag.List) {
	var out []addr.Target
	var ds diag.List
	parse := func(text, where string) {
		t, err := addr.ParsePattern(text)
		if err != nil {
			ds = append(ds, &diag.Message{Code: diag.CodeCLITarget, Summary: fmt.Sprintf("Invalid %s %q", what, text), Detail: where + project.AsSentence(err)})
			return
		}
		out = append(out, t)
	}
	for _, text := range texts {
		parse(text, "")
	}
	for _, name := range files {
		src, err := readfile.Given(c.Path(name))
		if err != nil {
			ds = append(ds, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read file of addresses", "The file of the -%s-file option cannot be read: %s.", what, err)...)
			continue
		}
		for i, line := range strings.Split(string(src), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				parse(line, fmt.Sprintf("In line %d of %s: ", i+1, name))
			}
		}
	}
	return out, ds
}

// A run is a plan or an apply in progress.
type run struct {
	*project.Project
	op      *workdir.Operation
	flags   *Flags
	options plan.Options
	backend *workdir.OpenedBackend
	what    string    // operation type in locks, such as "OperationTypePlan"
	said    diag.List // messages from the time when the directory was opened
}

// start loads the configuration for an operation. If there are errors, the run is nil.
// Otherwise the caller must close it.
func start(ctx context.Context, c *command.Call, o *Flags, name, what string) (*run, diag.List) {
	options, ds := o.Options(c)
	if ds.HasErrors() {
		return nil, ds
	}
	p, more := project.Load(ctx, c, workdir.LoadOptions{Vars: o.Vars, Input: o.Input, Parallelism: o.Parallelism})
	if ds = append(ds, more...); ds.HasErrors() {
		return nil, ds
	}
	if options.Mode != plan.Destroy && name != "refresh" && !config.IsConfigDir(c.Dir, config.Options{}) {
		p.Close()
		return nil, append(ds, noConfiguration(name)...)
	}
	b, more := p.Backend(ctx)
	if ds = append(ds, more...); more.HasErrors() {
		p.Close()
		return nil, ds
	}
	r := &run{Project: p, flags: o, options: options, backend: b, what: what, said: ds}
	r.ready()
	return r, nil
}

// ready creates the operation from the project, the flags and the unit.
func (r *run) ready() {
	reads := r.flags.reads(r.Call)
	r.op = r.Operation()
	r.op.Reads = &reads
	if r.Unit != nil {
		r.op.Moves = r.Unit.Moves()
	}
}

// do runs the operation. The messages for s.Planned, which may be nil, include those in
// r.said.
func (r *run) do(ctx context.Context, w workdir.Want, s workdir.Steps) (workdir.Done, diag.List) {
	s.Locked = func(ctx context.Context) (statemgr.Options, diag.List) {
		o, ds := r.Locked(ctx, r.backend, r.flags.State, r.what)
		return o, append(r.said, ds...)
	}
	if taken := s.Taken; w.Apply && r.Unit != nil {
		s.Taken = func(h *workdir.OpenState, po *plan.Options) diag.List {
			ds := r.Unit.Applying(ctx, r.backend.Config, r.Workspace)
			if taken != nil {
				ds = append(ds, taken(h, po)...)
			}
			return ds
		}
	}
	done, ds := r.op.Run(ctx, w, s)
	if !w.Apply || !w.Plan.Defer { // rounds may follow; the caller closes it in any case
		r.Close()
	}
	r.said = nil
	r.Report.Tell(done.Released)
	return done, ds
}

func noConfiguration(name string) diag.List {
	if name == "plan" {
		return diag.Errorf(diag.CodeEstateNoConfiguration, nil, "No configuration files", "Plan requires configuration to be present. Planning without a configuration would mark everything for destruction, which is normally not what is desired. If you would like to destroy everything, run plan with the -destroy option. Otherwise, create a %s configuration file (.tf file) and try again.", view.Product)
	}
	return diag.Errorf(diag.CodeEstateNoConfiguration, nil, "No configuration files", "Apply requires configuration to be present. Applying without a configuration would mark everything for destruction, which is normally not what is desired. If you would like to destroy everything, run \"%s destroy\" instead.", view.Program)
}

// showPlan prints a plan. It returns messages to report after the plan.
func (r *run) showPlan(ctx context.Context, p *plan.Plan) diag.List {
	sc := r.Schemas(ctx)
	if p != nil {
		if r.Report.Human != nil {
			_ = view.Plan(r.Stdout, r.Report.Human.Style, p, sc, r.flags.Reveal)
		}
		r.Report.Stream.Plan(p)
	}
	return sc.Ds
}
