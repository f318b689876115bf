package sys

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func hasTerminal() bool { return true }

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalGroup kills the child: Windows has no interrupt for other processes.
func signalGroup(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }

// processExists reports whether a process runs.
func processExists(process int) bool {
	p, err := os.FindProcess(process) // opens it, which fails after its end
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}

// replace returns an error: Windows cannot replace a process.
func replace(*exec.Cmd) error { return errors.ErrUnsupported }

func suffixes(path string, env Env) []string {
	if filepath.Ext(path) != "" {
		return []string{""}
	}
	list := env.Get("PATHEXT")
	if list == "" {
		list = ".com;.exe;.bat;.cmd"
	}
	return strings.Split(list, ";")
}

func executable(fs.FileInfo) bool { return true }

const errNoData = syscall.Errno(232) // ERROR_NO_DATA: the pipe is being closed

func brokenPipe(err error) bool {
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, errNoData)
}

func surviveBrokenPipes() {} // Windows has no SIGPIPE

func resized() (<-chan os.Signal, func()) { return nil, func() {} }
