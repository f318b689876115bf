package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/rules/lint"
)

// TestModules checks the modules in testdata. A comment "# WANT code ..." on a line lists the codes
// of the findings that begin on it; all other lines have none.
func TestModules(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	on, err := lint.Select([]string{"all"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		var want []string
		for _, f := range a.Files {
			path := filepath.Join(dir, f.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(f.Data), "\n") {
				if _, codes, ok := strings.Cut(line, "# WANT "); ok {
					for _, code := range strings.Fields(codes) {
						want = append(want, fmt.Sprintf("%s:%d %s", f.Name, i+1, code))
					}
				}
			}
		}
		m, ds := config.Load(dir, config.Options{})
		if ds.HasErrors() {
			t.Fatalf("%s: %v", name, ds.Err())
		}
		l := &lint.Linter{On: on, Root: dir}
		var got []string
		for _, f := range finding.Sort(l.Module(lint.NewModule(m, func(name string) string { return name }))) {
			rel, err := filepath.Rel(dir, f.At().Filename)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s:%d %s", filepath.ToSlash(rel), f.At().Start.Line, f.Rule))
			found[f.Rule] = true
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, d)
		}
	}
	for _, r := range lint.Rules() {
		if !found[r.Code] && !slices.Contains([]string{lint.IncludeAsImport, lint.UnreadDependency, lint.UnusedOutput}, r.Code) {
			t.Errorf("no module in testdata has a finding of %s", r.Code)
		}
	}
}
