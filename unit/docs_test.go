package unit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage compares docs/units-rules.md with the tests. Every section refers to an existing
// test, every rule has a scenario with its number in the name, and every worked example and
// scenario is on the page. The tests of the command line run the page's examples.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../docs/units-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	rules := map[string]bool{}
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		var here []string
		for _, line := range regexp.MustCompile("(?m)^Shown by: .*$").FindAllString(section, -1) {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
				here = append(here, m[1])
				if !shownBy(m[1]) {
					t.Errorf("%q is shown by %s, which does not exist", title, m[1])
				}
			}
		}
		if len(here) == 0 {
			t.Errorf("nothing shows this: %s", title)
		}
		named = append(named, here...)
		m := regexp.MustCompile(`^(env )?(\d+)\. `).FindStringSubmatch(title)
		if m == nil {
			t.Errorf("the section %q has no number", title)
			continue
		}
		prefix := fmt.Sprintf("rule%02s_", m[2])
		if m[1] != "" {
			prefix = "env" + m[2] + "_"
		}
		rules[prefix] = true
		if !slices.ContainsFunc(here, func(n string) bool { return strings.HasPrefix(n, prefix) }) {
			t.Errorf("rule %s has no scenario that bears its number", title)
		}
	}
	if len(rules) != 22+7 {
		t.Errorf("the page lists %d rules", len(rules))
	}
	for _, have := range slices.Concat(glob(t, "testdata/scenarios/rule*.txtar"), glob(t, "testdata/scenarios/env[0-9]*.txtar"), glob(t, "../examples/imports/*")) {
		name := strings.TrimSuffix(filepath.Base(have), ".txtar")
		if name != "modules" && !slices.Contains(named, name) && !slices.Contains(named, "examples/imports/"+name) {
			t.Errorf("%s is not on the page", have)
		}
	}
}

// shownBy reports whether a scenario, script or tree of that name exists.
func shownBy(name string) bool {
	for _, path := range []string{"testdata/scenarios/" + name + ".txtar", "../internal/cli/testdata/units/" + name + ".txtar"} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	info, err := os.Stat(filepath.Join("..", name))
	return err == nil && info.IsDir() && strings.HasPrefix(name, "examples/")
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := filepath.Glob(pattern)
	if err != nil || len(out) == 0 {
		t.Fatalf("nothing matches %s", pattern)
	}
	return out
}
