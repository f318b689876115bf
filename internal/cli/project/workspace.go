package project

import (
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/backend/workdir"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// WorkspaceName is the selected workspace: TF_WORKSPACE, else what the data
// folder says, else the default one.
func WorkspaceName(c *command.Call) (string, diag.List) {
	name, err := workdir.Workspace(c.Env, c.DataPath())
	if err != nil {
		return "", diag.Errorf(nil, "Failed to read the selected workspace", "The file that names the selected workspace cannot be read: %s.", err)
	}
	if !store.ValidWorkspace(name) {
		return "", InvalidWorkspace(name)
	}
	return name, nil
}

func InvalidWorkspace(name string) diag.List {
	return diag.Errorf(nil, "Invalid workspace name", "The workspace name %q is not allowed. The name must contain only URL safe characters, and no path separators.", name)
}

// SelectWorkspace makes a workspace the selected one.
func SelectWorkspace(c *command.Call, name string) diag.List {
	err := os.MkdirAll(c.DataPath(), 0o777)
	if err == nil {
		err = atomicfile.WriteUnlinked(c.DataPath("environment"), []byte(name), 0o644)
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to select workspace", "The selected workspace cannot be recorded: %s.", err)
	}
	return nil
}
