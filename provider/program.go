package provider

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
)

// A ProgramSource is a source that tells what its providers run as. The Program of a
// provider that must not be shared has no Path.
type ProgramSource interface {
	Program(context.Context, addr.Provider) (Program, diag.List)
}

// A Program is what a provider runs as. Env and Dir are its complete environment
// and its working directory.
type Program struct {
	Path string // names the binary, the same for two only if it is the same
	Env  []string
	Dir  string
	// Outside says that the process is not ours: it is there already, and there is
	// one, whatever the environment, the directory and the configuration are.
	Outside bool
	// Start starts it in a directory.
	Start func(ctx context.Context, dir string) (Provider, diag.List)
}
