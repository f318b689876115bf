package copytree_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
)

// copied copies the selected files of a directory, as a run does.
func copied(t *testing.T, from, to string, rules copytree.Rules) error {
	t.Helper()
	files := copytree.Files{}
	if err := files.Add(nil, from, to, rules); err != nil {
		t.Fatal(err)
	}
	if err := files.Copy(to, nil); err != nil {
		return err
	}
	return copytree.Forget(to, files)
}

// listing returns the names of the files below a directory, without the manifest.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	if err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && !info.IsDir() && rel != ".terrace-manifest" {
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// A second copy deletes the files that the source no longer contains. It keeps files that other
// programs wrote, and states.
func TestAgain(t *testing.T) {
	from, to := testkit.Files(t, "-- main.tf --\n-- old/x.tf --\n-- a.tfstate --\n"), t.TempDir()
	if err := copied(t, from, to, copytree.Rules{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old/x.tf", "a.tfstate"} {
		if err := os.Remove(filepath.Join(from, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(to, "foreign.tf"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := copied(t, from, to, copytree.Rules{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("a.tfstate foreign.tf main.tf", listing(t, to)); d != "" {
		t.Error(d)
	}
}

// A file whose size and time are unchanged is not copied again, and any other is.
func TestUnchanged(t *testing.T) {
	from, to := testkit.Files(t, "-- main.tf --\nold\n"), t.TempDir()
	at, text := filepath.Join(from, "main.tf"), ""
	for i, step := range []struct {
		write string
		time  int64
		want  string
	}{{"old\n", 1, "old\n"}, {"new\n", 1, "old\n"}, {"new\n", 2, "new\n"}, {"longer\n", 2, "longer\n"}} {
		if err := os.WriteFile(at, []byte(step.write), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(at, time.Unix(step.time, 0), time.Unix(step.time, 0)); err != nil {
			t.Fatal(err)
		}
		if err := copied(t, from, to, copytree.Rules{}); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(filepath.Join(to, "main.tf"))
		if text = string(b); text != step.want {
			t.Errorf("step %d: %q", i, text)
		}
	}
}

// A directory that is a symbolic link is not written, and a manifest from a checkout deletes
// nothing outside of the directory.
func TestOutside(t *testing.T) {
	outside := testkit.Files(t, "-- victim --\n")
	to := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(to, "sub")); err != nil {
		t.Skip("SKIP: the file system has no symbolic links")
	}
	if err := copied(t, testkit.Files(t, "-- sub/main.tf --\n"), to, copytree.Rules{}); err == nil {
		t.Error("no error")
	}
	up, _ := filepath.Rel(to, outside)
	manifest := "sub/victim\n" + filepath.Join(up, "victim") + "\n" + filepath.Join(outside, "victim") + "\n"
	if err := os.WriteFile(filepath.Join(to, ".terrace-manifest"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := copytree.Forget(to, copytree.Files{}); err != nil {
		t.Fatal(err)
	}
	if got := listing(t, outside); got != "victim" {
		t.Errorf("left: %q", got)
	}
}

// Hidden files are copied if they are known or included. Exclude takes precedence, and private
// directories are never copied.
func TestTakes(t *testing.T) {
	for _, tt := range []struct {
		rel   string
		rules copytree.Rules
		want  bool
	}{
		{"main.tf", copytree.Rules{}, true},
		{".hidden", copytree.Rules{}, false},
		{"a/.hidden/x", copytree.Rules{}, false},
		{copytree.LockFile, copytree.Rules{}, true},
		{".hidden", copytree.Rules{All: true}, true},
		{".hidden/x", copytree.Rules{Include: []string{".hidden"}}, true},
		{".hidden", copytree.Rules{Include: []string{".hidden"}, Exclude: []string{".*"}}, false},
		{".terraform/x", copytree.Rules{All: true, Include: []string{".terraform"}}, false},
	} {
		if got := tt.rules.Takes(tt.rel); got != tt.want {
			t.Errorf("%s with %+v: %v", tt.rel, tt.rules, got)
		}
	}
}
