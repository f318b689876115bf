package unit_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/unit"
)

// The zero Env reads files, and returns an error for every other effect.
func TestZeroEnv(t *testing.T) {
	path := filepath.Join(t.TempDir(), unit.DefaultName)
	if err := os.WriteFile(path, []byte("inputs = { a = 1, b = run_cmd(\"true\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := unit.NewLoader(unit.Env{})
	task := l.Task(context.Background())
	u, ds := l.Unit(task, path, "")
	if u == nil || ds.HasErrors() {
		t.Fatal(ds)
	}
	if in, ds := u.Inputs(task, func(name string) bool { return name == "a" }); ds.HasErrors() || len(in) != 1 {
		t.Errorf("inputs: %v %v", in, ds)
	}
	_, ds = u.Inputs(task, nil)
	if !ds.HasErrors() || !strings.Contains(ds[0].Detail, "programs cannot be run here") {
		t.Errorf("run_cmd: %v", ds)
	}
}
