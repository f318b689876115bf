package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A commit is read without a checkout only if it differs from the working tree in texts.
func TestTextsOf(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	write := func(name, text string) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			return os.WriteFile(path, []byte(text), 0o644)
		}
	}
	for _, c := range []struct {
		name   string
		before func(dir string) error // before the commit
		after  func(dir string) error
		git    string // a command after that
		want   map[string]string
		ok     bool
	}{
		{name: "equal", ok: true},
		{name: "a text", after: write("d/a b.txt", "new"), want: map[string]string{"d/a b.txt": "old\n\n"}, ok: true},
		{name: "a text that is staged", after: write("x.txt", "new"), git: "add .", want: map[string]string{"x.txt": "x"}, ok: true},
		{name: "attributes", before: write(".gitattributes", "x.txt text eol=crlf\n"), after: write(".gitattributes", "x.txt text eol=lf\n"), want: map[string]string{".gitattributes": "x.txt text eol=crlf\n"}, ok: true},
		{name: "an ignored file", before: write(".gitignore", "*.log\n"), after: write("d/x.log", ""), ok: true},
		{name: "a new file", after: write("d/new.txt", "")},
		{name: "a new file that is staged", after: write("d/new.txt", ""), git: "add ."},
		{name: "a removed file", after: func(dir string) error { return os.Remove(filepath.Join(dir, "x.txt")) }},
		{name: "a renamed file", git: "mv x.txt y.txt"},
		{name: "a link", before: func(dir string) error { return os.Symlink("x.txt", filepath.Join(dir, "link")) }},
		{name: "assumed to be unchanged", after: write("x.txt", "new"), git: "update-index --assume-unchanged x.txt"},
		{name: "not checked out", git: "update-index --skip-worktree x.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			environ := append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
			run := func(args ...string) {
				t.Helper()
				x := exec.Command("git", args...)
				x.Dir, x.Env = dir, environ
				if out, err := x.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %s", args, out)
				}
			}
			do := func(f func(string) error) {
				t.Helper()
				if f != nil {
					if err := f(dir); err != nil {
						t.Fatal(err)
					}
				}
			}
			run("init", "-q")
			do(write("d/a b.txt", "old\n\n"))
			do(write("x.txt", "x"))
			do(c.before)
			run("add", ".")
			run("-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "one")
			do(c.after)
			if c.git != "" {
				run(strings.Fields(c.git)...)
			}
			r := Repo{Dir: dir, Environ: sys.Env(environ), Exec: sys.Run}
			texts, ok, err := r.TextsOf(t.Context(), dir, "HEAD")
			if err != nil || ok != c.ok || len(texts) != len(c.want) {
				t.Fatal(texts, ok, err)
			}
			for name, want := range c.want {
				if got, has := texts[filepath.Join(dir, name)]; !has || string(got) != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}
