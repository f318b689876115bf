package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Figures are the resources that one run of a binary used.
type Figures struct {
	Wall time.Duration
	CPU  time.Duration // of the process and of the children that it waited for
	Peak int64         // peak memory in bytes of the largest of these processes
}

// Operations returns the operations that Measure can time, in the order in which a
// directory usually goes through them.
func Operations() []string {
	return []string{"version", "init", "validate", "plan", "show", "apply", "noop", "destroy"}
}

// A Bench times one binary in a directory of its own.
type Bench struct {
	Binary string // absolute
	Dir    string // created by New
	Env    []string
}

// New creates a directory with a workload for a binary.
func New(ctx context.Context, binary, workload string, n int, dir string) (*Bench, error) {
	if err := Write(workload, n, dir); err != nil {
		return nil, err
	}
	b := &Bench{Binary: binary, Dir: dir}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "TERRACE_") {
			b.Env = append(b.Env, v)
		}
	}
	b.Env = append(b.Env, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_INPUT=0")
	_, err := b.run(ctx, "init", "-no-color")
	return b, err
}

// Measure times an operation once. Its prerequisites (state, a plan file) are created first
// and are not timed.
func (b *Bench) Measure(ctx context.Context, operation string) (Figures, error) {
	switch operation {
	case "version":
		return b.run(ctx, "version")
	case "init", "validate":
		return b.run(ctx, operation, "-no-color")
	case "plan":
		return b.from(ctx, false, "plan", "-no-color", "-out=bench.plan")
	case "show":
		if _, err := b.from(ctx, false, "plan", "-no-color", "-out=bench.plan"); err != nil {
			return Figures{}, err
		}
		return b.run(ctx, "show", "-json", "bench.plan")
	case "apply":
		return b.from(ctx, false, "apply", "-no-color", "-auto-approve")
	case "noop":
		return b.from(ctx, true, "plan", "-no-color")
	case "destroy":
		return b.from(ctx, true, "destroy", "-no-color", "-auto-approve")
	}
	return Figures{}, fmt.Errorf("there is no operation %q; those that there are: %s", operation, strings.Join(Operations(), ", "))
}

// from runs a command without state, or with the state of a complete apply.
func (b *Bench) from(ctx context.Context, applied bool, args ...string) (Figures, error) {
	state, kept := filepath.Join(b.Dir, "terraform.tfstate"), filepath.Join(b.Dir, "applied.keep")
	for _, old := range []string{state, state + ".backup", filepath.Join(b.Dir, "bench.plan")} {
		if err := os.RemoveAll(old); err != nil {
			return Figures{}, err
		}
	}
	if applied {
		if _, err := os.Stat(kept); err != nil {
			if _, err := b.run(ctx, "apply", "-no-color", "-auto-approve"); err != nil {
				return Figures{}, err
			}
			if err := os.Rename(state, kept); err != nil {
				return Figures{}, err
			}
		}
		if err := copyFile(kept, state); err != nil {
			return Figures{}, err
		}
	}
	return b.run(ctx, args...)
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		dst.Close()
		return err
	}
	return dst.Close()
}

func (b *Bench) run(ctx context.Context, args ...string) (Figures, error) {
	return Time(ctx, b.Dir, b.Env, b.Binary, args...)
}

// Time runs a program in a directory and returns what it used. env is the whole environment,
// nil for that of this process.
func Time(ctx context.Context, dir string, env []string, program string, args ...string) (Figures, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	start := time.Now()
	err := cmd.Run()
	f := Figures{Wall: time.Since(start)}
	if s := cmd.ProcessState; s != nil {
		f.CPU = s.UserTime() + s.SystemTime()
		if u, ok := s.SysUsage().(*syscall.Rusage); ok {
			f.Peak = peak(u)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, tail(errs.String(), 2000))
	}
	return f, err
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// Median returns the run with the median wall time. It panics if there is none.
func Median(runs []Figures) Figures {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b Figures) int { return int(a.Wall - b.Wall) })
	return sorted[len(sorted)/2]
}
