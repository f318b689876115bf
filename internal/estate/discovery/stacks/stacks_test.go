package stacks_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// generate generates the stacks below a directory.
func generate(t *testing.T, root string, whole bool, over *stacks.Overlay) (incomplete map[string]bool, ds diag.List) {
	t.Helper()
	s := stacks.Settings{Env: unit.Env{WorkingDir: root}, Whole: whole, Overlay: over}
	if over != nil {
		s.Env.Stat = func(path string) (fs.FileInfo, error) { return over.Stat(nil, path) }
		s.Env.ReadFile = func(path string) ([]byte, error) { return over.ReadFile(nil, path) }
	}
	return stacks.Generate(t.Context(), s, &source.Set{}, func(int) (out []string, ds diag.List) {
		for _, name := range strings.Fields(listing(t, root)) {
			if filepath.Base(name) == unit.StackName {
				out = append(out, filepath.Join(root, name))
			}
		}
		if err := over.Walk(nil, root, func(path, _ string) {
			if filepath.Base(path) == unit.StackName {
				out = append(out, path)
			}
		}); err != nil {
			t.Error(err)
		}
		slices.Sort(out)
		return out, nil
	})
}

// listing returns the names of the files in directories that stacks generated, and of stack files.
func listing(t *testing.T, root string) string {
	t.Helper()
	var out []string
	if err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		rel, _ := filepath.Rel(root, path)
		if err == nil && !info.IsDir() && (strings.Contains(rel, unit.StackDir) || info.Name() == unit.StackName) && info.Name() != ".terrace-manifest" {
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

const nested = `
-- terragrunt.stack.hcl --
unit "a" {
  source = "./lib/a"
  path   = "a"
  values = { x = 1 }
}
stack "s" {
  source = "./lib/s"
  path   = "s"
}
-- lib/a/terragrunt.hcl --
-- lib/a/old.tf --
-- lib/s/terragrunt.stack.hcl --
unit "b" {
  source = "../../lib/a"
  path   = "b"
}
`

// Stacks in stacks are generated too. The next call deletes what the source no longer contains,
// and keeps files of others.
func TestGenerate(t *testing.T) {
	root := testkit.Files(t, strings.ReplaceAll(nested, "../../lib/a", "${get_repo_root()}/lib/a"))
	text := "unit \"b\" {\n  source = \"" + filepath.ToSlash(root) + "/lib/a\"\n  path   = \"b\"\n}\n"
	if err := os.WriteFile(filepath.Join(root, "lib", "s", unit.StackName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ds := generate(t, root, false, nil); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	want := []string{"a/old.tf", "a/terragrunt.hcl", "a/terragrunt.values.hcl", "s/.terragrunt-stack/b/old.tf", "s/.terragrunt-stack/b/terragrunt.hcl"}
	for _, name := range want {
		if _, err := os.Stat(filepath.Join(root, unit.StackDir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(filepath.Join(root, "lib", "a", "old.tf")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, unit.StackDir, "a", "terraform.tfstate"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ds := generate(t, root, false, nil); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if got := listing(t, root); strings.Contains(got, "old.tf") || !strings.Contains(got, "a/terraform.tfstate") {
		t.Error(got)
	}
}

const invalid = `
-- bad/terragrunt.stack.hcl --
unit "b" {
  source = "./nowhere"
  path   = "b"
}
unit "b" {
  source = "../lib/a"
  path   = "c"
}
-- good/terragrunt.stack.hcl --
unit "a" {
  source = "../lib/a"
  path   = "a"
}
-- lib/a/terragrunt.hcl --
`

// An error in one stack file prevents the generation of its level, unless Whole is set. The
// directory of the file with the error is incomplete.
func TestInvalid(t *testing.T) {
	for whole, want := range map[bool]string{false: "bad/terragrunt.stack.hcl good/terragrunt.stack.hcl", true: "bad/terragrunt.stack.hcl good/.terragrunt-stack/a/terragrunt.hcl good/terragrunt.stack.hcl"} {
		root := testkit.Files(t, invalid)
		incomplete, ds := generate(t, root, whole, nil)
		if !ds.HasErrors() || filepath.Dir(ds[0].At.Filename) != filepath.Join(root, "bad") {
			t.Error(ds.Err())
		}
		if d := cmp.Diff(map[string]bool{filepath.Join(root, "bad"): true}, incomplete); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(want, listing(t, root)); d != "" {
			t.Errorf("whole %v: %s", whole, d)
		}
	}
}

// With an overlay, nothing is written, and files read as if they had been.
func TestOverlay(t *testing.T) {
	root := testkit.Files(t, strings.TrimPrefix(invalid, invalid[:strings.Index(invalid, "-- good")]))
	before := listing(t, root)
	var over stacks.Overlay
	if _, ds := generate(t, root, false, &over); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if d := cmp.Diff(before, listing(t, root)); d != "" {
		t.Error(d)
	}
	dir := filepath.Join(root, "good", unit.StackDir, "a")
	if got := over.Locate(filepath.Join(dir, "terragrunt.hcl")); got != filepath.Join(root, "lib", "a", "terragrunt.hcl") || !over.Holds(dir) || over.Holds(root) {
		t.Error(got)
	}
	if _, err := over.Stat(nil, filepath.Join(dir, "missing")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if got := (*stacks.Overlay)(nil).Locate(dir); got != dir {
		t.Error(got)
	}
}

// Parts returns the structure of a stack file, with the positions of the blocks. A directory
// without a stack file is no stack.
func TestParts(t *testing.T) {
	root := testkit.Files(t, strings.TrimPrefix(invalid, invalid[:strings.Index(invalid, "-- good")]))
	l := unit.NewLoader(unit.Env{WorkingDir: root})
	good, lib := filepath.Join(root, "good"), filepath.Join(root, "lib")
	parts, ds := stacks.Parts(l.Task(t.Context()), l, good)
	if ds.HasErrors() || len(parts) != 1 || parts[0].Name != "a" || parts[0].Stack || parts[0].Dir != filepath.Join(good, unit.StackDir, "a") || parts[0].At.Start.Line != 1 {
		t.Errorf("%+v %v", parts, ds.Err())
	}
	if !stacks.Is(l, good) || stacks.Is(l, lib) || stacks.Units(l.Task(t.Context()), l, lib) != nil {
		t.Error("stacks are not found by their files")
	}
}
