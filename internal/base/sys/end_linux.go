package sys

import (
	"os/exec"
	"syscall"
)

// EndWithUs lets the system kill a child from Prepare when this process ends, also if it
// is killed. Linux binds the child to the thread that starts it: the caller must start it
// from a locked thread that exists until the child has ended.
func EndWithUs(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
