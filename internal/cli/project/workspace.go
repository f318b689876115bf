package project

import (
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
)

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
