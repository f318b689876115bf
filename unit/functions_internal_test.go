package unit

import (
	"testing"

	"github.com/terrace-iac/terrace/unit/syntax"
)

// Every function that syntax takes for one of the unit language is one.
func TestContextFunctions(t *testing.T) {
	names := syntax.ContextFunctions()
	if len(names) < 30 {
		t.Fatalf("only %d names", len(names))
	}
	for _, name := range names {
		if lookupFunction(name) == nil {
			t.Errorf("there is no function %s", name)
		}
	}
}
