package provisioner

import (
	"cmp"
	"context"
	"io"
	"os"
)

// openAgent opens the pipe of the agent: the one that the environment names, or that of OpenSSH.
func openAgent(_ context.Context, r Request) (io.ReadWriteCloser, error) {
	f, err := os.OpenFile(cmp.Or(r.Env.Get("SSH_AUTH_SOCK"), `\\.\pipe\openssh-ssh-agent`), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}
