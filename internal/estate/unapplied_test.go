package estate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

const layered = `
-- m/main.tf --
variable "name" { type = string }
variable "from" {
  type    = object({ id = string, name = string, tags = map(string) })
  default = null
}
locals { tags = merge(var.from == null ? {} : var.from.tags, { (var.name) = terraform_data.own.id }) }
resource "terraform_data" "own" { input = { name = var.name, from = try(var.from.name, "none"), id = try(var.from.id, "none") } }
resource "terraform_data" "each" {
  for_each = local.tags
  input    = each.value
}
output "all" { value = { id = terraform_data.own.id, name = "${var.name}!", tags = { for k, v in local.tags : k => v if k == var.name } } }
`

// nobody is an Approver for tests in which no approval is requested.
type nobody struct{ t *testing.T }

func (n nobody) Deferred(u *estate.Unit, _ *engine.Engine, _ *plan.Plan) {
	n.t.Errorf("%s has deferred actions", u.Name)
}

func (n nobody) Approve([]*estate.Result) bool {
	n.t.Error("somebody was asked")
	return false
}

// TestNeverApplied plans 200 units that were never applied, without mocks. After an apply, a
// second plan is empty, and the values that the first one showed as known are those that were
// applied.
func TestNeverApplied(t *testing.T) {
	const units = 200
	var files strings.Builder
	files.WriteString(layered)
	for i := range units {
		fmt.Fprintf(&files, "-- u%03d/terragrunt.hcl --\nterraform { source = \"../m\" }\n", i)
		from := "null"
		if i >= 20 {
			fmt.Fprintf(&files, "dependency \"from\" { config_path = \"../u%03d\" }\n", i-20)
			from = "dependency.from.outputs.all"
		}
		fmt.Fprintf(&files, "inputs = { name = \"n%d\", from = %s }\n", i, from)
	}
	e := open(t, options(tree(t, files.String()), "apply"))
	first := e.Run(t.Context(), estate.RunOptions{Op: estate.Plan})
	for _, r := range e.Run(t.Context(), estate.RunOptions{Op: estate.Apply, Approved: saved.Approve(first), Approver: nobody{t}}) {
		if r.Status != estate.Succeeded {
			t.Fatalf("%s: %s %v", r.Unit.Name, r.Status, r.Diags.Err())
		}
	}
	second := e.Run(t.Context(), estate.RunOptions{Op: estate.Plan})
	known := 0
	for i, r := range first {
		if r.Status != estate.Succeeded || len(r.Deferred) > 0 || second[i].Changes {
			t.Fatalf("%s: %s, %d deferred, changes after the apply: %t", r.Unit.Name, r.Status, len(r.Deferred), second[i].Changes)
		}
		now := map[addr.Instance]*plan.Change{}
		for _, c := range second[i].Plan.Changes {
			now[c.Addr] = c
		}
		for _, c := range r.Plan.Changes {
			if now[c.Addr] == nil {
				t.Fatalf("%s: %s was planned and is not there", r.Unit.Name, c.Addr)
			}
			known += agree(t, r.Unit.Name+" "+c.Addr.String(), c.After, now[c.Addr].Before)
		}
		for j, o := range r.Plan.Outputs {
			known += agree(t, r.Unit.Name+" "+o.Name, o.After, second[i].Plan.Outputs[j].Before)
		}
	}
	if known < 5*units {
		t.Errorf("only %d values were known", known)
	}
}

// agree compares the known parts of a planned value with the applied value, and counts them.
func agree(t *testing.T, what string, planned, applied cty.Value) (known int) {
	t.Helper()
	switch {
	case !planned.IsKnown():
		return 0
	case planned.IsNull() || planned.Type().IsPrimitiveType() || !applied.IsKnown() || applied.IsNull():
		if !planned.RawEquals(applied) {
			t.Errorf("%s: %#v was planned, and %#v applied", what, planned, applied)
		}
		return 1
	}
	if planned.LengthInt() != applied.LengthInt() {
		t.Errorf("%s: %#v was planned, and %#v applied", what, planned, applied)
		return 0
	}
	for it := planned.ElementIterator(); it.Next(); {
		k, v := it.Element()
		known += agree(t, fmt.Sprintf("%s[%#v]", what, k), v, part(applied, k))
	}
	return known
}

func part(v, key cty.Value) cty.Value {
	if v.Type().IsObjectType() {
		return v.GetAttr(key.AsString())
	}
	return v.Index(key)
}
