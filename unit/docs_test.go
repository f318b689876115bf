package unit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage holds docs/units-rules.md against what there is: everything that it says is
// shown somewhere is shown there, every rule has a scenario with its number in the
// name, and every worked example and every such scenario is on the page.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../docs/units-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	rules := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.Contains(line, "Shown by") {
			continue
		}
		var here []string
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			here = append(here, m[1])
			if !shownBy(m[1]) {
				t.Errorf("%q is shown by %s, which does not exist", strings.TrimSpace(cells[0]), m[1])
			}
		}
		if len(here) == 0 {
			t.Errorf("nothing shows this: %s", line)
		}
		named = append(named, here...)
		if m := regexp.MustCompile(`^ *(?:env )?(\d+) *$`).FindStringSubmatch(cells[0]); m != nil {
			prefix := "rule" + strings.Repeat("0", 2-len(m[1])) + m[1] + "_"
			if strings.Contains(cells[0], "env") {
				prefix = "env" + m[1] + "_"
			}
			rules[prefix] = true
			if !slices.ContainsFunc(here, func(n string) bool { return strings.HasPrefix(n, prefix) }) {
				t.Errorf("rule %s has no scenario that bears its number", strings.TrimSpace(cells[0]))
			}
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

// shownBy tells whether there is a scenario, script or tree of a name.
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
