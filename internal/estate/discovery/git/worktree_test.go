package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/filelock"
)

// The directories of processes that were killed are removed, also if no repository knows them;
// those of running processes, and directories of others, stay.
func TestSweepUnknown(t *testing.T) {
	temp, ctx := t.TempDir(), t.Context()
	file := func(text string, parts ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{temp}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("", treesPrefix+"killed", treeLock)
	file("", treesPrefix+"deleted", treeLock)
	file("gitdir: "+filepath.Join(temp, "no-repository"), treesPrefix+"deleted", treeName, ".git")
	file("", treesPrefix+"known", treeLock)
	file("gitdir: "+temp, treesPrefix+"known", treeName, ".git")
	file("", treesPrefix+"other", "file")
	unlock, err := filelock.Lock(ctx, file("", treesPrefix+"running", treeLock))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	sweepUnknown(ctx, temp)
	for name, stays := range map[string]bool{"killed": false, "deleted": false, "known": true, "other": true, "running": true} {
		if _, err := os.Stat(filepath.Join(temp, treesPrefix+name)); (err == nil) != stays {
			t.Errorf("%s: stays is %t, want %t", name, err == nil, stays)
		}
	}
}
