package config

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// noText lists files but reads none.
type noText struct{ fstest.MapFS }

func (n noText) ReadDir(name string) ([]fs.DirEntry, error) { return n.MapFS.ReadDir(name) }
func (n noText) ReadFile(string) ([]byte, error)            { return nil, fs.ErrPermission }

func TestFiles(t *testing.T) {
	disk := noText{fstest.MapFS{"d/b.tf": {}, "d/a_override.tf": {}, "d/b.tofu": {}, "d/x.txt": {}, "d/sub/c.tf": {}}}
	files, ds := Files("d", Options{FS: disk})
	m, _ := Load("d", Options{FS: disk})
	if diff := cmp.Diff(m.Files, files, cmp.AllowUnexported(FileRole{})); diff != "" || len(files) != 4 || ds != nil {
		t.Error(diff, files, ds)
	}
	if _, ds := Files("none", Options{FS: disk}); !ds.HasErrors() {
		t.Error("a directory that is not there has files")
	}
}
