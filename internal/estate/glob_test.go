package estate

import (
	"path"
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
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
		if got := glob(tt.pattern, tt.name); got != tt.want {
			t.Errorf("glob(%q, %q) = %t", tt.pattern, tt.name, got)
		}
	}
}

// FuzzGlob checks that a pattern without ** and braces means what path.Match says,
// and that ** in front matches whatever the rest matches.
func FuzzGlob(f *testing.F) {
	f.Add("a/*", "a/b")
	f.Add("**/**/x", "y/x")
	f.Add("{a,{b,c}}", "b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got := glob(pattern, name)
		if !strings.ContainsAny(pattern, "{}") && !strings.Contains(pattern, "**") && !strings.ContainsAny(pattern, `[]\`) {
			if want, err := path.Match(pattern, name); err == nil && want != got {
				t.Errorf("glob(%q, %q) = %t", pattern, name, got)
			}
		}
		if got && !strings.Contains(pattern, "{") && !glob("**/"+pattern, name) {
			t.Errorf("**/%s does not match %q", pattern, name)
		}
	})
}
