package value

import (
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// IsIdentifier agrees with HCL.
func TestIsIdentifier(t *testing.T) {
	for _, name := range []string{"", "a", "_", "__", "_a", "a_", "A9", "9a", "-a", "a-", "a-b", "a b", "a.b", "é", "aé", "\u200b", "a\n", "true", "null", "ä-1"} {
		if got, want := IsIdentifier(name), hclsyntax.ValidIdentifier(name); got != want {
			t.Errorf("%q: %v, HCL says %v", name, got, want)
		}
	}
}
