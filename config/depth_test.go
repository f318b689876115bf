package config

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/source"
)

// TestTooDeep checks that files whose nesting would overflow the stack are rejected with a
// position, and that long but flat files are not.
func TestTooDeep(t *testing.T) {
	const n = 102_000
	line := func(s string) string { return strings.Repeat(s, 20_000) }
	tests := []struct {
		name, file, text string
		deep             bool
	}{
		{"brackets", "a.tf", "locals {\n a = " + strings.Repeat("[", n) + "\n}", true},
		{"brackets and strings that seem to close them", "a.tf", "locals {\n a = " + strings.Repeat(`[")]}",`, n/10) + "\n}", true},
		{"blocks", "a.tf", strings.Repeat("a {\n", n), true},
		{"negations", "a.tf", "locals {\n a = " + strings.Repeat("!", n) + "true\n}", true},
		{"minus", "a.tf", "locals {\n a = " + strings.Repeat("-", n) + "1\n}", true},
		{"sum", "a.tf", "locals {\n a = 1" + strings.Repeat("+1", n) + "\n}", true},
		{"sum over lines", "a.tf", "locals {\n a = (1" + strings.Repeat("+1\n", n) + ")\n}", true},
		{"conditionals", "a.tf", "locals {\n a = " + strings.Repeat("x ? y : ", n) + "1\n}", true},
		{"templates", "a.tf", "locals {\n a = " + strings.Repeat(`"${`, n) + "\n}", true},
		{"directives", "a.tf", "locals {\n a = \"" + strings.Repeat("%{if true}", n/4) + "\"\n}", true},
		{"heredoc directives", "a.tf", "locals {\n a = <<E\n" + strings.Repeat("%{if true}", n/4) + "\nE\n}", true},
		{"indexes", "a.tf", "locals {\n a = a" + strings.Repeat("[*]", n) + "\n}", true},
		{"JSON arrays", "a.tf.json", strings.Repeat("[", n), true},
		{"JSON objects", "a.tf.json", strings.Repeat(`{"a":`, n), true},
		{"JSON template", "a.tf.json", `{"locals": {"a": "${` + strings.Repeat("(", n) + `"}}`, true},
		{"JSON expression", "a.tf.json", `{"variable": {"a": {"type": "` + strings.Repeat("list(", n) + `"}}}`, true},

		{"many lines", "a.tf", "locals {\n" + line("  a = [ { b = \"c\" } ]\n") + "}\n", false},
		{"many elements", "a.tf", "locals {\n a = [\n" + line("  -1 + 2 > 3 ? (4) : 5,\n") + "]\n}\n", false},
		{"many blocks", "a.tf", line("locals {\n}\n"), false},
		{"many directives", "a.tf", "locals {\n a = <<E\n" + line("%{if true}x%{endif}\n") + "E\n}", false},
		{"many JSON objects", "a.tf.json", `{"locals": {"a": [` + line(`{"b": "${c[0] ? 1 : 2}"},`) + `1]}}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.deep {
				if at, deep := source.TooDeep(tt.file, []byte(tt.text)); deep {
					t.Fatalf("turned away at %s", at)
				}
				return
			}
			p := parseFile(FileRole{Path: tt.file}, nil, parse(tt.file, func() ([]byte, error) { return []byte(tt.text), nil }), &source.Set{})
			if ds := p.ds; len(ds) != 1 || ds[0].Code != "config/too-deep" || ds[0].At.Filename != tt.file || ds[0].At.Start.Line == 0 {
				t.Errorf("messages: %v", ds.Err())
			}
		})
	}
}

// TestDeepestAllowed checks that the deepest allowed nesting can be loaded.
func TestDeepestAllowed(t *testing.T) {
	for _, x := range []string{
		strings.Repeat("[", 4900) + strings.Repeat("]", 4900),
		strings.Repeat("!", 90_000) + "true",
		"1" + strings.Repeat("+1", 90_000),
		strings.Repeat("true ? 1 : ", 4900) + "1",
	} {
		m := mustLoad(t, "-- a.tf --\nvariable \"a\" {\n  default = "+x+"\n}\n")
		if m.Variables["a"].Required() {
			t.Error("no default")
		}
	}
}
