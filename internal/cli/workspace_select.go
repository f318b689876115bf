package cli

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/store"
)

func workspaceSelectCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.workspaceArgs("workspace select", args, 1, func(o *workspaceOptions) {
		o.flags.BoolVar(&o.orCreate, "or-create", false, "")
	})
	if !ok {
		return 1
	}
	defer s.finish()
	return runWorkspaceSelect(ctx, s, o)
}

func runWorkspaceSelect(ctx context.Context, s *session, o *workspaceOptions) int {
	if ds := s.overridden(); len(ds) > 0 {
		return s.fail(ds)
	}
	if !store.ValidWorkspace(o.name) {
		return s.fail(invalidWorkspace(o.name))
	}
	w, ds := s.workspaces(ctx, o.vars)
	if w == nil {
		return s.fail(ds)
	}
	switch {
	case o.name == w.current:
		return s.status(ds)
	case w.has(o.name):
	case o.orCreate:
		return s.status(append(ds, w.create(ctx, o)...))
	default:
		return s.fail(append(ds, diag.Errorf(nil, fmt.Sprintf("Workspace %q doesn't exist", o.name), "You can create this workspace with the \"new\" subcommand or include the \"-or-create\" flag with the \"select\" subcommand.")...))
	}
	if more := s.selectWorkspace(o.name); more.HasErrors() {
		return s.fail(append(ds, more...))
	}
	s.human.Good("Switched to workspace \"" + o.name + "\".")
	s.human.Say("\n")
	s.stream.Log("Switched to workspace \"" + o.name + "\".")
	return s.status(ds)
}

func workspaceSelectUsage() string {
	return workspaceHelp("select", " [options] NAME", "Select a different "+view.Product+" workspace.", option("-or-create=false", "Create the workspace if it doesn't exist."))
}
