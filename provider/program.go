package provider

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
)

// A ProgramSource returns the programs of providers, so that several engines can share the processes. The
// Program of a provider that must not be shared has no Path.
type ProgramSource interface {
	// Program returns the program of a provider, or an error if the provider is not available.
	Program(context.Context, addr.Provider) (Program, diag.List)
}

// A Program is the executable of a provider, with its complete environment and its working directory.
type Program struct {
	Path string // identifies the executable: two different executables never have the same Path
	Env  []string
	Dir  string
	// Outside means that another program has started the process, such as a debugger. There is only
	// one process, for any environment, directory and configuration.
	Outside bool
	// Schema returns the schema of the program if it is known without a process, and nil otherwise.
	// A nil function means that it is never known.
	Schema func() *schema.Provider
	// Start starts the program in a working directory.
	Start func(ctx context.Context, dir string) (Provider, diag.List)
}
