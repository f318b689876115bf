//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

const (
	commitUnit   = "terraform { source = \"../..//modules/m\" }\nremote_state {\n  backend = \"local\"\n  config  = { path = %q }\n  generate = { path = \"backend.tf\", if_exists = \"overwrite_terragrunt\" }\n}\ninputs = { in = %q }\n"
	commitModule = "variable \"in\" { type = string }\nresource \"terraform_data\" \"x\" { input = var.in }\n"
)

// travelers is an estate whose files are sent to a worker in another directory.
type travelers struct {
	workersKiller
	server *temporal
}

func newTravelers(t *testing.T) *travelers {
	t.Helper()
	server := aTemporal(t)
	k := &travelers{workersKiller: workersKiller{killer: killer{t: t, terrace: testkit.Terrace(t), dir: t.TempDir()}, host: server.address, namespace: server.namespace, queue: "terrace-files-" + fmt.Sprint(os.Getpid())}, server: server}
	k.url, k.blobs = server.url(server.address, k.queue), filepath.Join(k.dir, "blobs")
	k.env = environ("TF_CLI_CONFIG_FILE="+os.DevNull, "TMPDIR="+k.tmp(), runKey, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=n@example.org", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=n@example.org")
	return k
}

// work starts a worker.
func (k *travelers) work() {
	k.t.Helper()
	w := k.worker(1)
	k.t.Cleanup(func() {
		k.signal(w, syscall.SIGKILL)
		_ = w.Wait()
	})
}

func (k *travelers) unit(name, in string) {
	k.t.Helper()
	k.write(map[string]string{"estate/live/" + name + "/terragrunt.hcl": fmt.Sprintf(commitUnit, filepath.Join(k.dir, "states", name+".tfstate"), in)})
}

func (k *travelers) git(args ...string) {
	k.t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = filepath.Join(k.dir, "estate"), k.env
	if out, err := c.CombinedOutput(); err != nil {
		k.t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}

// on runs a command on all units with the worker, in a directory.
func (k *travelers) on(in string, args ...string) (string, error) {
	c := k.command(append([]string{"run", "--all", "--non-interactive", "--blobs", k.blobs, "--on", k.url}, args...)...)
	c.Dir = filepath.Join(k.dir, in)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (k *travelers) expect(in string, want []string, args ...string) {
	k.t.Helper()
	out, err := k.on(in, args...)
	if err != nil {
		k.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	for _, line := range want {
		if !strings.Contains(out, line) {
			k.t.Errorf("%v does not tell %q:\n%s", args, line, out)
		}
	}
}

// Filters refer to commits that a worker does not have. The results of git are sent to it,
// with the files of commits that are not checked out, and of removed units.
func TestFiltersTravel(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIP: there is no git")
	}
	k := newTravelers(t)
	k.work()
	k.write(map[string]string{"estate/modules/m/main.tf": commitModule, "estate/.gitignore": ".terragrunt-cache\n"})
	for _, name := range []string{"a", "b", "gone"} {
		k.unit(name, "one")
	}
	k.git("init", "-q")
	k.git("add", ".")
	k.git("commit", "-qm", "one")
	k.expect("estate/live", []string{"[gone] "}, "apply")
	k.unit("a", "two")
	k.must(os.RemoveAll(filepath.Join(k.dir, "estate/live/gone")))
	k.git("add", "-A")
	k.git("commit", "-qm", "two")
	k.expect("estate/live", []string{"[a] plan: 0 to add, 1 to change, 0 to destroy", "[gone] plan: 0 to add, 0 to change, 1 to destroy"}, "plan", "--filter", "[HEAD~1]")
	k.unit("a", "one")
	k.git("add", "-A")
	k.git("commit", "-qm", "three")

	// This commit is not checked out.
	k.expect("estate/live", []string{"[a] plan: 0 to add, 1 to change, 0 to destroy", "[gone] plan: 0 to add, 0 to change, 1 to destroy"}, "plan", "--filter", "[HEAD~2...HEAD~1]")
	k.expect("estate/live", []string{"[gone] destroyed 1 object"}, "apply", "--filter-allow-destroy", "--filter", "[HEAD~2...HEAD~1]")
	k.expect("estate/live", []string{"[a] plan: 0 to add, 1 to change, 0 to destroy", "[b] no changes"}, "plan")

	// A worktree of the repository has a file instead of its .git directory.
	k.git("worktree", "add", "-q", "--detach", filepath.Join(k.dir, "tree"), "HEAD~1")
	k.write(map[string]string{"tree/live/root/terragrunt.hcl": "terraform { source = \"../..//modules/m\" }\n" + fmt.Sprintf(sealedBackend, filepath.Join(k.dir, "states/root")) + "inputs = { in = get_repo_root() == \"\" ? \"\" : \"x\" }\n"})
	k.expect("tree/live", []string{"[a] no changes", "[root] plan: 1 to add"}, "plan")
	k.expect("tree/live", []string{"[a] no changes"}, "plan", "--filter", "[HEAD~1]")
}

// The places that set new values, with the texts of a commit, the filter by values, and rules work with a
// worker that has no repository.
func TestReviewTravels(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIP: there is no git")
	}
	k := newTravelers(t)
	k.work()
	k.write(map[string]string{"estate/modules/m/main.tf": commitModule, "estate/.gitignore": ".terragrunt-cache\n"})
	for _, name := range []string{"a", "b"} {
		k.unit(name, "one")
	}
	k.git("init", "-q")
	k.git("add", ".")
	k.git("commit", "-qm", "one")
	k.expect("estate/live", nil, "apply")
	k.unit("a", "two")
	k.expect("estate/live", []string{"[a] plan: 0 to add, 1 to change, 0 to destroy", "[b] no changes"}, "plan")
	k.expect("estate/live", []string{"[a] plan: 0 to add, 1 to change, 0 to destroy", "# a/terragrunt.hcl:", " was "}, "plan", "-since=HEAD")
	for _, flags := range [][]string{{"--affected", "HEAD"}, {"--filter", "affected=HEAD"}} {
		out, err := k.on("estate/live", append([]string{"plan"}, flags...)...)
		if err != nil || !strings.Contains(out, "[a] plan: 0 to add, 1 to change") || strings.Contains(out, "[b]") {
			t.Errorf("%v: %v\n%s", flags, err, out)
		}
	}
	k.expect("estate/live", nil, "plan", "-all-origins", "-out", filepath.Join(k.dir, "estate.plan"))
	show := k.command("show", "-json", filepath.Join(k.dir, "estate.plan"))
	show.Dir = filepath.Join(k.dir, "estate/live")
	if out, err := show.CombinedOutput(); err != nil || !strings.Contains(string(out), `"file":"a/terragrunt.hcl"`) || !strings.Contains(string(out), `"file":"b/terragrunt.hcl"`) {
		t.Errorf("the origins of all values: %v\n%s", err, out)
	}
	k.write(map[string]string{"estate/main.rules.hcl": "rule \"two\" {\n  resource = \"terraform_data\"\n  enforce {\n    condition     = attrs.input != \"two\"\n    error_message = \"The input is ${attrs.input}.\"\n  }\n}\n"})
	for _, command := range []string{"plan", "apply"} {
		out, err := k.on("estate/live", command)
		if text := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", "")), " "); err == nil || !strings.Contains(text, "Rule failed") || !strings.Contains(text, "The input is two.") || strings.Contains(text, "changed 1 object") {
			t.Errorf("%s with a rule that fails: %v\n%s", command, err, out)
		}
	}
}

// Without a repository, the files below the command's directory are sent. Other files that
// units need are reported before anything runs, with their source ranges.
func TestFilesBeyond(t *testing.T) {
	k := newTravelers(t)
	k.work()
	k.write(map[string]string{"estate/modules/m/main.tf": commitModule})
	k.unit("a", "one")
	k.expect("estate", []string{"[live/a] plan: 1 to add"}, "plan")
	out, err := k.on("estate/live", "plan")
	text := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", "")), " ")
	for _, want := range []string{"Directory outside of the run's files", "a/terragrunt.hcl line 1", "needs the module " + filepath.Join(k.dir, "estate/modules/m")} {
		if err == nil || !strings.Contains(text, want) {
			t.Errorf("a module beside the directory: %v, and %q is not told:\n%s", err, want, out)
		}
	}
	k.write(map[string]string{"estate/live/c/terragrunt.hcl": "include \"root\" { path = find_in_parent_folders(\"up.hcl\") }\nterraform { source = \".\" }\n", "estate/live/c/main.tf": "", "estate/up.hcl": ""})
	k.must(os.RemoveAll(filepath.Join(k.dir, "estate/live/a")))
	out, err = k.on("estate/live", "plan")
	if text := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", "")), " "); err == nil || !strings.Contains(text, "needs the file "+filepath.Join(k.dir, "estate/up.hcl")) {
		t.Errorf("a file above the directory: %v\n%s", err, out)
	}
}
