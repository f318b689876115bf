package server

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

var repositories = flag.String("repositories", "", "directory with one directory for each repository that TestRepositories opens; \"\" skips it")

// knownErrors contains directories of public repositories that have errors: a template whose variables
// are missing, each in a block that is not dynamic, and an argument that a module does not declare.
var knownErrors = []string{"modules/_templates", "examples/autoscalinggroup", "test/fixtures/shared_vpc_no_subnets"}

// No file of the repositories has an error, except in directories that are known for it.
func TestRepositories(t *testing.T) {
	if *repositories == "" {
		t.Skip("no -repositories")
	}
	entries, err := os.ReadDir(*repositories)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			dir := filepath.Join(*repositories, e.Name())
			c := start(t, dir, map[string]any{"textDocument": map[string]any{"diagnostic": map[string]any{}}})
			files, known, warnings := 0, 0, 0
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !strings.HasSuffix(path, ".tf") && !strings.HasSuffix(path, ".hcl") && !strings.HasSuffix(path, ".tfvars") {
					return err
				}
				files++
				rel, err := filepath.Rel(dir, path)
				if err != nil {
					return err
				}
				var r protocol.FullDocumentDiagnosticReport
				c.call("textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": c.uri(rel)}}, &r)
				for _, m := range r.Items {
					switch {
					case m.Severity != protocol.DiagnosticSeverityError:
						warnings++
					case slices.Contains(knownErrors, filepath.ToSlash(filepath.Dir(rel))):
						known++
					default:
						t.Errorf("%s:%d %s %s", rel, m.Range.Start.Line+1, m.Code, m.Message)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d files, %d known errors, %d findings below an error", files, known, warnings)
		})
	}
}
