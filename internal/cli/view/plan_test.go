package view

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var updating = flag.Bool("update", false, "write the texts that differ from OpenTofu's as NAME.ours")

// TestPlan compares with what OpenTofu 1.12.6 printed of the same plans. Where
// we differ on purpose, NAME.ours has our text.
func TestPlan(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	schemaText, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schemas := readSchemas(t, schemaText)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for _, f := range a.Files {
			texts[f.Name] = string(f.Data)
		}
		kept := []txtar.File(nil)
		for _, f := range a.Files {
			if !*updating || !strings.HasSuffix(f.Name, ".ours") {
				kept = append(kept, f)
			}
			name, ok := strings.CutSuffix(f.Name, ".json")
			if !ok {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				var b bytes.Buffer
				if err := Plan(&b, Style{}, readPlan(t, f.Data, schemas), schemas, false); err != nil {
					t.Fatal(err)
				}
				want := strings.ReplaceAll(texts[name+".txt"], "OpenTofu", Product)
				want = strings.ReplaceAll(want, `"tofu `, `"`+Program+` `)
				if ours, ok := texts[name+".ours"]; ok && !*updating {
					want = ours
				} else if *updating && want != b.String() {
					kept = append(kept, txtar.File{Name: name + ".ours", Data: b.Bytes()})
					return
				}
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(b.String(), "\n")); diff != "" {
					t.Errorf("-OpenTofu +ours\n%s", diff)
				}
			})
		}
		if *updating {
			if err := os.WriteFile(file, txtar.Format(&txtar.Archive{Comment: a.Comment, Files: kept}), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}
