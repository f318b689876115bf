package units

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
)

// Phase runs a step in the directory of a unit, within a telemetry span. Terragrunt runs a
// program for such a step, so the span has the attributes of a program.
func Phase(ctx context.Context, c *command.Call, what, dir string, run func(context.Context) int) int {
	ctx, span := telemetry.Start(ctx, "run_"+view.Program)
	if span == nil {
		return run(ctx)
	}
	defer span.End()
	span.Text("binary", view.Program).Text("args", "["+what+"]").Text("dir", dir)
	code := run(ctx)
	Ended(span, code)
	return code
}

// Ended records the exit status of a command. Status 2 means changes, not a failure.
func Ended(span *telemetry.Span, code int) {
	span.OutcomeCount("exit_code", code)
	if code != 0 && code != 2 {
		span.Fail("exit", fmt.Sprintf("the command ended with the status %d", code))
	}
}

// Open opens the units that a command is about, within a telemetry span.
func Open(ctx context.Context, c *command.Call, o estate.Options) (*estate.Estate, diag.List) {
	c.Report.Units = true
	return open(ctx, c, o)
}

// open is Open for callers that open several estates at once.
func open(ctx context.Context, c *command.Call, o estate.Options) (*estate.Estate, diag.List) {
	name := "runner_pool_discovery"
	if c.Command.Name == "find" || c.Command.Name == "list" {
		name = c.Command.Name + "_discover"
	}
	ctx, span := telemetry.Start(ctx, name)
	span.Text("working_dir", o.Discovery.Root).Text("terraform_command", o.Request.Command)
	e, ds := estate.Open(ctx, o)
	span.OutcomeCount("component_count", len(e.Found.Units))
	span.Messages(ds)
	span.End()
	return e, ds
}

// OpenUnit opens the estate of one unit; see estate.OpenUnit.
func OpenUnit(ctx context.Context, c *command.Call, o estate.Options, path, module string) (*estate.Estate, *estate.Unit, diag.List) {
	c.Report.Units = true
	return estate.OpenUnit(ctx, o, path, module)
}
