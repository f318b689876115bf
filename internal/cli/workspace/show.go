package workspace

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/internal/cli/command"
)

func runWorkspaceShow(_ context.Context, c *command.Call, _ *workspaceOptions) int {
	name, ds := c.Directory.Workspace()
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	fmt.Fprintln(c.Stdout, name)
	return 0
}
