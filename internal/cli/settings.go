package cli

import (
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cliconfig"
)

// settings reads the user's CLI configuration.
func settings(c *command.Call) (*cliconfig.Config, diag.List) {
	return cliconfig.Load(c.Env, c.Home(), c.Launch)
}
