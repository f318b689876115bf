package sys

import (
	"os/exec"
	"syscall"
)

// EndWithUs makes the system kill a child that Prepare made when we end, even if we
// are killed ourselves. Linux looks at the thread that starts the child, not at
// the process: the caller must start it from a locked thread that stays until the
// child has ended.
func EndWithUs(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
