package workspace

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
)

func runWorkspaceSelect(ctx context.Context, c *command.Call, o *workspaceOptions) int {
	if ds := overridden(c); len(ds) > 0 {
		return c.Fail(ds)
	}
	if !store.ValidWorkspace(o.name) {
		return c.Fail(workdir.InvalidWorkspace(o.name))
	}
	w, ds := workspaces(ctx, c, o.vars)
	if w == nil {
		return c.Fail(ds)
	}
	switch {
	case o.name == w.current:
		return c.Report.Status(ds)
	case w.has(o.name):
	case o.orCreate:
		return c.Report.Status(append(ds, w.create(ctx, o)...))
	default:
		return c.Fail(append(ds, w.unknown(o.name)...))
	}
	if more := c.SelectWorkspace(o.name); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	c.Report.Human.Good("Switched to workspace \"" + o.name + "\".")
	c.Report.Human.Say("\n")
	c.Report.Stream.Log("Switched to workspace \"" + o.name + "\"")
	return c.Report.Status(ds)
}
