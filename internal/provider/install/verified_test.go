package install

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
)

// settledPackage creates a package that is older than the age from which it is recorded, and returns its
// directory and its program.
func settledPackage(t *testing.T) (dir, exe string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if dir = filepath.Join(dir, "package"); os.Mkdir(dir, 0o755) != nil {
		t.Fatal("no directory")
	}
	exe = filepath.Join(dir, "terraform-provider-thing_v1.0.0")
	for path, text := range map[string]string{exe: "program", filepath.Join(dir, "LICENSE"): "text", filepath.Join(dir, "..", "linked"): "link"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../linked", filepath.Join(dir, "README")); err != nil {
		t.Fatal(err)
	}
	return dir, exe
}

// later is a clock that is one hour ahead, so that files count as settled.
func later() time.Time { return time.Now().Add(time.Hour) }

// A recorded hash is used by later commands until a file of the package changes in any way.
func TestRecords(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files have no change time here")
	}
	thing := addr.Provider{Host: "example.com", Namespace: "x", Type: "thing"}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, dir, exe string)
		used   bool
	}{
		{"nothing", func(*testing.T, string, string) {}, true},
		{"content of equal size, with the time of before", func(t *testing.T, _, exe string) {
			info, err := os.Stat(exe)
			if err == nil {
				err = os.WriteFile(exe, []byte("another"), 0o755)
			}
			if err == nil {
				err = os.Chtimes(exe, info.ModTime(), info.ModTime())
			}
			if err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a new file", func(t *testing.T, dir, _ string) {
			if err := os.WriteFile(filepath.Join(dir, "more"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a file less", func(t *testing.T, dir, _ string) {
			if err := os.Remove(filepath.Join(dir, "LICENSE")); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a file that was replaced", func(t *testing.T, dir, exe string) {
			next := filepath.Join(t.TempDir(), "next")
			err := os.WriteFile(next, []byte("program"), 0o755)
			if err == nil {
				err = os.Rename(next, exe)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a mode", func(t *testing.T, _, exe string) {
			if err := os.Chmod(exe, 0o700); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a new link", func(t *testing.T, dir, exe string) {
			if err := os.Symlink(exe, filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"the file that a link leads to", func(t *testing.T, dir, _ string) {
			if err := os.WriteFile(filepath.Join(dir, "..", "linked"), []byte("other"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, exe := settledPackage(t)
			r := Records{Dir: filepath.Join(t.TempDir(), "verified"), Machine: "m", Now: later}
			first := &Hashes{Records: r}
			if _, err := first.of(t.Context(), dir, exe, false); err != nil {
				t.Fatal(err)
			}
			r.keep(dir, identities(dir), "h1:recorded", later()) // tells the record from the hash
			tt.change(t, dir, exe)
			got, err := (&Hashes{Records: r}).of(t.Context(), dir, exe, false)
			if err != nil || (got == "h1:recorded") != tt.used {
				t.Errorf("the hash is %s (%v)", got, err)
			}
			if got, err := (&Hashes{Records: r}).dir(t.Context(), dir, thing); err != nil || got == "h1:recorded" {
				t.Errorf("a command that installs packages gets %s (%v)", got, err)
			}
			r.Machine = "other"
			if got, err := (&Hashes{Records: r}).of(t.Context(), dir, exe, false); err != nil || got == "h1:recorded" {
				t.Errorf("another machine gets %s (%v)", got, err)
			}
		})
	}
}

// A package that changed a moment ago is not recorded, since the next change could have the same
// time. Records that others can write, and those of packages that are gone, do not count.
func TestRecordsNotKept(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files have no change time here")
	}
	dir, exe := settledPackage(t)
	r := Records{Dir: filepath.Join(t.TempDir(), "verified"), Machine: "m", Now: time.Now}
	count := func() int {
		entries, _ := os.ReadDir(r.Dir)
		return len(entries)
	}
	if _, err := (&Hashes{Records: r}).of(t.Context(), dir, exe, false); err != nil || count() != 0 {
		t.Errorf("%d records of a package that was just written (%v)", count(), err)
	}
	r.Now = later
	if _, err := (&Hashes{Records: r}).of(t.Context(), dir, exe, false); err != nil || count() != 1 {
		t.Errorf("%d records (%v)", count(), err)
	}
	if err := os.Chmod(r.path(dir), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.find(dir, identities(dir)); ok {
		t.Error("a record that others can read was used")
	}
	if err := os.Chmod(r.path(dir), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	other, exe := settledPackage(t)
	if _, err := (&Hashes{Records: r}).of(t.Context(), other, exe, false); err != nil || count() != 1 {
		t.Errorf("%d records, want only that of the package that exists (%v)", count(), err)
	}
}
