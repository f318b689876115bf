package config

import (
	"encoding/json"
	"fmt"
	"io"
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

// roundTrip prints a module in both syntaxes, loads the output, and compares the modules in
// JSON form.
func roundTrip(t testing.TB, m *Module) {
	t.Helper()
	native, js, err := m.render(PrintOptions{})
	if err != nil {
		t.Fatal(err)
	}
	withOrigins, toldJSON, err := m.render(PrintOptions{Origins: true})
	if err != nil {
		t.Fatal(err)
	}
	want := printed(t, m, PrintOptions{JSON: true})
	wantMeaning := unordered(t, want)
	for name, files := range map[string]map[string][]byte{
		"native":       {"main.tf": []byte(native), "main.tf.json": []byte(js)},
		"with origins": {"main.tf": []byte(withOrigins)},
		"JSON":         {"main.tf.json": []byte(want)},
	} {
		if name == "with origins" && toldJSON != "" {
			continue // comments of provider blocks in JSON are kept as properties
		}
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

// unordered decodes printed JSON. The order of top-level blocks and of arguments is irrelevant.
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

// usualShape normalizes spaces in templates.
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
            "block": [
              {
                "file": "example.tf",
                "line": 1,
                "column": 1,
                "layer": "base"
              },
              {
                "file": "override.tf",
                "line": 1,
                "column": 1,
                "layer": "override 1"
              }
            ],
            "arguments": {
              "ami": {
                "file": "override.tf",
                "line": 2,
                "column": 3,
                "layer": "override 1",
                "overrides": [
                  {
                    "file": "example.tf",
                    "line": 3,
                    "column": 3,
                    "layer": "base"
                  }
                ]
              },
              "count": {
                "file": "example.tf",
                "line": 4,
                "column": 3,
                "layer": "base"
              },
              "instance_type": {
                "file": "example.tf",
                "line": 2,
                "column": 3,
                "layer": "base"
              },
              "user_data": {
                "file": "example.tf",
                "line": 5,
                "column": 3,
                "layer": "base"
              }
            }
          },
          "count": 1,
          "instance_type": "t2.micro",
          "user_data": "${<<-EOT\n    #!/bin/sh\n    echo \"${var.x}\"\n  EOT\n}",
          "ami": "foo",
          "lifecycle": [
            {
              "//": {
                "block": [
                  {
                    "file": "example.tf",
                    "line": 9,
                    "column": 3,
                    "layer": "base"
                  },
                  {
                    "file": "override.tf",
                    "line": 3,
                    "column": 3,
                    "layer": "override 1"
                  }
                ],
                "arguments": {
                  "prevent_destroy": {
                    "file": "override.tf",
                    "line": 4,
                    "column": 5,
                    "layer": "override 1",
                    "overrides": [
                      {
                        "file": "example.tf",
                        "line": 10,
                        "column": 5,
                        "layer": "base"
                      }
                    ]
                  }
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

// TestPrintOriginsOfBlocks checks what nested blocks replaced, for every rule that replaces.
func TestPrintOriginsOfBlocks(t *testing.T) {
	m := mustLoad(t, `
-- main.tf --
terraform {
  backend "local" {
    path = "a"
  }
  provider_meta "x" {
    a = 1
  }
}
resource "x_y" "z" {
  rule {
    a = 1
  }
  rule {
    a = 2
  }
  dynamic "made" {
    for_each = []
    content {}
  }
  both = 1
  connection {
    host = "a"
  }
  provisioner "p" {}
  kept {}
}
-- o_override.tf --
terraform {
  cloud {}
  provider_meta "x" {
    a = 2
  }
}
resource "x_y" "z" {
  dynamic "rule" {
    for_each = [3]
    content {
      a = rule.value
    }
  }
  made {}
  both {}
  connection {
    user = "b"
  }
  provisioner "q" {}
}
-- p_override.tf --
resource "x_y" "z" {
  rule {
    a = 4
  }
}
`)
	want := `terraform {
  # o_override.tf:2 (override 1), overrides main.tf:2
  cloud {
  }

  # o_override.tf:3 (override 1), overrides main.tf:5
  provider_meta "x" {
    a = 2 # o_override.tf:4 (override 1)
  }
}

# main.tf:9, merged with o_override.tf:7 (override 1), merged with p_override.tf:1 (override 2)
resource "x_y" "z" {
  # main.tf:25
  kept {
  }

  # o_override.tf:14 (override 1), overrides main.tf:16
  made {
  }

  # o_override.tf:15 (override 1), overrides main.tf:20
  both {
  }

  # p_override.tf:2 (override 2), overrides o_override.tf:8 (override 1), overrides main.tf:10, overrides main.tf:13
  rule {
    a = 4 # p_override.tf:3 (override 2)
  }

  # o_override.tf:16 (override 1), overrides main.tf:21
  connection {
    user = "b" # o_override.tf:17 (override 1)
  }

  # o_override.tf:19 (override 1), overrides main.tf:24
  provisioner "q" {
  }
}
`
	if diff := cmp.Diff(want, printed(t, m, PrintOptions{Origins: true})); diff != "" {
		t.Error(diff)
	}
	js := printed(t, m, PrintOptions{Origins: true, JSON: true})
	again, ds := LoadFiles(".", map[string][]byte{"main.tf.json": []byte(js)}, Options{})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	got := unordered(t, printed(t, again, PrintOptions{JSON: true}))
	withoutComments(got) // in blocks of a provider they look like arguments
	if diff := cmp.Diff(unordered(t, printed(t, m, PrintOptions{JSON: true})), got); diff != "" {
		t.Errorf("with origins the module means something else:\n%s", diff)
	}
}

func withoutComments(x any) {
	switch x := x.(type) {
	case map[string]any:
		delete(x, "//")
		for _, v := range x {
			withoutComments(v)
		}
	case []any:
		for _, v := range x {
			withoutComments(v)
		}
	}
}

// TestPrintAddr prints every kind of block by its address.
func TestPrintAddr(t *testing.T) {
	m := mustLoad(t, everyBlock)
	for addr, want := range map[string]string{
		"terraform":                      "terraform {",
		"language":                       "language {",
		"provider.aws.each":              `provider "aws" {`,
		`provider.aws.each["a"]`:         `provider "aws" {`,
		"var.v":                          `variable "v" {`,
		"locals":                         "locals {",
		"local.b":                        "locals {\n  b = 2\n}",
		"output.o":                       `output "o" {`,
		"module.m":                       `module "m" {`,
		"module.m[1]":                    `module "m" {`,
		"aws_instance.web":               `resource "aws_instance" "web" {`,
		`aws_instance.web["a b"]`:        `resource "aws_instance" "web" {`,
		"resource.aws_instance.web":      `resource "aws_instance" "web" {`,
		"data.aws_ami.a":                 `data "aws_ami" "a" {`,
		"ephemeral.random_password.p":    `ephemeral "random_password" "p" {`,
		"ephemeral.random_password.p[0]": `ephemeral "random_password" "p" {`,
		"moved":                          "moved {",
		"removed":                        "removed {",
		"import":                         "import {",
		"check.c":                        `check "c" {`,
		"data.http.h":                    `check "c" {`,
	} {
		got := printed(t, m, PrintOptions{Addr: addr})
		if !strings.HasPrefix(got, want) || strings.Count(got, "\n}") != 1 {
			t.Errorf("%s: %s", addr, got)
		}
	}
	for _, addr := range []string{"local", "local.c", "aws_instance.web.ami", "aws_instance", "nothing", "a b", "resource", "data"} {
		if err := m.Print(io.Discard, PrintOptions{Addr: addr}); err == nil {
			t.Errorf("%s names nothing, and nobody says so", addr)
		}
	}
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
