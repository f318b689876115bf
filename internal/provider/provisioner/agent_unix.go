//go:build !windows

package provisioner

import (
	"context"
	"io"
)

// openAgent connects to the agent's socket in the environment. It returns nil if there is
// none.
func openAgent(ctx context.Context, r Request) (io.ReadWriteCloser, error) {
	socket := r.Env.Get("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, nil
	}
	return r.Dial(ctx, "unix", socket)
}
