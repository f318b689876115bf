package project_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// After errors in the configuration, no project is open, and the errors have positions.
func TestLoad(t *testing.T) {
	for text, line := range map[string]int{"locals { a = 1 }\n": 0, "locals {}\nlocals {\n": 2} {
		c := command.New(t.Context(), sys.Test(testkit.Files(t, "-- main.tf --\n"+text)).System, nil, &interrupt.Handler{})
		c.Backends = c.OpenBackends
		p, ds := project.Load(t.Context(), c, project.Options{})
		if (p == nil) != ds.HasErrors() || ds.HasErrors() != (line > 0) || line > 0 && (ds[0].At == nil || ds[0].At.Start.Line != line) {
			t.Errorf("%q: %v", text, ds)
		}
		if p != nil {
			p.Close()
		}
	}
}

// TF_STATE_PERSIST_INTERVAL is a number of seconds, 20 at least.
func TestPersistEvery(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "20": 20 * time.Second, "19": -1, "-1": -1, "1m": -1} {
		c := command.New(t.Context(), sys.Test(t.TempDir(), "TF_STATE_PERSIST_INTERVAL="+text).System, nil, &interrupt.Handler{})
		got, ds := project.PersistEvery(c)
		if ds.HasErrors() != (want < 0) || got != max(want, 0) {
			t.Errorf("%q: %s %v", text, got, ds.Err())
		}
	}
}

// The reason why a path is no directory does not contain the path.
func TestIsDir(t *testing.T) {
	dir := testkit.Files(t, "-- file --\n")
	for name, want := range map[string]error{".": nil, "file": syscall.ENOTDIR, "missing": os.ErrNotExist} {
		err := project.IsDir(filepath.Join(dir, name))
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An error ends with one period.
func TestAsSentence(t *testing.T) {
	for _, text := range []string{"no.", "no"} {
		if got := project.AsSentence(errors.New(text)); got != "no." {
			t.Errorf("%q", got)
		}
	}
}
