package syntax

import (
	"strings"
	"testing"
)

// Compare finds the expressions that differ, and refuses other differences.
func TestCompare(t *testing.T) {
	const base = `
locals {
  a = "x"
  b = { one = local.a, two = 2 }
}
include "root" {
  path = "root.hcl"
}
inputs = merge({ k = 1 }, local.b)
generate "g" {
  path     = "g.tf"
  contents = "text"
}
`
	file := func(text string) *File { return Parse("/x/terragrunt.hcl", []byte(text), Language().Unit) }
	for _, x := range []struct {
		name, from, to string
		at             string // the text of the only changed expression; "" for none
		locals, bad    bool
	}{
		{name: "comment", from: "locals {", to: "# more\nlocals {"},
		{name: "spaces", from: `a = "x"`, to: `a    =  "x"`},
		{name: "constant", from: `a = "x"`, to: `a = "y"`, at: `"y"`},
		{name: "item", from: "two = 2", to: "two = 3", at: "3"},
		{name: "item of a merge", from: "k = 1", to: "k = local.a", at: "{ k = local.a }"},
		{name: "key", from: "k = 1", to: "j = 1", at: "{ j = 1 }"},
		{name: "more arguments", from: "local.b)", to: "local.b, {})", at: "merge({ k = 1 }, local.b, {})"},
		{name: "generate", from: `"text"`, to: `"other"`, at: `"other"`},
		{name: "new local", from: `a = "x"`, to: "a = \"x\"\n  c = 1", locals: true},
		{name: "renamed local", from: "two = 2 }", to: "two = 2 }\n  c = 1", locals: true},
		{name: "include", from: `"root.hcl"`, to: `"other.hcl"`, bad: true},
		{name: "label", from: `"root" {`, to: `"other" {`, bad: true},
		{name: "block", from: "inputs =", to: "dependency \"d\" {\n  config_path = \"../d\"\n}\ninputs =", bad: true},
		{name: "new argument", from: "inputs =", to: "skip = true\ninputs =", bad: true},
		{name: "broken", from: "inputs =", to: "inputs", bad: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			if strings.Count(base, x.from) != 1 {
				t.Fatalf("%q is not in the base once", x.from)
			}
			text := strings.Replace(base, x.from, x.to, 1)
			now := file(text)
			got, ok := Compare(file(base), now)
			if ok == x.bad {
				t.Fatalf("ok is %v", ok)
			}
			if !ok {
				return
			}
			at := ""
			for i, s := range got.at {
				if i > 0 {
					at += " | "
				}
				at += text[s.start:s.end]
			}
			if at != x.at || got.Locals() != x.locals {
				t.Errorf("changed %q, locals %v; want %q, %v", at, got.Locals(), x.at, x.locals)
			}
		})
	}
}
