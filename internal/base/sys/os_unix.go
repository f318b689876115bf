//go:build unix

package sys

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// hasTerminal reports whether our process group is the terminal's foreground group. If it
// is not, a child in our group would gain nothing, and its own children could not be ended.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// signalGroup interrupts or kills the child's process group, or only the child if it is in
// our group. A process that has already ended is no error.
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

// processExists reports whether a process runs. On Linux, a process that has ended does not count even
// before its parent has waited for it: in a container, nothing may ever wait for it.
func processExists(process int) bool {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process)); err == nil {
		_, after, _ := strings.Cut(string(b[bytes.LastIndexByte(b, ')')+1:]), " ") // the name may contain anything
		return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
	}
	err := syscall.Kill(process, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// replace replaces this process with a command.
func replace(cmd *exec.Cmd) error {
	if err := syscall.Chdir(cmd.Dir); err != nil {
		return err
	}
	return syscall.Exec(cmd.Path, cmd.Args, cmd.Env)
}

func suffixes(string, Env) []string { return []string{""} }

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// surviveBrokenPipes lets a write to a closed pipe fail instead of ending the process. It
// catches SIGPIPE: children would inherit an ignored signal.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// resized returns a channel that receives a signal when the size of the terminal changes.
func resized() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
