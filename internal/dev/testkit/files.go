package testkit

import (
	"os"
	"testing"

	"golang.org/x/tools/txtar"
)

// Files writes the files of a txtar archive to a new directory and returns the directory, which
// is deleted at the end of the test.
func Files(t testing.TB, archive string) string {
	t.Helper()
	dir := t.TempDir()
	files, err := txtar.FS(txtar.Parse([]byte(archive)))
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
