package run

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
)

// The page lists exactly the providers that are always shared and those that never are.
func TestSharedProvidersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/shared-providers.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[engine.DirectoryUse][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (always|never) \\|").FindAllStringSubmatch(string(text), -1) {
		use, source := engine.UsesDirectory, row[1]
		if row[2] == "always" {
			use = engine.IgnoresDirectory
		}
		source = strings.Replace(source, "*", "someone", 1)
		a, err := addr.ParseProvider(source)
		if err != nil || directoryUse(a) != use {
			t.Errorf("%s is in the table, but is not %s shared (%v)", row[1], row[2], err)
		}
		listed[use] = append(listed[use], a.Type)
		if use == engine.IgnoresDirectory {
			if a.Host = "registry.terraform.io"; directoryUse(a) != use {
				t.Errorf("%s of the other registry is not shared", row[1])
			}
			if a.Host = "example.com"; directoryUse(a) == use {
				t.Errorf("%s of some other registry is shared", row[1])
			}
		}
	}
	for _, l := range listed {
		slices.Sort(l)
	}
	if !slices.Equal(listed[engine.IgnoresDirectory], ignoring) || !slices.Equal(listed[engine.UsesDirectory], using) {
		t.Errorf("the page lists %v", listed)
	}
}
