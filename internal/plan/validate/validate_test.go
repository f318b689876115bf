package validate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/plan/validate"
	"github.com/terrace-iac/terrace/internal/provider/provisioner"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// provisioners contains the built-in types.
type provisioners struct{}

func (provisioners) Schema(typ string) *schema.Block { return provisioner.Schema(typ) }
func (provisioners) ConnectionSchema() *schema.Block { return provisioner.ConnectionSchema() }
func (provisioners) Validate(typ string, config, conn cty.Value) diag.List {
	return provisioner.Validate(typ, config, conn)
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, config string
		want         []string
	}{
		{"nothing wrong", "variable \"v\" {}\nresource \"x_thing\" \"a\" { name = var.v }\noutput \"o\" { value = x_thing.a.id }", nil},
		{"no such argument", "resource \"x_thing\" \"a\" { nme = 1 }", []string{"1 error: Unsupported argument"}},
		{"a wrong type", "resource \"x_thing\" \"a\" { tags = [1] }", []string{"1 error: Incorrect attribute value type"}},
		{"no such resource type", "resource \"x_nope\" \"a\" {}", []string{"1 error: Invalid resource type"}},
		{"each block once", "resource \"x_thing\" \"a\" {\n  count = 5\n  nope  = 1\n}", []string{"3 error: Unsupported argument"}},
		{"a count that is not known is no error", "variable \"n\" {}\nresource \"x_thing\" \"a\" { count = var.n }", nil},
		{"an argument that is deprecated", "resource \"x_thing\" \"a\" { old = \"z\" }", []string{"1 warning: Argument is deprecated"}},
		{"a deprecated argument that may be null", "variable \"v\" {}\nresource \"x_thing\" \"a\" { old = var.v }", nil},
		{"a variable that is deprecated and not given", "variable \"v\" {\n  default    = 1\n  deprecated = \"no more\"\n}\noutput \"o\" { value = var.v }", nil},
		{"a check that fails is for planning to tell", "locals { a = 1 }\ncheck \"c\" {\n  assert {\n    condition     = local.a == 2\n    error_message = \"m\"\n  }\n}", nil},
		{"a condition that cannot be evaluated", "locals { a = 1 }\ncheck \"c\" {\n  assert {\n    condition     = local.a.b\n    error_message = \"m\"\n  }\n}", []string{"4 error: Unsupported attribute"}},
		{"ephemeral where it is stored", "variable \"v\" { ephemeral = true }\nresource \"x_thing\" \"a\" { name = var.v }", []string{"2 error: Ephemeral value used in non-ephemeral context"}},
		{"ignored attributes", "resource \"x_thing\" \"a\" {\n  lifecycle {\n    ignore_changes = [id, zz]\n  }\n}", []string{"3 error: Unsupported attribute", "3 warning: Redundant ignore_changes element"}},
		{"provisioners", "resource \"x_thing\" \"a\" {\n  provisioner \"local-exec\" {}\n  provisioner \"local\" {}\n}", []string{"2 error: Missing required argument", "3 error: Failed to instantiate provisioner"}},
		{"moved onto what is still there", "resource \"x_thing\" \"a\" {}\nresource \"x_thing\" \"b\" {}\nmoved {\n  from = x_thing.a\n  to   = x_thing.b\n}", []string{"3 error: Moved object still exists"}},
		{"removed and still there", "resource \"x_thing\" \"a\" {}\nremoved {\n  from = x_thing.a\n  lifecycle {\n    destroy = false\n  }\n}", []string{"2 error: Removed resource block still exists"}},
		{"what hangs on a mistake says nothing", "output \"a\" { value = local.nope }\noutput \"b\" { value = x_thing.a.id }\nresource \"x_thing\" \"a\" { name = local.nope }", []string{"1 error: Reference to undeclared local value", "3 error: Reference to undeclared local value"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds := validate.Run(context.Background(), validate.Input{Tree: plantest.Tree(t, c.config), Providers: plantest.New(), Provisioners: provisioners{}})
			if diff := cmp.Diff(c.want, lines(ds)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDeprecatedOnce checks that an argument that the provider itself reports as deprecated is
// reported once, and that other warnings of the provider about it do not count as such.
func TestDeprecatedOnce(t *testing.T) {
	for _, c := range []struct {
		summary string
		want    []string
	}{
		{"Attribute Deprecated", []string{"1 warning: Attribute Deprecated"}},
		{"Short value", []string{"1 warning: Argument is deprecated", "1 warning: Short value"}},
	} {
		providers := plantest.New()
		providers.Managed["x_thing"].Validate = func(cty.Value) diag.List {
			return diag.List{{Severity: diag.Warning, Summary: c.summary, Attr: cty.GetAttrPath("old")}}
		}
		ds := validate.Run(context.Background(), validate.Input{Tree: plantest.Tree(t, "resource \"x_thing\" \"a\" { old = \"z\" }"), Providers: providers})
		if diff := cmp.Diff(c.want, lines(ds)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.summary, diff)
		}
	}
}

// TestWithout checks which errors are found without providers, and that there are no wrong
// ones.
func TestWithout(t *testing.T) {
	for _, c := range []struct {
		name, config string
		want         []string
	}{
		{"whatever a provider may know", "resource \"y_any\" \"a\" {\n  nested {\n    b = 1\n  }\n  c = y_any.b[0].x\n}\nresource \"y_any\" \"b\" { count = 1 }\noutput \"o\" { value = y_any.a.none.such }", nil},
		{"a block that is not declared", "resource \"y_any\" \"a\" {\n  nested {\n    b = y_any.c.id\n  }\n}", []string{"3 error: Reference to undeclared resource"}},
		{"names of dynamic blocks", "resource \"y_any\" \"a\" {\n  dynamic \"n\" {\n    for_each = [1]\n    iterator = it\n    content {\n      a = it.value\n      dynamic \"m\" {\n        for_each = it.value\n        content { b = [it.key, m.key] }\n      }\n    }\n  }\n}", nil},
		{"names outside of their dynamic blocks", "resource \"y_any\" \"a\" {\n  dynamic \"n\" {\n    for_each = n.value\n    content {}\n  }\n}", []string{"3 error: Reference to undeclared resource"}},
		{"a provider block", "provider \"y\" { a = var.nope }", []string{"1 error: Reference to undeclared input variable"}},
		{"the directory and the workspace", "output \"o\" { value = [{ b = 1 }[path.cwd], { a = 1 }[terraform.workspace]] }", nil},
		{"self, each and count in their places", "resource \"y_any\" \"a\" {\n  for_each = { k = 1 }\n  a = each.key\n  b = self.a\n  provisioner \"local-exec\" { command = self.b }\n}", []string{"4 error: Invalid \"self\" reference"}},
		{"a postcondition", "resource \"y_any\" \"a\" {\n  lifecycle {\n    postcondition {\n      condition     = self.a == local.b\n      error_message = \"m\"\n    }\n  }\n}", []string{"4 error: Reference to undeclared local value"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds := validate.Run(context.Background(), validate.Input{Tree: plantest.Tree(t, c.config), Provisioners: provisioners{}, Without: func(addr.Provider) bool { return true }})
			if diff := cmp.Diff(c.want, lines(ds)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// lines returns each message as a line.
func lines(ds diag.List) []string {
	var out []string
	for _, m := range ds {
		line := 0
		if m.At != nil {
			line = m.At.Start.Line
		}
		out = append(out, fmt.Sprintf("%d %s: %s", line, m.Severity, m.Summary))
	}
	slices.Sort(out)
	return out
}
