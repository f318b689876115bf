package cli

import (
	"context"
	"flag"
	"fmt"

	"github.com/terrace-iac/terrace/internal/cli/vars"
)

// workspaceOptions are the flags of the commands on workspaces.
type workspaceOptions struct {
	flags    *flag.FlagSet
	name     string
	vars     []vars.Flag
	json     jsonFlags
	lock     lockFlags
	state    string
	force    bool
	orCreate bool
}

func workspaceListCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.workspaceArgs("workspace list", args, 0, nil)
	if !ok {
		return 1
	}
	defer s.finish()
	return runWorkspaceList(ctx, s, o)
}

func runWorkspaceList(ctx context.Context, s *session, o *workspaceOptions) int {
	w, ds := s.workspaces(ctx, o.vars)
	if w == nil {
		return s.fail(ds)
	}
	s.tell(ds)
	if s.human != nil {
		for _, name := range w.names {
			mark := "  "
			if name == w.current {
				mark = "* "
			}
			fmt.Fprintln(s.Stdout, mark+name)
		}
		fmt.Fprintln(s.Stdout)
	}
	s.stream.Typed("list of workspaces", "workspace_list", map[string]any{"current_workspace": w.current, "workspaces": w.names})
	return 0
}

func workspaceListUsage() string {
	return workspaceHelp("list", " [options]", "List workspaces.", option("-json", "Produce output in a machine-readable JSON format."))
}
