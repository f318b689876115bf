package project

import (
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
)

// SelectWorkspace makes a workspace the selected one.
func SelectWorkspace(c *command.Call, name string) diag.List {
	return c.Directory.SelectWorkspace(name)
}
