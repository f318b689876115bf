package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/schema"
	"golang.org/x/tools/txtar"
)

// ProviderConfig implements planjson.Schemas.
func (s fixedSchemas) ProviderConfig(addr.Provider) *schema.Block { return nil }

// TestPlanJSON reads the JSON that OpenTofu 1.12.6 made of plans and holds what
// we make of the result against it. (Attributes that are null were left out of
// the test data.)
func TestPlanJSON(t *testing.T) {
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
		for _, f := range a.Files {
			name, ok := strings.CutSuffix(f.Name, ".json")
			if !ok {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				got, err := planjson.Plan(planjson.Input{Plan: readPlan(t, f.Data, schemas), Schemas: schemas, Version: "1.12.6"})
				if err != nil {
					t.Fatal(err)
				}
				for _, member := range []string{"resource_changes", "output_changes", "resource_drift", "relevant_attributes"} {
					if diff := cmp.Diff(stripped(t, f.Data)[member], stripped(t, got.Bytes())[member]); diff != "" {
						t.Errorf("%s: -OpenTofu +ours\n%s", member, diff)
					}
				}
			})
		}
	}
}

// stripped is a document without null attributes, without what the two differ
// in on purpose, and without the names of providers, which the test data's
// reader does not keep.
func stripped(t *testing.T, src []byte) map[string]any {
	var doc map[string]any
	if err := json.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"resource_changes", "resource_drift"} {
		list, _ := doc[member].([]any)
		for _, c := range list {
			c := c.(map[string]any)
			delete(c, "provider_name")
			change := c["change"].(map[string]any)
			for _, side := range []string{"before", "after"} {
				if attrs, ok := change[side].(map[string]any); ok {
					for name, v := range attrs {
						if v == nil {
							delete(attrs, name)
						}
					}
				}
				// Sets with sensitive parts are marked as a whole here, always.
				if marks, ok := change[side+"_sensitive"].(map[string]any); ok {
					delete(marks, "nset")
					delete(marks, "bset")
				}
			}
			// The type of what is unknown is not in the test data.
			if unknown, ok := change["after_unknown"].(map[string]any); ok {
				if marks, ok := change["after_sensitive"].(map[string]any); ok {
					for name := range unknown {
						if marks[name] != true {
							delete(marks, name)
						}
					}
				}
			}
		}
	}
	return doc
}
