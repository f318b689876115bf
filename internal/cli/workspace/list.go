package workspace

import (
	"context"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/command"
)

func runWorkspaceList(ctx context.Context, c *command.Call, o *workspaceOptions) int {
	w, ds := workspaces(ctx, c, o.vars)
	if w == nil {
		return c.Fail(ds)
	}
	c.Report.Tell(ds)
	if c.Report.Human != nil {
		for _, name := range w.names {
			mark := "  "
			if name == w.current {
				mark = "* "
			}
			fmt.Fprintln(c.Stdout, mark+name)
		}
		fmt.Fprintln(c.Stdout)
	}
	c.Report.Stream.Typed("list of workspaces", "workspace_list", map[string]any{"current_workspace": w.current, "workspaces": w.names})
	if c.Env.Get("TF_WORKSPACE") != "" {
		const said = "The active workspace is being overridden using the TF_WORKSPACE environment variable"
		c.Report.Human.Say("\n" + strings.Replace(said, "environment variable", "environment\nvariable.", 1) + "\n")
		c.Report.Stream.Log(said)
	}
	return 0
}
