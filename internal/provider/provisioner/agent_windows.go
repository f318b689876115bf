package provisioner

import (
	"cmp"
	"context"
	"io"
	"os"
)

// openAgent opens the agent's pipe: the one in the environment, or that of OpenSSH.
func openAgent(_ context.Context, r Request) (io.ReadWriteCloser, error) {
	f, err := os.OpenFile(cmp.Or(r.Env.Get("SSH_AUTH_SOCK"), `\\.\pipe\openssh-ssh-agent`), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}
