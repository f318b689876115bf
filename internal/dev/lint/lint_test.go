package lint

import (
	"fmt"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// The module follows the rules.
func TestModule(t *testing.T) {
	packages, err := Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 {
		t.Fatalf("only %d packages found", len(packages))
	}
	for _, p := range packages {
		for _, f := range CheckPackage(p) {
			t.Error(f)
		}
	}
}

// Each archive contains packages by directory. A comment // ERROR "text" is the expected
// finding on its line.
func TestRules(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			fset := token.NewFileSet()
			packages := map[string]*Package{}
			want := map[string][]string{}
			expect := regexp.MustCompile(`// ERROR "([^"]*)"`)
			for _, file := range a.Files {
				for i, line := range strings.Split(string(file.Data), "\n") {
					for _, m := range expect.FindAllStringSubmatch(line, -1) {
						at := fmt.Sprintf("%s:%d", file.Name, i+1)
						want[at] = append(want[at], m[1])
					}
				}
				src := expect.ReplaceAll(file.Data, nil) // otherwise the comment would excuse a goroutine
				f, err := Parse(fset, file.Name, src)
				if err != nil {
					t.Fatal(err)
				}
				if f == nil {
					continue
				}
				dir := filepath.ToSlash(filepath.Dir(file.Name))
				if packages[dir] == nil {
					packages[dir] = &Package{Name: dir}
				}
				packages[dir].Files = append(packages[dir].Files, f)
			}
			for _, p := range packages {
				for _, f := range CheckPackage(p) {
					at := fmt.Sprintf("%s:%d", f.File, f.Line)
					found := false
					for i, text := range want[at] {
						if !found && strings.Contains(f.Text, text) {
							want[at] = append(want[at][:i:i], want[at][i+1:]...)
							found = true
						}
					}
					if !found {
						t.Errorf("unexpected: %s", f)
					}
				}
			}
			for at, texts := range want {
				for _, text := range texts {
					t.Errorf("%s: nothing found with %q", at, text)
				}
			}
		})
	}
}
