package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"golang.org/x/tools/txtar"
)

// loadText loads the files of a txtar archive.
func loadText(t testing.TB, text string) (*Module, diag.List) {
	t.Helper()
	files := map[string][]byte{}
	for _, f := range txtar.Parse([]byte(text)).Files {
		files[f.Name] = f.Data
	}
	return LoadFiles(".", files, Options{})
}

// mustLoad loads files that have no errors.
func mustLoad(t testing.TB, text string) *Module {
	t.Helper()
	m, ds := loadText(t, text)
	for _, d := range ds.Errors() {
		t.Errorf("%s", report(d))
	}
	return m
}

func report(d *diag.Message) string {
	s := d.Severity.String() + ": " + d.Summary + ": " + d.Detail
	if d.At != nil {
		s = d.At.String() + ": " + s
	}
	for _, n := range d.Notes {
		s += "\n\t" + n.Text
		if n.At != nil {
			s += " " + n.At.String()
		}
	}
	return s
}

// everyBlock contains each kind of block and nearly every argument.
const everyBlock = `
-- main.tf --
terraform {
  required_version = ">= 1.6"
  required_providers {
    aws = {
      source                = "hashicorp/aws"
      version               = "~> 5.0"
      configuration_aliases = [aws.west]
    }
    old = "1.0"
  }
  backend "local" {
    path = "a"
  }
  provider_meta "aws" {
    hello = "x"
  }
  encryption {
    key_provider "pbkdf2" "k" {
      passphrase = "a"
    }
    method "aes_gcm" "m" {
      keys = key_provider.pbkdf2.k
    }
    state {
      method = method.aes_gcm.m
    }
  }
}
provider "aws" {
  alias    = "each"
  for_each = toset(["a"])
  region   = each.value
}
variable "v" {
  type        = object({ a = string, b = optional(number, 3) })
  default     = { a = 1 }
  description = "d"
  validation {
    condition     = var.v.a != ""
    error_message = "no"
  }
}
locals {
  a = 1
  b = 2
}
output "o" {
  value      = 1
  sensitive  = true
  depends_on = [aws_instance.web]
}
module "m" {
  source    = "./m"
  count     = 2
  providers = { aws = aws.each["a"] }
  x         = 1
}
resource "aws_instance" "web" {
  for_each = {}
  provider = aws.each[each.key]
  ami      = "x"
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [ami, tags["a"]]
    replace_triggered_by  = [aws_instance.other[each.key].id]
    precondition {
      condition     = var.v.a == "b"
      error_message = "no"
    }
  }
  connection {
    host = "h"
  }
  provisioner "local-exec" {
    when       = destroy
    on_failure = continue
    command    = "echo ${self.id}"
  }
}
data "aws_ami" "a" {
  lifecycle {
    enabled = false
  }
}
ephemeral "random_password" "p" {}
moved {
  from = aws_instance.a
  to   = aws_instance.b["x"]
}
removed {
  from = aws_instance.gone
  lifecycle {
    destroy = false
  }
}
import {
  for_each = toset(["a"])
  to       = aws_instance.web[each.key]
  id       = each.key
}
check "c" {
  data "http" "h" {
    url = "x"
  }
  assert {
    condition     = data.http.h.status_code == 200
    error_message = "no"
  }
}
language {
  edition = tofu2024
  compatible_with {
    opentofu = ">= 1.12"
  }
}
`

func TestLoadEveryBlock(t *testing.T) {
	m := mustLoad(t, everyBlock)
	r := m.Resources[addr.Resource{Type: "aws_instance", Name: "web"}]
	if r == nil || r.Provider.String() != "aws.each" || r.Provider.Key == nil {
		t.Fatalf("resource: %+v", r)
	}
	if r.Repeat.ForEach == nil || len(r.Lifecycle.IgnoreChanges) != 2 || len(r.Pre) != 1 || !*r.Lifecycle.CreateBeforeDestroy {
		t.Errorf("lifecycle: %+v", r.Lifecycle)
	}
	if len(r.Provisioners) != 1 || !r.Provisioners[0].OnDestroy || !r.Provisioners[0].Continue || r.Connection == nil {
		t.Errorf("provisioners: %+v", r.Provisioners)
	}
	if v := m.Variables["v"]; v.Default.GetAttr("b").AsBigFloat().String() != "3" || v.Default.GetAttr("a").AsString() != "1" {
		t.Errorf("default: %#v", v.Default)
	}
	if len(m.Checks["c"].Asserts) != 1 || m.Resources[*m.Checks["c"].Data].Check != "c" {
		t.Errorf("check: %+v", m.Checks["c"])
	}
	if len(m.Moved) != 1 || len(m.Removed) != 1 || len(m.Imports) != 1 || m.Backend.Type != "local" || m.Encryption == nil {
		t.Errorf("module: %+v", m)
	}
	if len(m.Calls["m"].Providers) != 1 || m.Providers["aws.each"] == nil || m.ProviderMetas["aws"] == nil {
		t.Errorf("module: %+v", m)
	}
}

func TestOverrideArgument(t *testing.T) {
	m := mustLoad(t, `
-- example.tf --
resource "aws_instance" "web" {
  instance_type = "t2.micro"
  ami           = "ami-408c7f28"
  ingress {
    port = 1
  }
  ingress {
    port = 2
  }
}
-- a_override.tf.json --
{"resource": {"aws_instance": {"web": {"ingress": {"port": 3}, "dynamic": {"egress": {"for_each": [], "content": {}}}}}}}
-- override.tf --
resource "aws_instance" "web" {
  ami = "foo"
}
`)
	r := m.Resources[addr.Resource{Type: "aws_instance", Name: "web"}]
	s := m.Setting(r.Body, "ami")
	if s == nil || s.Layer.String() != "override 2" || s.Replaced == nil || s.Replaced.Layer.String() != "base" {
		t.Fatalf("setting: %+v", s)
	}
	attrs, diags := r.Body.JustAttributes()
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var names []string
	for _, a := range inOrder(attrs) {
		names = append(names, a.Name)
	}
	if got := strings.Join(names, " "); got != "ingress dynamic instance_type ami" {
		t.Errorf("arguments: %s", got)
	}
}

// TestReferences checks that references are found in every form of a body.
func TestReferences(t *testing.T) {
	m := mustLoad(t, `
-- a.tf --
resource "x" "r" {
  a = var.hidden
  b { c = var.block }
  dynamic "d" {
    for_each = var.dynamic
    content { e = [for f in var.loop : f] }
  }
  _ { count = var.escaped }
}
-- b_override.tf.json --
{"resource": {"x": {"r": {"a": "${var.json}", "g": {"h": ["${var.nested}"]}, "dynamic": [{"i": {"for_each": "${var.json_dynamic}"}, "j": {"for_each": "${var.gone}"}}]}}}}
-- c_override.tf --
resource "x" "r" {
  j = var.above
}
`)
	var got []string
	for _, ref := range References(m.Resources[addr.Resource{Type: "x", Name: "r"}].Body) {
		got = append(got, addr.Text(ref))
	}
	slices.Sort(got)
	want := "var.above var.block var.dynamic var.escaped var.json var.json_dynamic var.loop var.nested"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

// TestDynamicBody decodes a JSON body in which an override replaced one of two dynamic blocks.
func TestDynamicBody(t *testing.T) {
	m := mustLoad(t, `
-- a.tf.json --
{"resource": {"x": {"r": {"v": 1, "dynamic": {"a": {"for_each": [1], "content": {}}, "b": {"for_each": [1], "content": {}}}}}}}
-- override.tf --
resource "x" "r" {
  a {}
}
`)
	body := m.Resources[addr.Resource{Type: "x", Name: "r"}].Body
	schema := &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "v", Required: true}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "a"}, {Type: "dynamic", LabelNames: []string{"type"}}},
	}
	content, diags := body.Content(schema)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var got []string
	for _, b := range content.Blocks {
		got = append(got, b.Type+" "+strings.Join(b.Labels, " "))
	}
	if s := strings.Join(got, ", "); s != "dynamic b, a " {
		t.Errorf("blocks: %q", s)
	}
	_, rest, _ := body.PartialContent(&hcl.BodySchema{Blocks: schema.Blocks[:1]})
	if _, diags := rest.Content(&hcl.BodySchema{Attributes: schema.Attributes}); !diags.HasErrors() {
		t.Error("a dynamic block that nobody asked for is no error")
	}
	if _, diags := body.JustAttributes(); !diags.HasErrors() {
		t.Error("blocks among arguments are no error")
	}
}

// TestEncryptionBody decodes the merged encryption block like its reader.
func TestEncryptionBody(t *testing.T) {
	m := mustLoad(t, `
-- a.tf --
terraform {
  encryption {
    key_provider "pbkdf2" "k" {
      passphrase = "a"
      key_length = 1
    }
    state {
      method   = method.aes_gcm.m
      enforced = true
    }
  }
}
-- override.tf.json --
{"terraform": {"encryption": {"key_provider": {"pbkdf2": {"k": {"passphrase": "b"}}}, "state": {"enforced": false}}}}
`)
	content, diags := m.Encryption.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "key_provider", LabelNames: []string{"type", "name"}}, {Type: "state"},
	}})
	if diags.HasErrors() || len(content.Blocks) != 2 {
		t.Fatal(len(content.Blocks), diags)
	}
	attrs, diags := content.Blocks[0].Body.JustAttributes()
	if diags.HasErrors() || len(attrs) != 2 {
		t.Fatal(attrs, diags)
	}
	if v, _ := attrs["passphrase"].Expr.Value(nil); v.AsString() != "b" {
		t.Errorf("passphrase: %#v", v)
	}
	state, diags := content.Blocks[1].Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "method", Required: true}, {Name: "enforced"}}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if v, _ := state.Attributes["enforced"].Expr.Value(nil); !v.False() {
		t.Errorf("enforced: %#v", v)
	}
	_, diags = content.Blocks[1].Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "method"}}})
	if !diags.HasErrors() {
		t.Error("an argument that the reader does not know is no error")
	}
	_, diags = content.Blocks[1].Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "method"}, {Name: "enforced"}, {Name: "key", Required: true}}})
	if !diags.HasErrors() {
		t.Error("a required argument that is missing is no error")
	}
}
