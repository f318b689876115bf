package rules_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

func parse(t *testing.T, name, text string) (*rules.Set, string) {
	t.Helper()
	set, ds := rules.Parse([]rules.Text{{Name: name, Text: []byte(text)}}, &source.Set{})
	var all []string
	for _, m := range ds {
		all = append(all, m.Detail)
	}
	return set, strings.Join(all, "\n")
}

// Each example rule passes and fails as its tests expect, and each is tested both ways.
func TestExamples(t *testing.T) {
	dir := "../../examples/rules"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files, tests []rules.Text
	all := ""
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case rules.IsFile(e.Name()):
			files = append(files, rules.Text{Name: e.Name(), Text: text})
		case rules.IsTest(e.Name()):
			tests = append(tests, rules.Text{Name: e.Name(), Text: text})
			all += string(text)
		}
	}
	set, ds := rules.Parse(files, &source.Set{})
	for _, m := range ds {
		t.Error(m)
	}
	if len(set.Rules) < 20 {
		t.Errorf("there are %d rules", len(set.Rules))
	}
	for _, r := range set.Rules {
		fails := false
		for line := range strings.Lines(all) {
			fails = fails || strings.Contains(line, "expect_failures") && strings.Contains(line, "rule."+r.Name)
		}
		if !fails || strings.Count(all, "rule."+r.Name) < 3 {
			t.Errorf("the rule %s is not tested both ways", r.Name)
		}
	}
	runs := 0
	for _, f := range rules.Test(context.Background(), set, tests, rules.Options{}, &source.Set{}) {
		for _, m := range f.Diags {
			t.Error(m)
		}
		for _, r := range f.Runs {
			runs++
			for _, m := range r.Diags {
				t.Errorf("%s: %v", r.Name, m)
			}
		}
	}
	if runs < 20 {
		t.Errorf("%d runs", runs)
	}
}

// Errors in files with rules.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		`rule "a" {}`: "needs an enforce block",
		"rule \"a\" {\n  resource = \"x\"\n  module = \"y\"\n  enforce { condition = true }\n}":                                         "A rule has one subject",
		"rule \"a\" {\n  level = \"high\"\n  enforce { condition = true }\n}":                                                           "The level must be",
		"rule \"a\" {\n  resource = \"x\"\n  operations = [\"make\"]\n  enforce { condition = true }\n}":                                "There is no operation",
		"rule \"a\" {\n  unit = \"x\"\n  operations = [\"create\"]\n  enforce { condition = true }\n}":                                  "Only rules about resources",
		"rule \"a\" {\n  enforce { condition = true }\n}\nrule \"a\" {\n  enforce { condition = true }\n}":                              "another rule with the name",
		"rule \"a\" {\n  enforce { condition = local.b }\n}\nlocals {\n  b = local.c\n  c = local.b\n}":                                 "refers to itself",
		"rule \"a\" {\n  enforce { condition = local.b }\n}":                                                                            "There is no local value",
		"exception \"a\" {\n  address = \"x\"\n  reason = \"y\"\n}":                                                                     "There is no rule",
		"rule \"a\" {\n  enforce { condition = true }\n}\nexception \"a\" {\n  address = \"x\"\n  reason = \" \"\n}":                    "must not be empty",
		"rule \"a\" {\n  enforce { condition = true }\n}\nexception \"a\" {\n  reason = \"y\"\n}":                                       "needs an address or a unit",
		"rule \"a\" {\n  enforce { condition = true }\n}\nexception \"a\" {\n  unit = \"b\"\n  reason = \"y\"\n  expires = \"soon\"\n}": "must be a date",
		"resource_policy \"x\" \"a\" {\n  enforce { condition = true }\n}\nexception \"a\" {\n  unit = \"b\"\n  reason = \"y\"\n}":      "allows no exceptions",
		"resource_policy \"x\" \"a\" {\n  enforce { condition = plugin::p::f() }\n}":                                                    "plugin::p::f",
		"input \"a\" {}": "has no default",
		"rule \"a\" {\n  edge = \"a b\"\n  enforce { condition = true }\n}":                               "has no \"->\"",
		"rule \"a\" {\n  level = 3\n  enforce { condition = true }\n}":                                    "The level must be",
		"rule \"a\" {\n  resource = \"none\"\n  enforce { condition = var.x }\n}":                         "The reference \"var\" does not exist",
		"rule \"a\" {\n  resource = \"none\"\n  enforce { condition = nofunction() }\n}":                  "There is no function \"nofunction\"",
		"rule \"a\" {\n  resource = \"none\"\n  enforce { condition = input.x }\n}":                       "The file has no input \"x\"",
		"resource_policy \"x\" \"a\" {\n  enforcement_level = attrs.x\n  enforce { condition = true }\n}": "attrs",
		"input \"a\" {\n  type = number\n  default = \"x\"\n}":                                            "does not have its type",
		"rule \"a\" {\n  resource = 1\n  enforce { condition = true }\n}\nlocals {\n  x = [}\n}":          "",
	} {
		if _, got := parse(t, "a.rules.hcl", text); !strings.Contains(got, want) || got == "" {
			t.Errorf("%s\ngives %q, not %q", text, got, want)
		}
	}
	if _, got := parse(t, "a.policy.hcl", `rule "a" {}`); !strings.Contains(got, "rule blocks") {
		t.Errorf("a policy file with a rule gives %q", got)
	}
	if _, got := parse(t, "a.policy.hcl", "policy {\n  plugins {\n  }\n}"); !strings.Contains(got, "plugins") {
		t.Errorf("a policy file with plugins gives %q", got)
	}
}

// Arguments that are needed before any rule is checked can refer to inputs, wherever they are in the file.
// An edge is recognized with and without spaces.
func TestArguments(t *testing.T) {
	set, ds := parse(t, "a.policy.hcl", "resource_policy \"x\" \"a\" {\n  enforcement_level = input.level\n  operations = [input.op]\n  enforce { condition = core::length([for v in [1] : v]) == 1 }\n}\ninput \"level\" {\n  type = string\n  default = \"advisory\"\n}\ninput \"op\" { default = \"create\" }\n")
	if ds != "" || len(set.Rules) != 1 || set.Rules[0].Level != finding.Warning || set.Rules[0].Final {
		t.Errorf("%s: %+v", ds, set.Rules)
	}
	set, ds = parse(t, "a.rules.hcl", "rule \"a\" {\n  edge = \"prod/*->dev/*\"\n  level = input.level\n  enforce { condition = false }\n}\ninput \"level\" { default = \"advice\" }\n")
	if ds != "" || set.Rules[0].Level != finding.Advice || !set.Rules[0].Patterns[0].Match("prod/a -> dev/b") {
		t.Errorf("%s: %+v", ds, set.Rules)
	}
}

func volume(address string, attrs map[string]cty.Value, lacks string) *subject.Subject {
	v := cty.ObjectVal(attrs)
	return &subject.Subject{
		Kind: subject.Resource, Address: address, Name: "aws_ebs_volume", Attrs: v, Config: v, Lacks: lacks,
		Meta: map[string]cty.Value{"address": cty.StringVal(address), "operation": cty.UnknownVal(cty.String)},
	}
}

func check(t *testing.T, text string, o rules.Options, units ...*rules.Unit) rules.Result {
	t.Helper()
	set, ds := parse(t, "a.rules.hcl", text)
	if ds != "" {
		t.Fatal(ds)
	}
	c := rules.NewChecker(context.Background(), set, o)
	for _, u := range units {
		c.Add(u)
	}
	return c.Finish()
}

const encrypted = `
rule "encrypted" {
  resource = "aws_ebs_*"
  enforce {
    condition     = attrs.encrypted == true
    error_message = "${meta.address} in ${unit.name} has ${try(attrs.name, "no name")}"
  }
}
`

// Without a schema, an argument that is not written is unknown. The finding names it.
func TestVerdicts(t *testing.T) {
	u := &rules.Unit{Name: "u", Meta: map[string]cty.Value{"name": cty.StringVal("u")}, Subjects: []*subject.Subject{
		volume("a", map[string]cty.Value{"encrypted": cty.True}, "is not written"),
		volume("b", map[string]cty.Value{"encrypted": cty.False, "name": cty.StringVal("hunter2").Mark(value.Sensitive)}, "is not written"),
		volume("c", nil, "is not written"),
		volume("d", map[string]cty.Value{"encrypted": cty.UnknownVal(cty.Bool)}, ""),
		volume("e", map[string]cty.Value{"encrypted": cty.NullVal(cty.Bool)}, ""),
	}}
	res := check(t, encrypted, rules.Options{}, u)
	if res.Passed != 1 || len(res.Findings) != 4 || len(res.Diags) != 0 {
		t.Fatalf("%+v", res)
	}
	for _, f := range res.Findings {
		want := map[string]finding.Verdict{"b": finding.Fail, "c": finding.Unknown, "d": finding.Unknown, "e": finding.Fail}[f.Address]
		if f.Verdict != want || f.Unit != "u" || f.Rule != "encrypted" || f.Level != finding.Error || f.Path != "encrypted" {
			t.Errorf("%+v", f)
		}
		if strings.Contains(f.Message, "hunter2") {
			t.Errorf("a sensitive value is shown: %s", f.Message)
		}
		text := map[string]string{"b": "sensitive", "c": "attrs.encrypted is not written", "d": "attrs.encrypted is not known before a plan", "e": "e in u has no name"}[f.Address]
		if !strings.Contains(f.Message, text) {
			t.Errorf("%s: %s", f.Address, f.Message)
		}
	}
}

// An exception ends on its day.
func TestExceptions(t *testing.T) {
	u := &rules.Unit{Name: "u", Meta: map[string]cty.Value{"name": cty.StringVal("u")}, Subjects: []*subject.Subject{volume("module.a.b", map[string]cty.Value{"encrypted": cty.False}, "")}}
	text := encrypted + "exception \"encrypted\" {\n  unit = \"u*\"\n  address = \"module.a.*\"\n  reason = \"Test.\"\n  expires = \"2027-01-31\"\n}\n"
	for day, waived := range map[string]bool{"2027-01-30": true, "2027-01-31": false} {
		now, _ := time.Parse(time.DateOnly, day)
		f := check(t, text, rules.Options{Now: now}, u).Findings[0]
		if (f.Waived == "Test.") != waived || strings.Contains(f.Message, "expired") == waived {
			t.Errorf("%s: %+v", day, f)
		}
	}
	u.Name = "v"
	if f := check(t, text, rules.Options{}, u).Findings[0]; f.Waived != "" {
		t.Errorf("the exception of another unit: %+v", f)
	}
}

// A failing expression is one message for all subjects.
func TestConditionErrors(t *testing.T) {
	u := &rules.Unit{Subjects: []*subject.Subject{volume("b", nil, ""), volume("a", nil, "")}}
	res := check(t, "rule \"x\" {\n  resource = \"*\"\n  enforce { condition = attrs.size > 1 }\n}", rules.Options{}, u)
	if len(res.Diags) != 1 || !strings.Contains(res.Diags[0].Detail, "for a and 1 more") || len(res.Findings) != 0 {
		t.Errorf("%+v", res)
	}
}

// A list of the estate is sorted by unit. Before a plan, a rule about changes is not known.
func TestLists(t *testing.T) {
	unit := func(name string) *rules.Unit {
		return &rules.Unit{Name: name, Meta: map[string]cty.Value{"name": cty.StringVal(name)}, Subjects: []*subject.Subject{volume("v", map[string]cty.Value{"id": cty.StringVal(name)}, "")}}
	}
	text := `
rule "all" {
  enforce {
    condition     = false
    error_message = join(" ", [for v in resources("aws_ebs_volume") : "${v.unit}:${v.attrs.id}"])
  }
}
rule "changes" {
  enforce { condition = length(changes("*")) == 0 }
}
rule "found" {
  enforce {
    condition     = length(core::getresources("aws_ebs_*", { id = "b" })) == 2
    error_message = join(" ", [for v in core::getresources("aws_ebs_*", { id = "b" }) : v.id])
  }
}
`
	res := check(t, text, rules.Options{}, unit("b"), unit("a"))
	var got []string
	for _, f := range res.Findings {
		got = append(got, f.Rule+" "+f.Verdict.String()+" "+f.Message)
	}
	slices.Sort(got)
	want := []string{"all fail a:a b:b", "changes unknown It is not known yet whether the rule holds: the planned operations are not known before a plan.", "found fail b"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A list has the fields that expressions read: those that for expressions name, or all.
func TestListFields(t *testing.T) {
	u := &rules.Unit{Name: "u", Meta: map[string]cty.Value{"name": cty.StringVal("u")}, Subjects: []*subject.Subject{volume("v", map[string]cty.Value{"id": cty.StringVal("x")}, "")}}
	const some = "rule \"some\" {\n  enforce {\n    condition     = false\n    error_message = join(\" \", [for k, v in resources(\"*\") : \"${k} ${v.unit}\" if v.attrs.id == \"x\" && !can(v.missing)])\n  }\n}\n"
	for text, want := range map[string]string{
		some: "0 u",
		some + "rule \"nested\" {\n  enforce {\n    condition     = false\n    error_message = join(\" \", [for v in resources(\"*\") : [for w in [v] : w.address][0]])\n  }\n}\n":                    "0 u\nv",
		some + "locals {\n  all = resources(\"*\")\n}\nrule \"whole\" {\n  enforce {\n    condition     = false\n    error_message = \"${local.all[0].address} ${local.all[0].config.id}\"\n  }\n}\n": "0 u\nv x",
		"rule \"splat\" {\n  enforce {\n    condition     = false\n    error_message = join(\" \", resources(\"*\")[*].address)\n  }\n}\n":                                                            "v",
	} {
		res := check(t, text, rules.Options{}, u)
		var got []string
		for _, f := range res.Findings {
			got = append(got, f.Message)
		}
		slices.Sort(got)
		if strings.Join(got, "\n") != want || len(res.Diags) > 0 {
			t.Errorf("%s: %q, %v", text, got, res.Diags)
		}
	}
}

// A rule about the whole estate has the values of its subject that it reads, also in a message or a local value.
func TestKeptParts(t *testing.T) {
	u := &rules.Unit{Name: "u", Meta: map[string]cty.Value{"name": cty.StringVal("u")}, Subjects: []*subject.Subject{volume("v", map[string]cty.Value{"id": cty.StringVal("x")}, "")}}
	const head = "rule \"wide\" {\n  resource = \"*\"\n  locals {\n    all = resources(\"*\")\n    id  = attrs.id\n  }\n  enforce {\n    condition     = length([for v in resources(\"*\") : v.address]) == 0\n    error_message = "
	for message, want := range map[string]string{
		"attrs.id": "x", "local.id": "x", "config.id": "x", "meta.address": "v", "unit.name": "u", "join(\" \", values(attrs))": "x",
		"join(\" \", [for k, v in meta : v if k == \"address\"])": "v", "local.all[0].attrs.id": "x", "core::getresources(\"*\", {})[0].id": "x",
		"join(\" \", [for v in resources(\"*\") : v.config.id])": "x",
	} {
		res := check(t, head+message+"\n  }\n}\n", rules.Options{}, u)
		if len(res.Findings) != 1 || res.Findings[0].Message != want || len(res.Diags) > 0 {
			t.Errorf("%s: %v, %v", message, res.Findings, res.Diags)
		}
	}
}

// In a pattern, * represents any characters.
func TestPattern(t *testing.T) {
	for _, x := range []struct {
		pattern, yes, no string
	}{
		{"aws_*", "aws_", "xaws_a"}, {"*_x", "a_x", "a_xy"}, {"a*b*c", "a1b2c", "abb"}, {"a*a", "aa", "a"}, {"*b*", "abc", "ac"}, {"prod/* -> dev/*", "prod/a -> dev/b", "prod/a -> prod/b"},
		{"a**b", "ab", "ba"}, {"a", "a", "aa"}, {"a.c*", "a.c", "abc"},
	} {
		p := rules.NewPattern(x.pattern)
		if !p.Match(x.yes) || p.Match(x.no) {
			t.Errorf("%q matches %q %v and %q %v", x.pattern, x.yes, p.Match(x.yes), x.no, p.Match(x.no))
		}
	}
}
