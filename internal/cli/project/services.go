package project

import (
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
)

// Files are the configuration files of the working folder as they are now, for
// steps that share what is loaded from them.
func Files(c *command.Call) *engine.Sources { return c.NewSources() }
