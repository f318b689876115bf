package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestCreate creates files with hard links and without, and never replaces one.
func TestCreate(t *testing.T) {
	for name, link := range map[string]func(string, string) error{"link": os.Link, "rename": func(string, string) error { return errors.ErrUnsupported }} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := create(path, []byte("one"), 0o640, link); err != nil {
				t.Fatal(err)
			}
			if err := create(path, []byte("two"), 0o640, link); !errors.Is(err, fs.ErrExist) {
				t.Errorf("the second time: %v", err)
			}
			text, err := os.ReadFile(path)
			st, serr := os.Stat(path)
			if err != nil || serr != nil || string(text) != "one" || st.Mode() != 0o640 {
				t.Errorf("%q %v %v", text, st.Mode(), err)
			}
			if err := os.Symlink("nowhere", path+"l"); err != nil {
				t.Fatal(err)
			}
			if err := create(path+"l", nil, 0o640, link); !errors.Is(err, fs.ErrExist) {
				t.Errorf("over a link: %v", err)
			}
			if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 2 {
				t.Error("left behind:", entries)
			}
			if err := create(filepath.Join(path, "no", "f"), nil, 0o640, link); err == nil {
				t.Error("written into a directory that does not exist")
			}
		})
	}
}
