package planjson_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
)

// schemas returns the schemas of plantest's provider.
type schemas struct{ providers plantest.Providers }

func (s schemas) Resource(a addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	p, _ := s.providers.Schema(context.Background(), a)
	return p.Resource(mode, typ)
}

func (s schemas) ProviderConfig(a addr.Provider) *schema.Block {
	p, _ := s.providers.Schema(context.Background(), a)
	return p.Config
}

// planned returns the decoded JSON document of a plan for a configuration.
func planned(t *testing.T, text string) map[string]any {
	t.Helper()
	providers, tree := plantest.New(), plantest.Tree(t, text)
	p, ds := planner.Make(context.Background(), planner.Input{
		Eval:      eval.Options{Tree: tree, Workspace: "default", Variables: map[string]eval.Input{}},
		Providers: resourceclient.Options{Providers: providers}, Options: plan.Options{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	pieces, err := planjson.Plan(planjson.Input{Plan: p, Tree: tree, Schemas: schemas{providers}, Version: "1.12.6"})
	if err != nil {
		t.Fatal(err)
	}
	body := pieces.Bytes()
	var doc map[string]any
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, body)
	}
	if bytes.Contains(body, []byte("\n")) {
		t.Error("the document has line breaks")
	}
	return doc
}

// at returns the value at a path of names and indices.
func at(t *testing.T, doc any, path ...any) any {
	t.Helper()
	for _, s := range path {
		switch s := s.(type) {
		case string:
			m, ok := doc.(map[string]any)
			if !ok {
				t.Fatalf("no object at %v of %v", s, path)
			}
			doc = m[s]
		case int:
			l, ok := doc.([]any)
			if !ok || s >= len(l) {
				t.Fatalf("no element %d of %v", s, path)
			}
			doc = l[s]
		}
	}
	return doc
}

const text = `variable "name" {
  default = "n"
}
resource "x_thing" "a" {
  name   = var.name
  secret = "s3cret"
  tags   = { k = "v" }
}
module "m" {
  source = "./m"
  of     = x_thing.a.id
}
output "id" {
  value = x_thing.a.id
}
output "hidden" {
  value     = x_thing.a.secret
  sensitive = true
}
-- m/main.tf --
variable "of" {}
resource "x_thing" "b" {
  count = 2
  name  = var.of
}
`

// Each part of the document contains the expected content for the configuration above.
func TestPlan(t *testing.T) {
	doc := planned(t, text)
	for _, test := range []struct {
		what string
		path []any
		want string
	}{
		{"versions", []any{"format_version"}, `"` + planjson.PlanVersion + `"`},
		{"the language", []any{"terraform_version"}, `"1.12.6"`},
		{"variables", []any{"variables"}, `{"name":{"value":"n"}}`},
		{"an action", []any{"resource_changes", 0, "change", "actions"}, `["create"]`},
		{"its address", []any{"resource_changes", 0, "address"}, `"x_thing.a"`},
		{"what is not known", []any{"resource_changes", 0, "change", "after_unknown"}, `{"id":true,"tags":{}}`},
		{"what is sensitive", []any{"resource_changes", 0, "change", "after_sensitive"}, `{"secret":true,"tags":{}}`},
		{"a secret in the clear", []any{"resource_changes", 0, "change", "after", "secret"}, `"s3cret"`},
		{"in a module", []any{"resource_changes", 2, "module_address"}, `"module.m"`},
		{"an instance key", []any{"resource_changes", 2, "index"}, `1`},
		{"an unknown output", []any{"output_changes", "id", "after_unknown"}, `true`},
		{"a sensitive output", []any{"output_changes", "hidden", "after_sensitive"}, `true`},
		{"planned values of a child", []any{"planned_values", "root_module", "child_modules", 0, "resources", 0, "address"}, `"module.m.x_thing.b[0]"`},
		{"an expression", []any{"configuration", "root_module", "resources", 0, "expressions", "name"}, `{"references":["var.name"]}`},
		{"a constant", []any{"configuration", "root_module", "resources", 0, "expressions", "tags"}, `{"constant_value":{"k":"v"}}`},
		{"a module call", []any{"configuration", "root_module", "module_calls", "m", "expressions", "of"}, `{"references":["x_thing.a.id","x_thing.a"]}`},
		{"the time", []any{"timestamp"}, `"2026-01-02T03:04:05Z"`},
		{"errors", []any{"errored"}, `false`},
	} {
		got, err := json.Marshal(at(t, doc, test.path...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, string(got)); diff != "" {
			t.Errorf("%s: %s", test.what, diff)
		}
	}
}

// A plan with output changes only has no resource changes.
func TestOutputsAlone(t *testing.T) {
	doc := planned(t, "output \"a\" {\n  value = 1\n}\n")
	if got := at(t, doc, "output_changes", "a", "after"); got != 1.0 {
		t.Errorf("output %v", got)
	}
	if _, has := doc["resource_changes"]; has {
		t.Error("there are changes of resources, and there is no resource")
	}
}
