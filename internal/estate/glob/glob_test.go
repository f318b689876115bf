package glob

import (
	"path"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a*", "abc", true},
		{"a/*", "a/b", true},
		{"a/*", "a/b/c", false},
		{"a/**", "a", true},
		{"a/**", "a/b/c", true},
		{"**/c", "a/b/c", true},
		{"**/c", "c", true},
		{"a/**/c", "a/c", true},
		{"a/**/c", "a/b/d", false},
		{"{a,b}/c", "b/c", true},
		{"{a,b}/c", "c/c", false},
		{"[", "[", false},
		{"a{", "a{", true},
	}
	for _, tt := range tests {
		if got := Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %t", tt.pattern, tt.name, got)
		}
	}
}

// FuzzMatch checks that a pattern without ** and braces matches as in path.Match, and that a
// leading ** matches everything that the rest matches.
func FuzzMatch(f *testing.F) {
	f.Add("a/*", "a/b")
	f.Add("**/**/x", "y/x")
	f.Add("{a,{b,c}}", "b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got := Match(pattern, name)
		if !strings.ContainsAny(pattern, "{}") && !strings.Contains(pattern, "**") && !strings.ContainsAny(pattern, `[]\`) {
			if want, err := path.Match(pattern, name); err == nil && want != got {
				t.Errorf("Match(%q, %q) = %t", pattern, name, got)
			}
		}
		if got && !strings.Contains(pattern, "{") && !Match("**/"+pattern, name) {
			t.Errorf("**/%s does not match %q", pattern, name)
		}
	})
}

func TestCompile(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a*", "abc", true}, {"a*", "a/b", false}, {"a/**", "a", false}, {"a/**", "a/b/c", true},
		{"**", "a/b", true}, {"**d", "sub/d", true}, {"a?c", "abc", true}, {"a?c", "a/c", false}, {"[ab]c", "bc", true},
		{"[!ab]c", "bc", false}, {"{a,b}/c", "b/c", true}, {"a.b", "axb", false}, {"[", "[", true}, {"a[", "a[", true},
		{"ä*", "äb", true}, {"a{", "a{", true}, {`\*`, "*", true}, {`\*`, "x", false},
	}
	for _, tt := range tests {
		if got := Compile(tt.pattern)(tt.name); got != tt.want {
			t.Errorf("Compile(%q)(%q) = %t", tt.pattern, tt.name, got)
		}
	}
}

// FuzzCompile checks that text without special characters only matches itself.
func FuzzCompile(f *testing.F) {
	f.Add("a*[b-", "x")
	f.Add("{a,{b}}", "b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got := Compile(pattern)(name)
		if !strings.ContainsAny(pattern, `*?[]{},\`) && got != (pattern == name) {
			t.Errorf("Compile(%q)(%q) = %t", pattern, name, got)
		}
	})
}
