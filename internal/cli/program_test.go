package cli_test

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
)

// A process for each command would be slower than most commands. So the tests run the program
// in the test process. .ci/run runs them in both ways.
var processes = flag.Bool("processes", false, "run the program as a process of its own in every test")

// With -processes, running some cases of each kind is enough to show that the answers are the
// same.
var every = flag.Int("every", 1, "with -processes, run one of so many scripts and cases")

// sampled reports whether a case of many runs.
func sampled(at int) bool { return !*processes || at%*every == 0 }

// runProgram runs the program in a directory with an environment and input, and returns its
// exit status.
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
		Sleep: impatience(ctx),
		Dir:   dir, Env: sys.Env(env), Args: append([]string{"terrace"}, args...),
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Now: time.Now,
		Run: children.Run, EndChildren: children.End,
		Terminal:   sys.Terminal{Width: func() int { return 0 }, Height: func() int { return 0 }},
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
		Executable: func() (string, error) { return bin, nil },
		Host:       func() string { return "host" },
		User:       func() string { return "user" },
	}), nil
}

// impatient returns a context in which stores retry after a hundredth of their usual pauses.
// It has no effect on other processes.
func impatient(ctx context.Context) context.Context {
	return context.WithValue(ctx, impatientKey{}, true)
}

// counting is impatient, and counts the pauses.
func counting(ctx context.Context, pauses *atomic.Int32) context.Context {
	return context.WithValue(ctx, impatientKey{}, pauses)
}

type impatientKey struct{}

func impatience(ctx context.Context) func(context.Context, time.Duration) error {
	if ctx.Value(impatientKey{}) == nil {
		return nil
	}
	pauses, counted := ctx.Value(impatientKey{}).(*atomic.Int32)
	return func(ctx context.Context, d time.Duration) error {
		if counted {
			pauses.Add(1)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d / 100):
			return nil
		}
	}
}

// combined returns the output of the program on both streams.
func combined(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	var out sys.Buffer
	if _, err := runProgram(t.Context(), dir, env, strings.NewReader(""), &out, &out, args...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// terrace is the script command that runs the program. Scripts use "exec terrace" for a
// process: to write to its input, run it concurrently, interrupt it, or make it trust a
// certificate (a process reads SSL_CERT_FILE once).
func terrace(ts *testscript.TestScript, neg bool, args []string) {
	if n := len(args); n > 0 && strings.HasSuffix(args[n-1], "&") {
		ts.Fatalf("what runs beside others is a process: exec terrace")
	}
	var failed bool
	if *processes || ts.Getenv(onVariable) != "" { // its worker is a process too
		failed = ts.Exec("terrace", args...) != nil
	} else {
		code, err := runProgram(context.Background(), ts.MkAbs("."), environment(ts), strings.NewReader(""), ts.Stdout(), ts.Stderr(), args...)
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

// environment returns the environment of a script. testscript only returns single variables by
// name, and a process that prints all variables would take as long as a short command.
func environment(ts *testscript.TestScript) []string {
	field := reflect.ValueOf(ts).Elem().FieldByName("env")
	var env []string
	set := map[string]bool{"PWD": true}
	for i := field.Len() - 1; i >= 0; i-- { // the last setting of a variable counts
		pair := field.Index(i).String()
		if name, _, _ := strings.Cut(pair, "="); !set[name] {
			set[name] = true
			env = append(env, pair)
		}
	}
	return append(env, "PWD="+ts.MkAbs("."))
}

// withProgram makes "terrace" a command of scripts, and adds the program to PATH. With
// testscript.Main, only "exec" would start the program.
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
