package sys_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// TestRelativePaths shortens the paths of messages. The table has a slash for the root of the tree.
func TestRelativePaths(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "repo", "live")
	if err := os.MkdirAll(filepath.Join(root, "repo", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	sep := string(filepath.Separator)
	for _, x := range []struct{ text, want string }{
		{path("repo", "live", "a", "terragrunt.hcl"), filepath.Join("a", "terragrunt.hcl")},
		{"in " + path("repo", "root.hcl") + ".", "in " + filepath.Join("..", "root.hcl") + "."},
		{`no "` + path("repo", "live", "x") + `"`, `no "x"`},
		{"from " + path("repo", "live") + ".", "from " + path("repo", "live") + "."},
		{"in " + path("repo", "live") + sep, "in " + path("repo", "live") + sep},
		{path("repo", "live2", "a"), filepath.Join("..", "live2", "a")},
		{path("other", "a"), path("other", "a")},
		{`no "` + path("repo", "live", "x") + `": run "push ` + path("repo", "live", "x") + `" in ` + path("repo", "live", "x"), `no "x": run "push ` + path("repo", "live", "x") + `" in x`},
		{"file://" + path("repo", "live", "a"), "file://" + path("repo", "live", "a")},
		{sep + "mnt" + path("repo", "live", "a"), sep + "mnt" + path("repo", "live", "a")},
	} {
		if got := sys.RelativePaths(dir, x.text); got != x.want {
			t.Errorf("%q is %q, not %q", x.text, got, x.want)
		}
	}
	if text := path("repo", "root.hcl"); sys.RelativePaths(path("free"), text) != text {
		t.Error("a path outside of the directory changed, without a repository")
	}
}
