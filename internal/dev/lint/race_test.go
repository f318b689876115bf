package lint

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// otherwise contains the packages that start goroutines and that .ci/run does not test with
// the race detector, with the tests that cover them.
var otherwise = map[string]string{
	"internal/state/backend/backendtest":         "its tests are those of the backends, of which consul's run",
	"internal/state/backend/backendtest/servers": "its servers are those of the backends' tests",
	"internal/state/store/storetest":             "internal/state/store/local runs its suite",
	"internal/cli":                               "the scripts that .ci/run names",
	"internal/cli/login":                         "a server for one answer of a browser; its test is a script of internal/cli",
	"internal/cli/prompt":                        "the scripts apply of internal/cli",
	"internal/cli/run":                           "the scripts estate of internal/cli",
	"internal/temporal/program":                  "it needs a server; its parts flow and worker are named",
}

// Every package that starts goroutines is tested with the race detector.
func TestRaceDetector(t *testing.T) {
	text, err := os.ReadFile("../../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	step := regexp.MustCompile(`(?s)\nstep_race\(\) \{.*?\n\}`).Find(text)
	var watched []string
	for _, word := range strings.Fields(string(step)) {
		if name, ok := strings.CutPrefix(word, "./"); ok {
			watched = append(watched, name)
		}
	}
	packages, err := Read("../../..")
	if err != nil || len(watched) == 0 {
		t.Fatalf("%v; .ci/run watches %q", err, watched)
	}
	starts := map[string]bool{}
	for _, p := range packages {
		for _, f := range p.Files {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				if startsGoroutine(n) {
					starts[p.Name] = true
				}
				return true
			})
		}
	}
	for name := range starts {
		named := slices.ContainsFunc(watched, func(w string) bool {
			tree, all := strings.CutSuffix(w, "/...")
			return w == name || all && (name == tree || strings.HasPrefix(name, tree+"/"))
		})
		if !named && otherwise[name] == "" {
			t.Errorf("%s starts goroutines, and step_race of .ci/run does not name it", name)
		}
	}
	for name := range otherwise {
		if !starts[name] {
			t.Errorf("%s starts no goroutines, and needs no reason", name)
		}
	}
}

// startsGoroutine reports whether a syntax node starts a goroutine: a go statement, the
// method Go of a group, or AfterFunc of the packages time and context.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		return ok && (called.Sel.Name == "Go" && len(n.Args) == 1 || called.Sel.Name == "AfterFunc")
	}
	return false
}
