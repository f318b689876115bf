//go:build unix

package sys

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// hasTerminal reports whether our process group is the one that the terminal listens to.
// What is typed there reaches this group; without that, a child in our group would only be
// one whose own children nobody can end.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

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

// replace makes this process that of a command.
func replace(cmd *exec.Cmd) error {
	if err := syscall.Chdir(cmd.Dir); err != nil {
		return err
	}
	return syscall.Exec(cmd.Path, cmd.Args, cmd.Env)
}

func suffixes(string, Env) []string { return []string{""} }

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// surviveBrokenPipes has writes to a pipe that nobody reads fail, instead of ending the
// process. It catches the signal: one that is ignored would be so in children, too.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// resized starts to deliver a signal when the terminal has another size.
func resized() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
