package inside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A data directory may be a link to another data directory, or to a missing one.
func TestCheckData(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, ".terraform")
	for _, to := range []string{"scratch", "project"} {
		if err := os.MkdirAll(filepath.Join(dir, to, "modules"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "project", "main.tf"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for to, ok := range map[string]bool{"scratch": true, "project": false, "none": true} {
		_ = os.Remove(data)
		if err := os.Symlink(filepath.Join(dir, to), data); err != nil {
			t.Skip(err)
		}
		if err := CheckData(data, filepath.Join(data, "modules", "m")); (err == nil) != ok {
			t.Errorf("a link to %s: %v", to, err)
		}
	}
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "scratch"), filepath.Join(data, "modules")); err != nil {
		t.Fatal(err)
	}
	if err := CheckData(data, filepath.Join(data, "modules", "m")); err == nil {
		t.Error("a link below a data directory was not found")
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	root, out := filepath.Join(dir, "root"), filepath.Join(dir, "out")
	for _, d := range []string{filepath.Join(root, "a", "b"), filepath.Join(out, "x")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{filepath.Join(root, "a", "l"): out, filepath.Join(dir, "r"): root, filepath.Join(root, "dangling"): filepath.Join(out, "none")} {
		if err := os.Symlink(to, name); err != nil {
			t.Skip(err)
		}
	}
	for path, want := range map[string]string{
		"root": "", "root/a/b": "", "root/a/b/new/file": "", "root/a/l": "symbolic link", "root/a/l/x": "symbolic link", "root/a/l/new": "symbolic link", "root/dangling/x": "symbolic link", "out/x": "is not in", "root/../out": "is not in",
	} {
		err := Check(root, filepath.Join(dir, filepath.FromSlash(path)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := Check(filepath.Join(dir, "r"), filepath.Join(dir, "r", "a", "b")); err != nil {
		t.Errorf("a root that is a link: %v", err)
	}
	if err := Below(filepath.Join(root, "a", "l"), filepath.Join(dir, "none"), "", root); err == nil {
		t.Error("the second root was not found")
	}
	if err := Below(filepath.Join(root, "a", "l"), out); err != nil {
		t.Errorf("below none of the roots: %v", err)
	}
}
