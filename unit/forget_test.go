package unit_test

import (
	"context"
	"testing"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// TestForgetFile parses a unit's file again while another loader keeps computed values of
// the unit. Expressions must get the same numbers again, so that each keeps its own value.
func TestForgetFile(t *testing.T) {
	files := map[string]string{
		"d/terragrunt.hcl": "",
		"u/terragrunt.hcl": "locals {\n  a = length([dependency.d.outputs.x]) == 1 ? \"../m1\" : \"\"\n  b = length([dependency.d.outputs.x]) == 1 ? \"../m2\" : \"\"\n}\n" +
			"dependency \"d\" {\n  config_path = \"../d\"\n}\nterraform {\n  source  = local.a\n  version = local.b\n}\n",
	}
	for range 30 { // the iteration order of a map varies
		l := unit.NewLoader(memory(files))
		static := l.WithOutputs(func(*demand.Task, string, source.Range) (cty.Value, bool, diag.List) {
			return cty.DynamicVal, true, nil
		})
		u, ds := l.Unit(l.Task(context.Background()), "u", "")
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		for range 2 {
			tf, ds := u.In(static).Terraform(static.Task(context.Background()))
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			if got := tf.Source.Text(); got != "../m1" {
				t.Fatalf("the source is %q", got)
			}
			u.ForgetFile()
		}
	}
}
