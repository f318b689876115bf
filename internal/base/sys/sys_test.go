//go:build unix

package sys

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReal(t *testing.T) {
	s, err := Real()
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(s.Dir) || len(s.Env) == 0 || s.Now().IsZero() || len(s.Args) == 0 {
		t.Errorf("incomplete: dir %q, %d variables, %d args", s.Dir, len(s.Env), len(s.Args))
	}
	if s.Terminal.Width() < 0 {
		t.Error("negative width")
	}
	if host, _ := os.Hostname(); s.Host() != host {
		t.Errorf("host %q, want %q", s.Host(), host)
	}
	c, stop := s.Interrupts()
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case sig := <-c:
		if sig != os.Interrupt {
			t.Errorf("got %v", sig)
		}
	case <-time.After(time.Minute):
		t.Error("the interrupt did not arrive")
	}
}

func TestPaths(t *testing.T) {
	for in, want := range map[string]string{"c": "/a/b/c", "../c": "/a/c", "/x/../y": "/y", ".": "/a/b", "": "/a/b"} {
		if got := Join("/a/b", in); got != want {
			t.Errorf("Join(%q) = %q, want %q", in, got, want)
		}
	}
	if got := (Env{"HOME=/home/u"}).Home(); got != "/home/u" {
		t.Errorf("home %q", got)
	}
}

func TestEnv(t *testing.T) {
	e := Env{"A=1", "AB=2", "A=3", "EMPTY=", "EQ=x=y"}
	for name, want := range map[string]string{"A": "3", "AB": "2", "EMPTY": "", "EQ": "x=y", "NONE": "", "": ""} {
		if got := e.Get(name); got != want {
			t.Errorf("Get(%q) = %q, want %q", name, got, want)
		}
	}
	if _, ok := e.Lookup("EMPTY"); !ok {
		t.Error("a variable that is empty counts as not set")
	}
	if _, ok := e.Lookup("NONE"); ok {
		t.Error("a variable that is not there counts as set")
	}
	if diff := cmp.Diff(Env{"AB=2", "EMPTY=", "EQ=x=y", "A=9", "N=1"}, e.With("A=9", "N=1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Env{"AB=2", "EQ=x=y"}, e.Without("A", "EMPTY")); diff != "" {
		t.Error(diff)
	}
	if e.Get("A") != "3" || len(e) != 5 {
		t.Error("With or Without changed the environment in place")
	}
}

// sh returns a command that runs a shell script.
func sh(t *testing.T, script string) Command {
	t.Helper()
	return Command{Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir(), Env: Env{"PATH=/usr/bin:/bin"}}
}

func TestRun(t *testing.T) {
	c := sh(t, `cat; echo "$X in $(pwd)"; echo oops >&2; exit 3`)
	c.Dir, _ = filepath.EvalSymlinks(c.Dir)
	c.Env = c.Env.With("X=value")
	c.Stdin = strings.NewReader("typed\n")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := Run(t.Context(), c)
	if code, ok := ExitCode(err); code != 3 || !ok {
		t.Errorf("exit code %d, %v (%v)", code, ok, err)
	}
	if want := "typed\nvalue in " + c.Dir + "\n"; out.String() != want {
		t.Errorf("stdout %q, want %q", out.String(), want)
	}
	if errs.String() != "oops\n" {
		t.Errorf("stderr %q", errs.String())
	}
}

func TestRunGivesNothingAway(t *testing.T) {
	t.Setenv("TERRACE_LEAK", "1")
	c := sh(t, `echo "[$TERRACE_LEAK]"`)
	var out bytes.Buffer
	c.Env, c.Stdout = nil, &out
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if out.String() != "[]\n" {
		t.Errorf("the child saw our own environment: %q", out.String())
	}
}

func TestRunKeepsOrderOfLines(t *testing.T) {
	c := sh(t, `for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done`)
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n"; both.String() != want {
		t.Errorf("got %q", both.String())
	}
}

// values is a writer whose type is not comparable.
type values []func([]byte)

func (v values) Write(p []byte) (int, error) { v[0](p); return len(p), nil }

func TestRunWithWritersThatCannotBeCompared(t *testing.T) {
	var got bytes.Buffer
	w := values{func(p []byte) { got.Write(p) }}
	c := sh(t, "echo x")
	c.Stdout, c.Stderr = w, w
	if err := Run(t.Context(), c); err != nil || got.String() != "x\n" {
		t.Errorf("got %q, %v", got.String(), err)
	}
}

// failing is a writer whose writes fail.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestRunWithFailingWriterDoesNotBlockTheChild(t *testing.T) {
	c := sh(t, "i=0; while [ $i -lt 5000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; exit 4")
	c.Stdout = failing{}
	if code, ok := ExitCode(Run(t.Context(), c)); code != 4 || !ok {
		t.Errorf("exit code %d, %v", code, ok)
	}
}

func TestRunWithBlockingInput(t *testing.T) {
	r, w := io.Pipe() // never written to
	defer w.Close()
	c := sh(t, "echo done")
	c.Stdin = r
	start := time.Now()
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("took %v", d)
	}
}

func TestRunInterrupted(t *testing.T) {
	tests := []struct {
		name, script string
		grace        time.Duration
		want         string // the expected output of the child after "ready"
	}{
		{"ends by itself", `trap 'echo bye; exit 0' INT; echo ready; while :; do sleep 0.02; done`, time.Hour, "bye\n"},
		{"killed after grace", `trap '' INT; echo ready; while :; do sleep 0.02; done`, 50 * time.Millisecond, ""},
		{"killed at once", `trap 'echo bye; exit 0' INT; echo ready; while :; do sleep 0.02; done`, -1, ""},
	}
	// Background processes of a shell ignore interrupts, and so do their children, unless
	// they install a handler, as this program does.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt)
	defer signal.Stop(heard)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c := sh(t, tt.script)
			c.Grace = tt.grace
			var out bytes.Buffer
			c.Stdout = writerFunc(func(p []byte) (int, error) {
				if out.Len() == 0 {
					cancel()
				}
				return out.Write(p)
			})
			start := time.Now()
			err := Run(ctx, c)
			if d := time.Since(start); d > time.Minute {
				t.Errorf("took %v", d)
			}
			if got := strings.TrimPrefix(out.String(), "ready\n"); got != tt.want {
				t.Errorf("the child printed %q, want %q", got, tt.want)
			}
			if tt.want == "" && !errors.Is(err, ErrInterrupted) {
				t.Errorf("error %v", err)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRunKillsGrandchildren(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := sh(t, `sleep 600 & echo $!; wait`)
	c.Grace = -1
	var out bytes.Buffer
	c.Stdout = writerFunc(func(p []byte) (int, error) { defer cancel(); return out.Write(p) })
	if err := Run(ctx, c); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("error %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	for range 6000 { // init may take some time to reap the orphan
		if !alive(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}

// alive reports whether a process is running. A zombie is not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		return syscall.Kill(pid, 0) == nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestRunDoesNotWaitForStraysAfterKill(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := sh(t, `setsid sh -c 'echo $$; exec sleep 600' & wait`) // the grandchild leaves the process group and holds the pipe
	c.Grace = -1
	var out bytes.Buffer
	c.Stdout = writerFunc(func(p []byte) (int, error) { defer cancel(); return out.Write(p) })
	start := time.Now()
	if err := Run(ctx, c); !errors.Is(err, ErrInterrupted) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("took %v", d)
	}
	stray, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(stray, syscall.SIGKILL); err != nil {
		t.Errorf("the stray: %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ended, sh(t, "true")); !errors.Is(err, ErrInterrupted) || !errors.Is(err, context.Canceled) {
		t.Errorf("context that has ended: %v", err)
	}
	if err := Run(t.Context(), Command{Path: "/bin/true"}); err == nil || !strings.Contains(err.Error(), "working directory") {
		t.Errorf("no directory: %v", err)
	}
	if err := Run(t.Context(), Command{Path: "no-such-program", Dir: "/"}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("no program: %v", err)
	}
	if code, ok := ExitCode(errors.New("other")); ok {
		t.Errorf("an exit code %d from an error of ours", code)
	}
	if code, ok := ExitCode(nil); !ok || code != 0 {
		t.Errorf("success is %d, %v", code, ok)
	}
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/tool": 0o755, "bin/data": 0o644, "other/tool": 0o755, "other/data": 0o755} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	env := Env{"PATH=:.:bin:" + dir + "/bin:" + dir + "/other"}
	tests := map[string]string{
		"tool":              dir + "/bin/tool",
		"data":              dir + "/other/data", // the first file of that name is not executable
		"./bin/tool":        dir + "/bin/tool",
		dir + "/bin/tool":   dir + "/bin/tool",
		"bin/data":          "",
		"./tool":            "",
		"none":              "",
		"":                  "",
		filepath.Dir(dir):   "",
		"../" + "none/tool": "",
	}
	for name, want := range tests {
		got, err := LookPath(name, dir, env)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("LookPath(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestFake(t *testing.T) {
	f := Test("/d", "A=1")
	io.WriteString(f.Stdout, "out")
	io.WriteString(f.Stderr, "err")
	if f.Out.String() != "out" || f.Err.String() != "err" {
		t.Errorf("kept %q and %q", f.Out, f.Err)
	}
	c, stop := f.Interrupts()
	defer stop()
	f.Interrupt()
	if sig := <-c; sig != os.Interrupt {
		t.Errorf("signal %v", sig)
	}
	if f.Env.Get("A") != "1" || f.Terminal.Out || !f.Now().Equal(f.Now()) {
		t.Error("not as promised")
	}
	if NoChildren(t.Context(), Command{}) == nil {
		t.Error("a child was started")
	}
}
