package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A filter finds the same changes with replayed answers as in the repository.
func TestAnswersTravel(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIP: there is no git")
	}
	dir, ctx := t.TempDir(), t.Context()
	env := append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=n@example.org", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=n@example.org")
	run := func(ctx context.Context, c sys.Command) error {
		cmd := exec.CommandContext(ctx, c.Path, c.Args...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, env, c.Stdout, c.Stderr
		return cmd.Run()
	}
	there := Repo{Dir: dir, Exec: run, Answers: &Answers{}}
	git := func(args ...string) {
		t.Helper()
		if _, err := there.Run(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	for i, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte{byte('0' + i)}, 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-qm", name)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	git("commit", "-qam", "gone")
	ask := func(r Repo, top string) (out []any) {
		t.Helper()
		c, err := r.Compare(ctx, "HEAD~1", top)
		if err != nil {
			t.Fatal(err)
		}
		id, err := r.Commit(ctx, "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		affected, err := r.Affected(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Deleted {
			c.Deleted[i] = strings.TrimPrefix(c.Deleted[i], top)
		}
		return []any{c.Deleted, len(c.Files), id, affected}
	}
	want := ask(there, dir)
	said := there.Answers.Record()
	said.Trees = map[string]string{"HEAD~1": "tree"}
	unpacked := ""
	here := Repo{Dir: t.TempDir(), Answers: Given(said, func(_ context.Context, tree, dir string) error {
		unpacked = tree
		return os.MkdirAll(dir, 0o755)
	})}
	if got := ask(here, here.Dir); !reflect.DeepEqual(got, want) {
		t.Errorf("elsewhere git says %v, want %v", got, want)
	}
	if _, err := here.Commit(ctx, "other"); err == nil {
		t.Error("what was not asked for is known")
	}
	var checkouts Checkouts
	tree, err := checkouts.Add(ctx, here, &Worktrees{}, here.Dir, "HEAD~1")
	if err != nil || unpacked != "tree" || checkouts.CheckedOut(filepath.Join(tree, "a")) != filepath.Join(here.Dir, "a") {
		t.Errorf("checked out %q, %q: %v", tree, unpacked, err)
	}
	checkouts.Remove(ctx)
	if _, err := os.Stat(filepath.Dir(tree)); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", tree, err)
	}
	if _, err := checkouts.Add(ctx, here, &Worktrees{}, here.Dir, "HEAD~7"); err == nil || !strings.Contains(err.Error(), "not among those of the run") {
		t.Errorf("a commit that did not travel: %v", err)
	}
}
