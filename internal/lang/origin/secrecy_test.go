package origin

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// testSchema returns a schema with secrets at every depth, whose names do not suggest a secret.
func testSchema() *schema.Provider {
	plain := &schema.Attribute{Type: cty.String, Optional: true}
	secret := &schema.Attribute{Type: cty.String, Optional: true, Sensitive: true}
	block := &schema.Block{Attributes: map[string]*schema.Attribute{"plain": plain, "pin": secret, "once": {Type: cty.String, Optional: true, WriteOnly: true}}}
	nested := &schema.Object{Nesting: schema.List, Attributes: map[string]*schema.Attribute{"plain": plain, "pin": secret}}
	r := &schema.Resource{Block: &schema.Block{
		Attributes: map[string]*schema.Attribute{
			"plain": plain, "pin": secret, "password": plain, "copy": {Type: cty.String, Computed: true},
			"objects": {Type: cty.List(cty.Object(map[string]cty.Type{"plain": cty.String, "pin": cty.String})), Nested: nested, Optional: true},
		},
		Blocks: map[string]*schema.NestedBlock{"inner": {Block: block, Nesting: schema.List}, "by": {Block: block, Nesting: schema.Map}},
	}}
	return &schema.Provider{
		Config: &schema.Block{Attributes: map[string]*schema.Attribute{"pin": secret, "plain": plain}},
		Decode: func(addr.Mode, string) *schema.Resource { return r },
	}
}

// TestSchemaSecrets checks that explanations follow the schema of a provider: sensitive values are never
// shown, and other values are shown whatever their names are.
func TestSchemaSecrets(t *testing.T) {
	files := map[string]string{"main.tf": `
provider "x" {
  pin   = "hidden"
  plain = "shown"
}
resource "x_y" "z" {
  plain    = "shown"
  pin      = "hidden"
  password = "shown"
  objects  = [{ plain = "shown", pin = "hidden" }]
  inner { once = "hidden" }
  inner {
    plain = "shown"
    pin   = "hidden"
  }
  dynamic "inner" {
    for_each = ["a"]
    content { pin = "hidden" }
  }
  by "k" { pin = "hidden" }
}
locals {
  a = x_y.z.pin
  b = x_y.z.plain
}
`}
	h := open(t, files, nil, nil, nil)
	h.Schema = func(addr.Provider) *schema.Provider { return testSchema() }
	for _, address := range []string{
		"provider.x", "provider.x.pin", "provider.x.plain", "x_y.z", "x_y.z.plain", "x_y.z.pin", "x_y.z.password", "x_y.z.objects",
		"x_y.z.objects[0]", "x_y.z.objects[0].pin", "x_y.z.objects[0].plain", "x_y.z.inner", "x_y.z.inner[0]", "x_y.z.inner[0].once",
		"x_y.z.inner[1]", "x_y.z.inner[1].plain", "x_y.z.inner[1].pin", "x_y.z.inner[2].pin", "x_y.z.inner[2]", "x_y.z.by.k", "x_y.z.by.k.pin",
		"local.a", "local.b",
	} {
		x, ds := h.ask(t, address)
		if ds.HasErrors() {
			t.Errorf("%s: %v", address, ds.Err())
			continue
		}
		out := text(t, x)
		if strings.Contains(out, "hidden") {
			t.Errorf("%s shows a secret:\n%s", address, out)
		}
		if (strings.HasSuffix(address, "plain") || address == "x_y.z.password" || address == "local.b") && x.Value != cty.StringVal("shown") {
			t.Errorf("%s is not shown:\n%s", address, out)
		}
		if len(x.Unchecked) > 0 {
			t.Errorf("%s: the schema of %s was not used", address, x.Unchecked)
		}
	}
	h.Schema = func(addr.Provider) *schema.Provider { return nil }
	x, _ := h.ask(t, "x_y.z.plain")
	if len(x.Unchecked) != 1 || !strings.Contains(text(t, x), "is not installed here") {
		t.Errorf("nobody says that the schema is missing:\n%s", text(t, x))
	}
}

// TestRepeatedSecrets explains values in a state in which the provider repeats arguments.
func TestRepeatedSecrets(t *testing.T) {
	files := map[string]string{"main.tf": `
variable "pw" {
  sensitive = true
  default   = "hidden"
}
resource "x_y" "z" {
  plain = var.pw
}
output "copy" { value = x_y.z.copy }
output "all" { value = x_y.z }
`}
	state := cty.ObjectVal(map[string]cty.Value{
		"plain": cty.StringVal("hidden"), "copy": cty.StringVal("user:hidden@host"), "password": cty.StringVal("shown"),
	})
	h := open(t, files, nil, nil, func(addr.Instance) cty.Value { return state })
	h.Schema = func(addr.Provider) *schema.Provider { return testSchema() }
	for _, address := range []string{"x_y.z.plain", "x_y.z.copy", "output.copy", "output.all", "output.all.copy", "x_y.z"} {
		x, ds := h.ask(t, address)
		if out := text(t, x); ds.HasErrors() || strings.Contains(out, "hidden") {
			t.Errorf("%s: %v shows a secret:\n%s", address, ds.Err(), out)
		}
	}
	if x, _ := h.ask(t, "output.all.password"); x.Value != cty.StringVal("shown") {
		t.Errorf("what repeats nothing is not shown: %#v", x.Value)
	}
}

func TestTainted(t *testing.T) {
	secret := func(v cty.Value) cty.Value { return v.Mark(value.Sensitive) }
	for _, c := range []struct {
		name      string
		v, config cty.Value
		want      []bool // whether each of the elements is secret
	}{
		{"nothing secret", tuple("a", "b"), cty.NilVal, []bool{false, false}},
		{"the same text", cty.TupleVal([]cty.Value{secret(cty.StringVal("abc")), cty.StringVal("abc"), cty.StringVal("abcd")}), cty.NilVal, []bool{true, true, false}},
		{"within a text", cty.TupleVal([]cty.Value{secret(cty.StringVal("abcd")), cty.StringVal("x-abcd-y")}), cty.NilVal, []bool{true, true}},
		{"a number", cty.TupleVal([]cty.Value{secret(cty.NumberIntVal(7)), cty.NumberIntVal(7), cty.NumberIntVal(8)}), cty.NilVal, []bool{true, true, false}},
		{"no text at all", cty.TupleVal([]cty.Value{secret(cty.StringVal("")), cty.StringVal("")}), cty.NilVal, []bool{true, false}},
		{"configuration says so", tuple("other", "now secret"), cty.TupleVal([]cty.Value{secret(cty.StringVal("now secret")), cty.NullVal(cty.String)}), []bool{true, true}},
		{"inside of a whole", tuple("abcd", "x"), secret(cty.ObjectVal(map[string]cty.Value{"k": cty.StringVal("abcd")})), []bool{true, true}},
	} {
		got := tainted(c.v, c.config)
		whole := value.Secret(got)
		got, _ = got.Unmark()
		for i, el := range got.AsValueSlice() {
			if s := whole || value.ContainsSecret(el); s != c.want[i] {
				t.Errorf("%s: element %d: secret is %v", c.name, i, s)
			}
		}
	}
}

func tuple(texts ...string) cty.Value {
	var out []cty.Value
	for _, s := range texts {
		out = append(out, cty.StringVal(s))
	}
	return cty.TupleVal(out)
}
