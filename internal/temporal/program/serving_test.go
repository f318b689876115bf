package program

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// Hooks on a worker call terrace by TG_CTX_TF_PATH, as in a run without workers. It is the
// terrace in the directory of the worker's program, or otherwise the one in PATH.
func TestServingProgram(t *testing.T) {
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	beside, onPath := t.TempDir(), t.TempDir()
	here := filepath.Join(beside, "terrace-worker"+suffix)
	p := &program{System: &sys.System{Dir: beside, Env: sys.Env{"PATH=" + onPath, "PATHEXT=.EXE"}, Executable: func() (string, error) { return here, nil }}}
	program := func(dir string) string {
		path := filepath.Join(dir, "terrace"+suffix)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if got, err := p.serving().Executable(); err == nil {
		t.Errorf("there is none: %s", got)
	}
	for _, dir := range []string{onPath, beside} { // the later one takes precedence
		want := program(dir)
		if got, err := p.serving().Executable(); err != nil || !same(got, want) {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// same reports whether two paths are the same file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
