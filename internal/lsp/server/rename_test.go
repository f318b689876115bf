package server_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/lsp/server"
)

// onlyMoved reports whether moved objects are the only differences that affected shows.
func onlyMoved(text string) bool {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.HasSuffix(lines[len(lines)-1], " moved.") && !strings.Contains(lines[len(lines)-1], ",")
}

// Random renames, one after the other, change no value: affected finds no difference.
func TestRenamesChangeNothing(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		dir := server.Unpack(t, server.ModuleFiles)
		env := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x"}
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "one"}} {
			c := exec.Command("git", args...)
			c.Dir, c.Env = dir, env
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("git: %v: %s", err, out)
			}
		}
		renamed := server.RenameSome(t, dir, r, 8)
		if len(renamed) < 3 {
			t.Errorf("seed %d: only %q were renamed", seed, renamed)
		}
		system, err := sys.Real()
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		system.Dir, system.Env, system.Args = dir, env, []string{"terrace", "affected", "--expect-none", "HEAD"}
		system.Stdout, system.Stderr, system.Stdin = &out, &errs, strings.NewReader("")
		// A resource with a new address is shown as moved.
		if code := cli.Main(context.Background(), system); code != 0 && !onlyMoved(out.String()) {
			t.Errorf("seed %d: after the renames %q, affected exits with %d:\n%s%s", seed, renamed, code, out.String(), errs.String())
		}
	}
}
