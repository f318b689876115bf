package cli

import (
	"context"
	"fmt"
)

func workspaceShowCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.workspaceArgs("workspace show", args, 0, nil)
	if !ok {
		return 1
	}
	return runWorkspaceShow(ctx, s, o)
}

func runWorkspaceShow(_ context.Context, s *session, _ *workspaceOptions) int {
	name, ds := s.workspaceName()
	if ds.HasErrors() {
		return s.fail(ds)
	}
	fmt.Fprintln(s.Stdout, name)
	return 0
}

func workspaceShowUsage() string {
	return workspaceHelp("show", "", "Show the name of the current workspace.")
}
