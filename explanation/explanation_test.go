package explanation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/zclconf/go-cty/cty"
)

func at(line int, text string) *explanation.SourceLine {
	return &explanation.SourceLine{File: "main.tf", Line: line, Column: 3, Source: text, Part: text, Layer: "base"}
}

// The text contains the value, each step with its line, and the lines that it replaced.
func TestPrint(t *testing.T) {
	cloud, err := addr.ParseProvider("example/cloud")
	if err != nil {
		t.Fatal(err)
	}
	over := at(1, `name = "b"`)
	over.Layer = "override 1"
	x := &explanation.Explanation{
		Address: "local.name", Value: cty.StringVal("b"), FromState: true,
		Steps: []*explanation.Step{
			{Kind: explanation.Local, Text: "local.name", At: over, Replaces: []explanation.SourceLine{*at(7, `name = "a"`)}},
			{Kind: explanation.Computed, Text: "computed here", Computed: true, From: []explanation.From{{Address: "var.a"}, {Address: "var.b"}}},
		},
		Unchecked: []addr.Provider{cloud},
	}
	want := `local.name = "b"   (as in state)

local.name
  main.tf:1 (override 1)
    name = "b"
  replaces main.tf:7 (base)
    name = "a"

computed here
  computed from var.a, var.b

The provider example/cloud is not installed here`
	var b strings.Builder
	if err := x.Print(&b); err != nil || !strings.HasPrefix(b.String(), want) {
		t.Errorf("%v: %s", err, cmp.Diff(want, b.String()))
	}
}

// Without a value, the first line contains the reason.
func TestPrintWithoutValue(t *testing.T) {
	last := func(k explanation.Kind) []*explanation.Step { return []*explanation.Step{{Kind: k, Text: "x"}} }
	for want, x := range map[string]*explanation.Explanation{
		"a has a value for each instance":           {Each: true, Steps: last(explanation.Local)},
		"a is not set\n":                            {Steps: last(explanation.NotSet)},
		"a has no value\n":                          {Steps: last(explanation.Failed)},
		"a is not known from configuration alone\n": {Steps: last(explanation.Provider)},
		"x\n": {Whole: true, Steps: last(explanation.Block)},
	} {
		x.Address = "a"
		var b strings.Builder
		if err := x.Print(&b); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%q: %v\n%s", want, err, b.String())
		}
	}
}

// A line that the previous step has shown is not repeated; only its relevant part is shown.
func TestPrintOneLineOnce(t *testing.T) {
	first, second, part := at(1, "a = b"), at(1, "a = b"), at(1, "a = b")
	second.Part, part.Part = "", "b"
	x := &explanation.Explanation{Address: "a", Steps: []*explanation.Step{{Text: "one", At: first}, {Text: "two", At: second}, {Text: "three", At: part}}}
	var b strings.Builder
	if err := x.Print(&b); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "    a = b\n") != 1 || strings.Count(got, "    b\n") != 1 {
		t.Error(got)
	}
}

// Tools can distinguish an unknown value from null, and find every property that the text contains.
func TestJSON(t *testing.T) {
	for _, c := range []struct {
		x    explanation.Explanation
		want string
	}{
		{explanation.Explanation{Address: "a"}, `{"format_version":"1.0","address":"a","known":false,"sensitive":false,"steps":[]}`},
		{explanation.Explanation{Address: "a", Value: cty.NullVal(cty.String)}, `{"format_version":"1.0","address":"a","value":null,"known":true,"sensitive":false,"steps":[]}`},
		{
			explanation.Explanation{Address: "a", Whole: true, Parts: []explanation.Part{{Name: "b", At: *at(2, "b = 1")}}},
			`{"format_version":"1.0","address":"a","known":false,"sensitive":false,"whole":true,"steps":[],"arguments":[{"name":"b","at":{"file":"main.tf","line":2,"column":3,"source":"b = 1","layer":"base"}}]}`,
		},
	} {
		got, err := json.Marshal(&c.x)
		if err != nil || string(got) != c.want {
			t.Errorf("%v: %s", err, cmp.Diff(c.want, string(got)))
		}
	}
}
