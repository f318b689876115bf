package run

import (
	"os"
	"regexp"
	"testing"

	"github.com/terrace-iac/terrace/addr"
)

// The table in the documentation must list exactly the providers for which indifferent is true.
func TestIndifferentProvidersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/shared-providers.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		n++
		a, err := addr.ParseProvider(row[1])
		if err != nil || !indifferent(a) {
			t.Errorf("%s is in the table, but is not shared (%v)", row[1], err)
		}
		a.Host = "registry.terraform.io"
		if !indifferent(a) {
			t.Errorf("%s of the other registry is not shared", row[1])
		}
		a.Host = "example.com"
		if indifferent(a) {
			t.Errorf("%s of some other registry is shared", row[1])
		}
	}
	source, err := os.ReadFile("processes.go")
	if err != nil {
		t.Fatal(err)
	}
	if in := len(regexp.MustCompile(`(?m)^\t+(?:case )?"[a-z]+"[,:]`).FindAll(source, -1)); in != n || n == 0 {
		t.Errorf("%d providers in the source, %d in the table", in, n)
	}
}
