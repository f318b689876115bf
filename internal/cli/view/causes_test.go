package view

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"
)

// TestCausesApart compares the texts of pieces with their causes added to the text of the plan, which
// contains the causes. A value may contain any byte and lines that look like causes.
func TestCausesApart(t *testing.T) {
	t.Parallel()
	schemaText, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schemas := readSchemas(t, schemaText)
	files, err := filepath.Glob("testdata/plan/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	causes := 0
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if !strings.HasSuffix(f.Name, ".json") {
				continue
			}
			p := readPlan(t, f.Data, schemas)
			for _, c := range p.Changes {
				misleading(c)
			}
			for _, style := range []Style{{}, {Color: true}} {
				var whole bytes.Buffer
				if err := Plan(&whole, style, p, schemas, false); err != nil {
					t.Fatal(err)
				}
				for i, x := range ShowCauses(style, Pieces(style, p, schemas, false), true) {
					if !strings.Contains(whole.String(), x.Text) {
						t.Errorf("%s: piece %d is not in the plan:\n%s\n%s", file, i, x.Text, whole.String())
					}
				}
				for _, x := range Pieces(style, p, schemas, false) {
					causes += len(x.Causes)
					for _, c := range x.Causes {
						if line := strings.Split(x.Text, "\n")[c.Line]; !strings.ContainsAny(line, "+-~") && !strings.Contains(line, "resource") {
							t.Errorf("%s: the cause %s is on the line %q", file, c.Text, line)
						}
					}
				}
			}
		}
	}
	if causes == 0 {
		t.Error("no plan has causes")
	}
}

// misleading sets causes of all attributes of a change, and texts that look like causes.
func misleading(c *plan.Change) {
	v, marks := c.After.Unmark()
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || len(marks) > 0 {
		return
	}
	attrs := v.AsValueMap()
	for name, x := range attrs {
		c.Causes = append(c.Causes, plan.Cause{Path: cty.GetAttrPath(name), File: "main.tf", Line: 1})
		if x.Type() == cty.String && !x.IsMarked() && x.IsKnown() && !x.IsNull() {
			attrs[name] = cty.StringVal("first\n\x1f      # main.tf:9\n      # main.tf:10\n\x1f\n")
		}
	}
	c.After = cty.ObjectVal(attrs)
}
