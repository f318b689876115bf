package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func printed(t testing.TB, m *Module, o PrintOptions) string {
	t.Helper()
	var b strings.Builder
	if err := m.Print(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// roundTrip prints a module in both syntaxes, loads what was printed, and
// compares the modules by their JSON form.
func roundTrip(t testing.TB, m *Module) {
	t.Helper()
	native, js, err := m.render(PrintOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := printed(t, m, PrintOptions{JSON: true})
	wantMeaning := unordered(t, want)
	for name, files := range map[string]map[string][]byte{
		"native": {"main.tf": []byte(native), "main.tf.json": []byte(js)},
		"JSON":   {"main.tf.json": []byte(want)},
	} {
		for n, text := range files {
			if len(text) == 0 {
				delete(files, n)
			}
		}
		again, ds := LoadFiles(".", files, Options{})
		if ds.HasErrors() {
			t.Errorf("%s: what was printed cannot be loaded: %s\n%s\n%s", name, report(ds.Errors()[0]), native, js)
			continue
		}
		if diff := cmp.Diff(wantMeaning, unordered(t, printed(t, again, PrintOptions{JSON: true}))); diff != "" {
			t.Errorf("%s: what was printed means something else (-first +again):\n%s", name, diff)
		}
	}
}

// unordered reads what was printed; the order of top-level blocks and of
// arguments means nothing.
func unordered(t testing.TB, js string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(js), &out); err != nil {
		t.Fatalf("%v in %s", err, js)
	}
	usualShape(out)
	for _, blocks := range out {
		if list, ok := blocks.([]any); ok {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	return out
}

// usualShape brings the spaces within templates into the usual shape.
func usualShape(x any) any {
	switch x := x.(type) {
	case map[string]any:
		for k, v := range x {
			x[k] = usualShape(v)
		}
	case []any:
		for i, v := range x {
			x[i] = usualShape(v)
		}
	case string:
		if s, ok := templateText(pretty(quotedTemplate(x))); ok {
			return s
		}
	}
	return x
}

func TestPrintOrigins(t *testing.T) {
	m := mustLoad(t, `
-- example.tf --
resource "aws_instance" "web" {
  instance_type = "t2.micro"
  ami           = "ami-408c7f28"
  count         = 1
  user_data     = <<-EOT
    #!/bin/sh
    echo "${var.x}"
  EOT
  lifecycle {
    prevent_destroy = true
  }
}
locals {
  a = 1
}
-- override.tf --
resource "aws_instance" "web" {
  ami = "foo"
  lifecycle {
    prevent_destroy = false
  }
}
`)
	got := printed(t, m, PrintOptions{Origins: true})
	want := `# example.tf:1, merged with override.tf:1 (override 1)
resource "aws_instance" "web" {
  count         = 1          # example.tf:4
  instance_type = "t2.micro" # example.tf:2
  # example.tf:5
  user_data = <<-EOT
    #!/bin/sh
    echo "${var.x}"
  EOT
  ami       = "foo" # override.tf:2 (override 1), overrides example.tf:3

  # example.tf:9, merged with override.tf:3 (override 1)
  lifecycle {
    prevent_destroy = false # override.tf:4 (override 1), overrides example.tf:10
  }
}

locals {
  a = 1 # example.tf:14
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = printed(t, m, PrintOptions{Origins: true, JSON: true, Addr: "aws_instance.web"})
	want = `{
  "resource": [
    {
      "aws_instance": {
        "web": {
          "//": {
            "block": "example.tf:1, merged with override.tf:1 (override 1)",
            "arguments": {
              "count": "example.tf:4",
              "instance_type": "example.tf:2",
              "user_data": "example.tf:5",
              "ami": "override.tf:2 (override 1), overrides example.tf:3"
            }
          },
          "count": 1,
          "instance_type": "t2.micro",
          "user_data": "${<<-EOT\n    #!/bin/sh\n    echo \"${var.x}\"\n  EOT\n}",
          "ami": "foo",
          "lifecycle": [
            {
              "//": {
                "block": "example.tf:9, merged with override.tf:3 (override 1)",
                "arguments": {
                  "prevent_destroy": "override.tf:4 (override 1), overrides example.tf:10"
                }
              },
              "prevent_destroy": false
            }
          ]
        }
      }
    }
  ]
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	roundTrip(t, m)
}

// TestRoundTrip prints modules with everything that has two spellings.
func TestRoundTrip(t *testing.T) {
	for _, text := range []string{everyBlock, `
-- a.tf --
locals {
  a = "x ${"y ${var.z}"} $${no} %%{no} \" \\ \n é"
  b = { a = 1, "b c" = [1, -2, 3.50, null, true], (var.k) = { for k, v in var.m : k => v... if k != "" } }
  c = <<EOT
plain ${var.x}
%{ for a in b ~}
${a}
%{ endfor ~}
EOT
  d = var.a[*].b[0] + (1 + 2) * 3 > 4 ? f(x...) : provider::x::y(1)
  e = [<<-A
    one
  A
  , "two"]
  f = "\u0041 %{if true}a%{else}b%{endif}"
  g = ""
  h = {}
  i = []
  j = "${var.only}"
  k = a.b["c"].0.*.d
  // a comment
  l = {
    // inside
    x = 1 # behind
    y : 2,
    1 = 2
    true = false
  }
}
module "m" {
  source = "./m"
  x      = { a = [{ b = 1 }] }
  _ {
    count = 3
  }
}
resource "x_y" "z" {
  count = 1
  a     = [1, 2]
  b     = { c = 1 }
  c     = [{ d = 1 }]
  e     = []
  dynamic "s" {
    for_each = var.s
    content {
      t = s.value
    }
  }
  s {
    t = 1
  }
  _ {
    count = 5
    s {}
  }
  connection = 1
  _ = 2
  depends_on {}
  provisioner "b" {
    command = 1
  }
  provisioner "a" {}
  provisioner "b" {
    when = destroy
    _ {
      when = "x"
    }
  }
}
`, `
-- a.tf.json --
{
  "//": "a comment",
  "variable": {"a": {"type": "map(object({a = optional(string, \"x\")}))", "default": {"k": {"a": "${literal}"}}, "description": "${literal}"}},
  "locals": {"a": "${var.a} and \"${f(\"x\")}\"", "b": [1, {"${k}": null, "l": "v\n\\n"}], "c": "$${no}", "d": "%{if a}b%{endif}"},
  "output": {"o": {"value": "${local.a}", "depends_on": ["x_y.z"], "precondition": {"condition": "${local.a != 1}", "error_message": "no"}}},
  "module": {"m": {"source": "./m", "x": {"a": [{"b": 1}]}, "providers": {"x": "x.y", "z.a": "z.b"}}},
  "resource": {"x_y": {"z": {
    "a": "${var.a}", "b": 1, "c": ["x", "y"], "provider": "x.y", "lifecycle": {"ignore_changes": ["a", "b[0]"], "replace_triggered_by": ["x_y.w[count.index].id"]},
    "provisioner": [{"local-exec": {"command": "x", "when": "destroy"}}, {"file": {"source": "a"}}]
  }, "w": {"s": [{"t": 1}], "dynamic": {"u": {"for_each": [], "content": {}}}, "n": null}}},
  "provider": {"x": [{"alias": "y", "region": "r"}, {}]},
  "moved": [{"from": "x_y.a", "to": "x_y.b[\"k\"]"}],
  "terraform": {"required_version": "> 1.0", "required_providers": {"x": {"source": "a/x", "configuration_aliases": ["x.z"]}}, "backend": {"s3": {"bucket": "b"}}}
}
-- b_override.tf --
resource "x_y" "w" {
  dynamic "v" {
    for_each = []
    content {}
  }
}
-- c_override.tf.json --
{"resource": {"x_y": {"w": {"dynamic": [{"s": {"content": {}}}]}}}}
`} {
		roundTrip(t, mustLoad(t, text))
	}
}
