package lint_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/rules/lint"
)

var update = flag.Bool("update", false, "rewrite the table in docs/lint.md")

// docs/lint.md has the table of rules.
func TestTable(t *testing.T) {
	const page = "../../../docs/lint.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| Code | Level | On by default | Finds | Example | Write instead | `-fix` |\n|---|---|---|---|---|---|---|\n")
	mark := func(on bool) string {
		if on {
			return "yes"
		}
		return ""
	}
	code := func(s string) string {
		if strings.Contains(s, "`") || s == "no `depends_on`" {
			return s
		}
		return "`" + s + "`"
	}
	for _, r := range lint.Rules() {
		instead := r.Instead
		if strings.ContainsAny(instead, "=[]()") && !strings.Contains(instead, "`") || instead == "var.x" {
			instead = "`" + instead + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", r.Code, r.Level, mark(r.On), r.Finds, code(r.Example), instead, mark(r.Fixes))
	}
	head, rest, _ := strings.Cut(string(text), "<!-- lints -->\n")
	_, tail, _ := strings.Cut(rest, "<!-- end -->\n")
	want := head + "<!-- lints -->\n" + b.String() + "<!-- end -->\n" + tail
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s does not have the table of rules: run go test ./internal/rules/lint -run TestTable -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSelect(t *testing.T) {
	on := func(s lint.Selection) (out []string) {
		for _, r := range lint.Rules() {
			if s[r.Code] {
				out = append(out, r.Code)
			}
		}
		return out
	}
	defaults, err := lint.Select(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		only, enable, disable []string
		want                  func([]string) bool
		err                   string
	}{
		{[]string{lint.UnusedLocal}, nil, nil, func(s []string) bool { return slices.Equal(s, []string{lint.UnusedLocal}) }, ""},
		{nil, []string{"all"}, nil, func(s []string) bool { return len(s) == len(lint.Rules()) }, ""},
		{nil, []string{"core:no-type-variable"}, nil, func(s []string) bool { return len(s) == len(on(defaults))+1 && slices.Contains(s, lint.NoTypeVariable) }, ""},
		{nil, nil, []string{lint.UnusedLocal}, func(s []string) bool { return len(s) == len(on(defaults))-1 }, ""},
		{[]string{"unused-locals"}, nil, nil, nil, `there is no lint "unused-locals"; did you mean "unused-local"?`},
		{nil, nil, []string{"nothing-like-it"}, nil, `there is no lint "nothing-like-it"`},
	} {
		s, err := lint.Select(c.only, c.enable, c.disable)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("error %v, want %s", err, c.err)
			}
			continue
		}
		if err != nil || !c.want(on(s)) {
			t.Errorf("only %q, enable %q, disable %q: %q, %v", c.only, c.enable, c.disable, on(s), err)
		}
	}
}
