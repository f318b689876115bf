package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "f"), filepath.Join(dir, "l")
	check := func(want string, mode os.FileMode) {
		t.Helper()
		text, err := os.ReadFile(path)
		st, serr := os.Lstat(path)
		if err != nil || serr != nil || string(text) != want || st.Mode() != mode {
			t.Errorf("%q %v %v", text, st.Mode(), err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 2 {
			t.Error("left behind:", entries)
		}
	}
	if err := Write(path, []byte("one"), 0o640); err != nil {
		t.Fatal(err)
	}
	check("one", 0o640)
	if err := os.Symlink("f", link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("two", 0o640)
	if err := WriteMode(path, []byte("three"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("three", 0o600)
	if err := WriteCopy(path, []byte("four"), 0o640); err != nil {
		t.Fatal(err)
	}
	check("four", 0o640)
	if err := WriteMode(path, []byte("three"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "no", "f"), nil, 0o600); err == nil {
		t.Error("written into a directory that does not exist")
	}
	if err := Write(dir, nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	check("three", 0o600)
}
