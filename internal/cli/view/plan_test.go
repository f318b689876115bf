package view

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"golang.org/x/tools/txtar"
)

var updating = flag.Bool("update", false, "write the texts that differ from OpenTofu's as NAME.ours")

// TestPlan compares the text of plans with the output of OpenTofu 1.12.6. For intended
// differences, NAME.ours contains the expected text.
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
				// As a service sends it.
				foreign, err := planjson.ReadPlan(withSchemas(t, f.Data, schemaText), readPlan(t, f.Data, schemas).Mode)
				if err != nil {
					t.Fatal(err)
				}
				var of bytes.Buffer
				if err := Plan(&of, Style{}, foreign.Plan, foreign, false); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.Split(b.String(), "\n"), strings.Split(of.String(), "\n")); diff != "" {
					t.Errorf("-plan +plan of a service\n%s", diff)
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

// withSchemas adds provider schemas to the JSON of a plan, as services do.
func withSchemas(t *testing.T, text, schemas []byte) []byte {
	t.Helper()
	var doc map[string]json.RawMessage
	var of struct {
		Schemas json.RawMessage `json:"provider_schemas"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(schemas, &of); err != nil {
		t.Fatal(err)
	}
	doc["provider_schemas"] = of.Schemas
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// FuzzForeignPlan prints any document that a service may send.
func FuzzForeignPlan(f *testing.F) {
	files, err := filepath.Glob("testdata/plan/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, one := range a.Files {
			if strings.HasSuffix(one.Name, ".json") {
				f.Add(one.Data)
			}
		}
	}
	block := `"provider_schemas":{"registry.opentofu.org/a/b":{"resource_schemas":{"c":{"block":{"attributes":{"s":{"type":["set","dynamic"]},"l":{"type":["list","string"]},"m":{"type":["map","dynamic"]},"n":{"nested_type":{"nesting_mode":"set","attributes":{"x":{"type":"number","sensitive":true}}}}},"block_types":{"b":{"nesting_mode":"list","block":{"attributes":{"d":{"type":"dynamic"}}}}}}}}}}`
	f.Add([]byte(`{"resource_changes":[{"address":"c.a","provider_name":"registry.opentofu.org/a/b","change":{"actions":["update"],"before":{"s":[1,2],"l":["a"],"m":{"a":1,"b":"x"},"n":[{"x":1}],"b":[{"d":1},{"d":"x"}]},"after":{"s":[],"l":[null]},"after_unknown":{"m":true,"n":[{"x":true}],"l":[true]},"before_sensitive":{"m":{"a":true}},"after_sensitive":{"s":[true]},"replace_paths":[["l",0],["m","a"]]}}],"output_changes":{"o":{"actions":["create"],"after":1e9,"after_unknown":false}},` + block + `}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := planjson.ReadPlan(text, 0)
		if err != nil {
			return
		}
		if err := Plan(io.Discard, Style{}, p.Plan, p, false); err != nil {
			t.Fatal(err)
		}
	})
}
