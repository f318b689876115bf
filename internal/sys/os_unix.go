//go:build unix

package sys

import (
	"io/fs"
	"os/exec"
	"syscall"
)

// homeVars are the variables that may name the home folder.
var homeVars = []string{"HOME"}

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup interrupts or kills the child's group, or the child alone if it
// shares ours. A process that is gone already is no error.
func signalGroup(cmd *exec.Cmd, kill bool) {
	sig := syscall.SIGINT
	if kill {
		sig = syscall.SIGKILL
	}
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid {
		_ = syscall.Kill(-cmd.Process.Pid, sig)
		return
	}
	_ = cmd.Process.Signal(sig)
}

func suffixes(string, Env) []string { return []string{""} }

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }
