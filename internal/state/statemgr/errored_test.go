package statemgr

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
)

func serialIn(t *testing.T, path string) uint64 {
	t.Helper()
	s, ds := local.ReadFile(t.Context(), path)
	if ds.HasErrors() || s == nil {
		t.Fatal(ds.Err())
	}
	return s.Serial
}

func TestErrored(t *testing.T) {
	dir := t.TempDir()
	for n, name := range []string{"errored.tfstate", "errored.1.tfstate", "errored.2.tfstate"} {
		path, ds := writeErrored(Options{Dir: dir}, storetest.Sample(n), false)
		if path != filepath.Join(dir, name) || ds.HasErrors() || len(ds) != 1 || !strings.Contains(ds[0].Detail, "state push "+path) {
			t.Errorf("%s %v", path, ds)
		}
		if got := serialIn(t, path); got != uint64(n)+1 {
			t.Errorf("%s: serial %d", name, got)
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", name, info.Mode())
		}
	}
	path, ds := writeApart(Options{Dir: dir}, storetest.Sample(5))
	if filepath.Base(path) != "errored.3.tfstate" || ds.HasErrors() || strings.Contains(ds[0].Detail, "state push") {
		t.Errorf("%s %v", path, ds)
	}
	if _, ds := writeErrored(Options{Dir: dir}, storetest.Sample(6), true); ds.HasErrors() || strings.Contains(ds[0].Detail, "state push") || !strings.Contains(ds[0].Detail, "somebody else") {
		t.Errorf("%v", ds)
	}
	if path, ds := writeErrored(Options{Dir: filepath.Join(dir, "none")}, storetest.Sample(3), false); path != "" || !ds.HasErrors() {
		t.Errorf("%s %v", path, ds)
	}
}
