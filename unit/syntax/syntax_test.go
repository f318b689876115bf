package syntax_test

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/unit/syntax"
)

// An editor reads a file without evaluating anything.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // the summary and part of the detail of the first message; "" for none
	}{
		{"terragrunt.hcl", "locals {\n  a = run_cmd(\"x\")\n}\ninputs = { b = local.a }\n", ""},
		{"terragrunt.hcl.json", `{"locals": {"a": "${get_env(\"A\")}"}, "inputs": {"b": 1}}`, ""},
		{"terragrunt.hcl", "input = {}\n", `Unsupported argument: Did you mean "inputs"?`},
		{"terragrunt.hcl", "terraform \"x\" {\n}\n", "Extraneous label for terraform: no labels"},
		{"terragrunt.hcl", "remote_state {\n}\nremote_state {\n}\n", "Duplicate remote_state block: Only one"},
		{"terragrunt.hcl", "inputs = = 1\n", "Invalid expression: "},
	} {
		f := syntax.Parse("/live/"+c.name, []byte(c.text), syntax.Language().Unit)
		if c.want == "" {
			if len(f.Diags) > 0 || f.Root.First("locals").Attr("a") == nil {
				t.Errorf("%s: %v", c.text, f.Diags)
			}
			continue
		}
		summary, detail, _ := strings.Cut(c.want, ": ")
		if len(f.Diags) == 0 || f.Diags[0].Summary != strings.TrimSuffix(summary, ":") || !strings.Contains(f.Diags[0].Detail, detail) {
			t.Errorf("%s: %v", c.text, f.Diags)
		}
	}
}

// Each called context function has a range, for tools that list what a file calls.
func TestCalls(t *testing.T) {
	f := syntax.Parse("/live/terragrunt.hcl", []byte("inputs = {\n  a = upper(get_env(\"A\"))\n}\n"), syntax.Language().Unit)
	if at := f.Calls["get_env"]; at == nil || at.Start.Line != 2 {
		t.Errorf("get_env: %v", at)
	}
	if f.Calls["upper"] != nil {
		t.Error("upper is no function of the unit language")
	}
}
