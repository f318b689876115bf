package relevantattrs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/plan/relevantattrs"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// schemas returns the schemas of plantest's provider.
type schemas struct {
	t *testing.T
	plantest.Providers
}

func (s schemas) Resource(a addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	p, _ := s.Schema(s.t.Context(), a)
	return p.Resource(mode, typ)
}

// attributes plans a configuration and returns its relevant attributes as text.
func attributes(t *testing.T, text string) string {
	t.Helper()
	providers, tree := plantest.New(), plantest.Tree(t, text)
	p, ds := planner.Make(t.Context(), planner.Input{
		Eval:      eval.Options{Tree: tree, Workspace: "default", Variables: map[string]eval.Input{}},
		Providers: resourceclient.Options{Providers: providers},
	})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	var out []string
	for _, a := range relevantattrs.Attributes(p, tree, schemas{t, providers}, nil) {
		text := a.Resource.String()
		for _, step := range a.Path {
			switch s := step.(type) {
			case cty.GetAttrStep:
				text += "." + s.Name
			case cty.IndexStep:
				text += "[" + s.Key.AsString() + "]"
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// References are followed through locals, variables and outputs of modules to the attributes of
// resources. Each attribute is in the result once, and the result is sorted.
func TestAttributes(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"none", `resource "x_thing" "a" {}`, ""},
		{"direct", "resource \"x_thing\" \"b\" {}\nresource \"x_thing\" \"a\" {\n  name = x_thing.b.id\n  new  = x_thing.b.id\n}\n", "x_thing.b.id"},
		{"local", "locals { l = x_thing.b.tags[\"k\"] }\nresource \"x_thing\" \"b\" {\n  tags = { k = \"v\" }\n}\nresource \"x_thing\" \"a\" { name = local.l }\n", "x_thing.b.tags[k]"},
		{"whole", "resource \"x_thing\" \"c\" {}\nresource \"x_thing\" \"b\" { name = x_thing.c.id }\noutput \"o\" {\n  value     = x_thing.b\n  sensitive = true\n}\n", "x_thing.b x_thing.c.id"},
		{"unused", "locals { l = x_thing.b.id }\nresource \"x_thing\" \"b\" {}\n", ""},
		{"repeat", "resource \"x_thing\" \"b\" {\n  tags = { k = \"v\" }\n}\nresource \"x_thing\" \"a\" {\n  for_each = x_thing.b.tags\n  name     = each.value\n}\n", "x_thing.b.tags"},
		{"module", `
resource "x_thing" "in" {}
module "m" {
  source = "./m"
  v      = x_thing.in.id
}
-- m/main.tf --
variable "v" {}
resource "x_thing" "a" { name = var.v }
output "o" { value = x_thing.a.name }
`, "module.m.x_thing.a.name x_thing.in.id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, attributes(t, tt.text)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Subject counts the steps that name an object and its resource. What names nothing has none.
func TestSubject(t *testing.T) {
	for text, want := range map[string][2]int{
		"x_thing.a.id":         {2, 2},
		"x_thing.a[0].id":      {3, 2},
		"data.x_thing.a[0].id": {4, 3},
		"resource.x_thing.a":   {3, 3},
		"module.m.o":           {2, 0},
		"module.m[\"k\"].o":    {3, 0},
		"var.v.w":              {2, 0},
		"self.id":              {1, 0},
		"module":               {},
		"var":                  {},
		"data.x_thing":         {},
		"x_thing":              {},
	} {
		ref, diags := hclsyntax.ParseTraversalAbs([]byte(text), "", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if subject, resource := relevantattrs.Subject(ref); [2]int{subject, resource} != want {
			t.Errorf("%s: %d %d", text, subject, resource)
		}
	}
	if subject, resource := relevantattrs.Subject(nil); subject+resource != 0 {
		t.Errorf("nil: %d %d", subject, resource)
	}
}
