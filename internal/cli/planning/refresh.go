package planning

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/remoterun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
)

// Refresh declares the command refresh.
func Refresh() command.Command {
	return command.Command{
		Name: "refresh", Synopsis: "Update the state to match remote systems", Usage: "[options]",
		Uses:  command.State | command.Providers | command.Applies,
		Units: command.InUnit | command.NeedsInputs,
		Help: `Update the state file of your infrastructure with metadata that matches the
physical resources they are tracking.

This will not modify your infrastructure, but it can modify your state file
to update metadata. This metadata might cause new changes to occur when you
generate a plan or call apply next.`,
		Prepare: func() (flag.Flags, command.Run) {
			o := &refreshOptions{}
			return append(o.Planning(true), o.State.WriteFlags().Hide()...), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "Expected no positional arguments.")
				}
				if !o.Json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return runRefresh(ctx, c, o)
			}
		},
	}
}

type refreshOptions struct{ Flags }

// runRefresh updates the state from the real objects. It is a refresh-only plan that is
// applied without approval.
func runRefresh(ctx context.Context, c *command.Call, o *refreshOptions) int {
	o.Plan.Mode, o.Plan.SkipRefresh = plan.RefreshOnly, false
	if code, done := atService(ctx, c, &o.Flags, remoterun.Request{Command: "refresh", Approved: true}); done {
		return code
	}
	r, ds := start(ctx, c, &o.Flags, "refresh", "OperationTypeRefresh")
	if r == nil {
		return c.Fail(ds)
	}
	defer r.Close()
	done, ds := r.do(ctx, workdir.Want{Plan: r.options, Apply: true, Lenient: true}, workdir.Steps{
		Taken: func(h *workdir.OpenState, _ *plan.Options) diag.List {
			if !h.Current().Empty() {
				return nil
			}
			return diag.Warnf(diag.CodeStateNone, nil, "Empty or non-existent state", "There are currently no remote objects tracked in the state, so there is nothing to refresh.")
		},
		Applying: func(*plan.Plan) { r.Report.Applying() },
	})
	if c.Report.Tell(ds); !done.Applied {
		return 1
	}
	r.outputs(done.State, o.Reveal)
	r.Report.Stream.Outputs(done.State.Outputs)
	return 0
}
