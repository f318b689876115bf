package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The main paths in ARCHITECTURE.md mention functions that exist.
func TestWays(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, page, ok := strings.Cut(string(b), "\n## Main paths\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no main paths")
	}
	page, _, _ = strings.Cut(page, "\n## ")
	declared := map[string]map[string]bool{}
	steps := 0
	for _, line := range regexp.MustCompile("(?m)^- `([a-z0-9/]+)`: (.+)$").FindAllStringSubmatch(page, -1) {
		dir := line[1]
		if declared[dir] == nil {
			declared[dir] = functions(t, filepath.Join(root, dir))
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line[2], -1) {
			if steps++; !declared[dir][name[1]] {
				t.Errorf("%s has no function %s", dir, name[1])
			}
		}
	}
	if steps < 70 {
		t.Errorf("%d steps were read, want all of the six paths", steps)
	}
}

// functions returns the functions and methods (Type.method) that a directory declares.
func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no Go files (%v)", dir, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				of := fn.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if id, ok := of.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			out[name] = true
		}
	}
	return out
}
