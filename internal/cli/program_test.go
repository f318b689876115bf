package cli_test

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/sys"
)

// Starting the program as a process takes longer than most commands. So tests that run
// thousands of commands run them in their own process, and .ci/run does it both ways.
var processes = flag.Bool("processes", false, "run the program as a process of its own in every test")

// runProgram runs the program in a folder, with an environment and what it reads, and
// returns its exit code.
func runProgram(ctx context.Context, dir string, env []string, stdin io.Reader, stdout, stderr io.Writer, args ...string) (int, error) {
	bin, err := exec.LookPath("terrace")
	if err != nil {
		return 0, err
	}
	if *processes {
		c := exec.CommandContext(ctx, bin, args...)
		c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr = dir, env, stdin, stdout, stderr
		err := c.Run()
		if code, ok := sys.ExitCode(err); ok {
			return code, nil
		}
		return 0, err
	}
	children := new(sys.Children)
	defer children.End()
	return cli.Main(ctx, &sys.System{
		Dir: dir, Env: sys.Env(env), Args: append([]string{"terrace"}, args...),
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Now: time.Now,
		Run: children.Run, EndChildren: children.End,
		Terminal:   sys.Terminal{Width: func() int { return 0 }, Height: func() int { return 0 }},
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
		Executable: func() (string, error) { return bin, nil },
		Host:       func() string { return "host" },
		User:       func() string { return "user" },
	}), nil
}

// combined is what the program prints on both streams.
func combined(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	var out sys.Buffer
	if _, err := runProgram(t.Context(), dir, env, strings.NewReader(""), &out, &out, args...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// terrace is the command of scripts that runs the program; "exec terrace" starts a
// process, for scripts that have it read something, run beside others, be interrupted, or
// trust a server's certificate (SSL_CERT_FILE is read once in a process).
func terrace(ts *testscript.TestScript, neg bool, args []string) {
	if n := len(args); n > 0 && strings.HasSuffix(args[n-1], "&") {
		ts.Fatalf("what runs beside others is a process: exec terrace")
	}
	var failed bool
	if *processes || ts.Getenv(onVariable) != "" { // whose worker is a process, too
		failed = ts.Exec("terrace", args...) != nil
	} else {
		// There is no other way to learn the environment of a script.
		names, err := os.CreateTemp("", "environment")
		ts.Check(err)
		ts.Check(names.Close())
		defer os.Remove(names.Name())
		ts.Check(ts.Exec("sh", "-c", `exec env -0 >"$0"`, names.Name()))
		env := strings.Split(strings.TrimSuffix(ts.ReadFile(names.Name()), "\x00"), "\x00")
		code, err := runProgram(context.Background(), ts.MkAbs("."), env, strings.NewReader(""), ts.Stdout(), ts.Stderr(), args...)
		ts.Check(err)
		if failed = code != 0; failed {
			ts.Logf("[exit status %d]", code)
		}
	}
	if failed && !neg {
		ts.Fatalf("unexpected command failure")
	}
	if !failed && neg {
		ts.Fatalf("unexpected command success")
	}
}

// withProgram lets the name "terrace" be a command of scripts, and the program on PATH
// besides: what testscript.Main puts there is started by "exec" alone.
type withProgram struct{ *testing.M }

const programFile = "terrace-program"

func (m withProgram) Run() int {
	bin, err := exec.LookPath(programFile)
	if err == nil {
		err = os.Rename(bin, filepath.Join(filepath.Dir(bin), strings.Replace(filepath.Base(bin), programFile, "terrace", 1)))
	}
	if err != nil {
		panic(err)
	}
	return m.M.Run()
}
