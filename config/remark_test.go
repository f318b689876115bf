package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
)

// TestRemarks checks the remarks about positions in merged blocks, which are marked by ^NAME.
func TestRemarks(t *testing.T) {
	m, ds := LoadFiles(".", map[string][]byte{"main.tf": []byte(`terraform {
  backend "local" {}
  required_providers {
    x = "1.0"
  }
}
provider "x" {
  a = 1
}
variable "v" {
  type = string
}
locals {
  l = 1
}
resource "x_y" "r" {
  count = 1
  a     = 1
  kept  = 1
  rule {}
  dynamic "rule" {
    for_each = []
    content {}
  }
  lifecycle {
    prevent_destroy = true
  }
  connection {}
}
module "m" {
  source = "./m"
  in     = 1
}
output "o" {
  value = 1
}
resource "x_y" "alone" {
  a = 1
}
`), "a_override.tf": []byte(`terraform {
  backend "local" {
    path = "x"
  }
  required_providers {
    x = "2.0"
  }
}
provider "x" {
  a = 2
}
variable "v" {
  type = number
}
locals {
  l = 2
}
resource "x_y" "r" {
  count = 2
  a     = 2
  more  = 2
  rule {
    p = 2
  }
  lifecycle {
    prevent_destroy = false
  }
  connection {
    host = 2
  }
}
module "m" {
  in = 2
}
output "o" {
  value = 2
}
`), "b_override.tf.json": []byte(`{"resource": {"x_y": {"r": {
  "a": 3
}}}}
`)}, Options{})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	var got strings.Builder
	for _, at := range []string{
		"main.tf:2", "a_override.tf:3", "main.tf:4", "a_override.tf:6", "main.tf:8", "a_override.tf:10", "main.tf:11", "a_override.tf:13", "a_override.tf:16",
		"main.tf:16", "a_override.tf:18", "a_override.tf:19", "a_override.tf:20", "a_override.tf:21", "a_override.tf:22", "a_override.tf:23",
		"a_override.tf:26", "a_override.tf:29", "a_override.tf:33", "a_override.tf:36", "main.tf:19", "main.tf:36", "b_override.tf.json:2", "other.tf:1",
	} {
		name, n, _ := strings.Cut(at, ":")
		var line int
		if _, err := fmt.Sscan(n, &line); err != nil {
			t.Fatal(err)
		}
		place := hcl.Range{Filename: name, Start: hcl.Pos{Line: line, Column: 3}}
		if f := m.Set.File(name); f != nil {
			place.Start.Byte = f.LineStart(line) + len(f.Line(line)) - len(strings.TrimSpace(f.Line(line)))
		}
		place.End = place.Start
		fmt.Fprintln(&got, at)
		for _, r := range m.Set.Remarks(place) {
			fmt.Fprintf(&got, "  %s: %s:%d\n", r.Text, r.At.Filename, r.At.Start.Line)
		}
	}
	want := `main.tf:2
a_override.tf:3
  overrides the block set here: main.tf:2
main.tf:4
a_override.tf:6
  overrides the value set here: main.tf:4
main.tf:8
  overridden here: a_override.tf:9
a_override.tf:10
  overrides the value set here: main.tf:8
main.tf:11
a_override.tf:13
  overrides the value set here: main.tf:11
a_override.tf:16
  overrides the value set here: main.tf:14
main.tf:16
  overridden here: a_override.tf:18
  overridden here: b_override.tf.json:1
a_override.tf:18
  overrides this block: main.tf:16
  overridden here: b_override.tf.json:1
a_override.tf:19
  overrides the value set here: main.tf:17
a_override.tf:20
  overrides this block: main.tf:16
  overridden here: b_override.tf.json:1
a_override.tf:21
  merged into the block set here: main.tf:16
a_override.tf:22
  overrides the block set here: main.tf:20
  overrides the block set here: main.tf:21
a_override.tf:23
  overrides the block set here: main.tf:20
  overrides the block set here: main.tf:21
a_override.tf:26
  overrides the value set here: main.tf:26
a_override.tf:29
  overrides the block set here: main.tf:28
a_override.tf:33
  overrides the value set here: main.tf:32
a_override.tf:36
  overrides the value set here: main.tf:35
main.tf:19
main.tf:36
  overridden here: a_override.tf:35
b_override.tf.json:2
  overrides the value set here: a_override.tf:20
  overrides the value set here: main.tf:18
other.tf:1
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}
