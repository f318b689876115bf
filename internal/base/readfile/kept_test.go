package readfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	opened := 0
	k := &Kept{}
	read := func(want string, opens int) {
		t.Helper()
		before := opened
		got, err := k.read(path, func(p string) ([]byte, error) { opened++; return Whole(p) })
		if err != nil || string(got) != want || opened-before != opens {
			t.Errorf("read %q (%v), want %q; opened it %d times, want %d", got, err, want, opened-before, opens)
		}
	}
	write := func(text string, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("one", time.Hour)
	read("one", 1)
	read("one", 0)
	write("two", 2*time.Hour) // the same length as the other text
	read("two", 1)
	read("two", 0)
	write("new", 0) // it may change again within the resolution of the time
	read("new", 1)
	read("new", 1)
	write("old", time.Hour)
	read("old", 1)
	other := path + "2"
	if err := os.WriteFile(other, []byte("2nd"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	read("2nd", 1)
	read("2nd", 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Whole(path); !os.IsNotExist(err) {
		t.Errorf("a file that was removed: %v", err)
	}
	if k.size != 0 {
		t.Errorf("%d bytes are kept of nothing", k.size)
	}
	if _, err := (*Kept)(nil).Whole(path); !os.IsNotExist(err) {
		t.Errorf("nothing is kept: %v", err)
	}
}

func TestKeptIsBounded(t *testing.T) {
	dir := t.TempDir()
	k := &Kept{}
	for _, name := range []string{"a", "b", "c"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, mostKept/2), 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if b, err := k.Whole(path); err != nil || len(b) != mostKept/2 {
			t.Fatal(len(b), err)
		}
	}
	if k.size > mostKept {
		t.Errorf("%d bytes are kept", k.size)
	}
}

// A replaced file is neither read nor cached.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	buffer := "buffer"
	k := &Kept{Replace: func(p string) ([]byte, bool) { return []byte(buffer), p == path && buffer != "" }}
	for _, want := range []string{"buffer", "other", "disk"} {
		if buffer = want; want == "disk" {
			buffer = ""
		}
		if got, err := k.Whole(path); err != nil || string(got) != want {
			t.Errorf("read %q (%v), want %q", got, err, want)
		}
	}
}

// A patched cache reads the files that are equal through the cache of those on disk.
func TestPatchedShares(t *testing.T) {
	dir := t.TempDir()
	path, replaced := filepath.Join(dir, "f"), filepath.Join(dir, "g")
	old := time.Now().Add(-time.Hour)
	for _, p := range []string{path, replaced} {
		if err := os.WriteFile(p, []byte("disk"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, old, old); err != nil {
			t.Fatal(err)
		}
	}
	under := &Kept{}
	p := NewPatch(dir)
	p.Put(replaced, 0o600, func() ([]byte, error) { return []byte("text"), nil })
	k := under.Patched(p)
	one, err := k.Whole(path)
	if err != nil || string(one) != "disk" {
		t.Fatalf("%q, %v", one, err)
	}
	if two, _ := under.Whole(path); &two[0] != &one[0] {
		t.Error("the file is read twice")
	}
	if text, _ := k.Whole(replaced); string(text) != "text" {
		t.Errorf("the replaced file is %q", text)
	}
	if text, _ := under.Whole(replaced); string(text) != "disk" {
		t.Errorf("the file under the replacement is %q", text)
	}
}

// TestSnapshotOfListedDirectories asks a snapshot that has listed directories: its answers must be those of the
// system.
func TestSnapshotOfListedDirectories(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a/b", "other/c"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"a/f", "a/b/g", "other/c/h"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"a/link": "../other", "a/broken": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(root, from)); err != nil {
			t.Skip(err)
		}
	}
	var none *Kept
	k := none.Snapshot()
	if err := k.WalkDir(root, func(string, fs.DirEntry, error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/f", "a/b/g", "a/x", "x/y/z", "a/b/x/y", "a/f/x", "a/link", "a/link/c/h", "a/link/x", "a/broken", "a/../a/f", "../" + filepath.Base(root) + "/a/x"} {
		path := root + "/" + name
		_, want := os.Stat(path)
		if _, got := k.Stat(path); !same(got, want) {
			t.Errorf("Stat(%s): %v, not %v", name, got, want)
		}
		text, want := os.ReadFile(path)
		for what, read := range map[string]func(string) ([]byte, error){"Whole": k.Whole, "ReadFile": k.ReadFile} {
			if got, err := read(path); !same(err, want) || string(got) != string(text) {
				t.Errorf("%s(%s): %q, %v, not %q, %v", what, name, got, err, text, want)
			}
		}
	}
}

// same reports whether two errors say the same about a file.
func same(a, b error) bool {
	return (a == nil) == (b == nil) && errors.Is(a, fs.ErrNotExist) == errors.Is(b, fs.ErrNotExist)
}
