package migrate_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/migrate"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what came out as what is wanted")

// TestMigrate runs the archives in testdata. The files after "want/" are the expected
// files. "left" lists what is not rewritten, one per line, as FILE:LINE and part of the
// reason.
func TestMigrate(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no archives found")
	}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(p)
			if err != nil {
				t.Fatal(err)
			}
			check(t, p, a)
		})
	}
}

func check(t *testing.T, file string, a *txtar.Archive) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want, left := map[string]string{}, ""
	for _, f := range a.Files {
		switch {
		case strings.HasPrefix(f.Name, "want/"):
			want[strings.TrimPrefix(f.Name, "want/")] = string(f.Data)
		case f.Name == "left":
			left = string(f.Data)
		default:
			path := filepath.Join(root, f.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	back := strings.HasPrefix(filepath.Base(file), "back")
	planned := migrate.Imports
	if back {
		planned = migrate.Includes
	}
	plan, err := planned(context.Background(), unit.Env{WorkingDir: root, Machine: unit.Machine{Run: sys.NoChildren}}, unitFiles(t, root), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range plan.Changes {
		got[rel(root, c.Path)] = string(c.After)
		if !strings.HasPrefix(c.Diff(), "diff old/") || !strings.Contains(c.Diff(), "\n@@ ") {
			t.Errorf("no difference is shown for %s:\n%s", c.Path, c.Diff())
		}
	}
	if *update {
		rewrite(t, file, a, got)
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	matchLeft(t, root, left, plan.Left)
}

// rewrite writes the actual files into the archive.
func rewrite(t *testing.T, path string, a *txtar.Archive, got map[string]string) {
	a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want/") })
	for _, name := range slices.Sorted(maps.Keys(got)) {
		a.Files = append(a.Files, txtar.File{Name: "want/" + name, Data: []byte(got[name])})
	}
	if err := os.WriteFile(path, txtar.Format(a), 0o666); err != nil {
		t.Fatal(err)
	}
}

func matchLeft(t *testing.T, root, want string, got []migrate.Left) {
	t.Helper()
	var have []string
	for _, l := range got {
		have = append(have, fmt.Sprintf("%s:%d %s", rel(root, l.Path), l.At.Start.Line, strings.ReplaceAll(l.Reason, root+"/", "")))
	}
	for _, line := range strings.Split(strings.TrimSpace(want), "\n") {
		if line == "" {
			continue
		}
		found := false
		for i, h := range have {
			place, text, _ := strings.Cut(line, " ")
			if strings.HasPrefix(h, place+" ") && strings.Contains(h, text) {
				have = append(have[:i], have[i+1:]...)
				found = true
				break
			}
		}
		if !found {
			t.Errorf("nothing was left for %q among:\n%s", line, strings.Join(have, "\n"))
		}
	}
	if len(have) > 0 {
		t.Errorf("left though not expected:\n%s", strings.Join(have, "\n"))
	}
}

func rel(root, path string) string {
	r, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(r)
}

func unitFiles(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".terragrunt-cache" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if err == nil && (d.Name() == unit.DefaultName || d.Name() == unit.DefaultJSONName) {
			out = append(out, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEstate migrates a real estate in memory and logs how much was rewritten.
func TestEstate(t *testing.T) {
	root := os.Getenv("TERRACE_TEST_ESTATE")
	if root == "" {
		t.Skip("SKIP: TERRACE_TEST_ESTATE names no directory with units")
	}
	env := unit.Env{WorkingDir: root, Machine: unit.Machine{Environ: os.Environ(), Run: sys.NoChildren}}
	plan, err := migrate.Imports(context.Background(), env, unitFiles(t, root), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range plan.Left {
		fmt.Printf("left %s:%d %s\n", rel(root, l.Path), l.At.Start.Line, l.Reason)
	}
	if os.Getenv("TERRACE_TEST_ESTATE_DIFF") != "" {
		for _, c := range plan.Changes {
			fmt.Println(c.Diff())
		}
	}
	fmt.Printf("%d units, %d files changed, %d units touched and equal, %d left\n", plan.Units, len(plan.Changes), plan.Touched, len(plan.Left))
}
