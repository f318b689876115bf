package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// outputInError is the maximum length, in bytes, of a command's output in an error.
const outputInError = 8 << 10

// localExec runs a command on this machine.
func localExec(ctx context.Context, r Request) error {
	a := attrs(r.Config)
	command := a.text("command")
	argv := a.list("interpreter")
	if len(argv) == 0 {
		argv = shell()
	}
	argv = append(slices.Clip(argv), command)

	if a.flag("quiet", false) {
		r.Output("local-exec: Executing: Suppressed by quiet=true")
	} else {
		r.Output(fmt.Sprintf("Executing: %q", argv))
	}
	dir := within(r.Dir, a.text("working_dir"))
	if _, err := os.Stat(dir); err != nil { // otherwise the operating system's error would name the program
		return commandError(command, fmt.Errorf("working directory: %w", err), "")
	}
	lines, last := newLiner(r.Output), &tail{n: outputInError}
	out := io.MultiWriter(lines, last)
	err := r.Exec(ctx, sys.Command{
		Path:   argv[0],
		Args:   argv[1:],
		Dir:    dir,
		Env:    environment(r.Env, a.table("environment")),
		Stdout: out,
		Stderr: out,
	})
	lines.close()
	if err == nil {
		return nil
	}
	return commandError(command, ended{err}, last.String())
}

// ended is the exit status of a command that was interrupted, such as "signal: interrupt".
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }

func (e ended) Error() string {
	if !errors.Is(e.error, sys.ErrInterrupted) {
		return e.error.Error()
	}
	var exit *exec.ExitError
	if errors.As(e.error, &exit) {
		return exit.Error()
	}
	return sys.ErrInterrupted.Error()
}

// commandError returns an error with OpenTofu's text, which users search for.
func commandError(command string, err error, output string) error {
	return fmt.Errorf("Error running command '%s': %w. Output: %s", command, err, output) //nolint:staticcheck // as above
}

func shell() []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C"}
	}
	return []string{"/bin/sh", "-c"}
}

// within returns an absolute path. Relative ones are resolved from dir.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	joined := filepath.Join(dir, path)
	if strings.HasSuffix(path, "/") {
		joined += "/" // a trailing slash has a meaning, see copyFile
	}
	return joined
}

// environment adds the variables of the block, sorted by name.
func environment(base sys.Env, add map[string]string) sys.Env {
	if len(add) == 0 {
		return base
	}
	pairs := make([]string, 0, len(add))
	for name, value := range add {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return base.With(pairs...)
}
