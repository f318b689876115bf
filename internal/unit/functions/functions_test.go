package functions

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
	l := &Library{}
	for _, name := range names {
		if _, ok := l.Function(name, nil); !ok {
			t.Errorf("there is no function %s", name)
		}
	}
	if _, ok := l.Function("upper", nil); ok {
		t.Error("a function of the configuration language is taken for one of the unit language")
	}
}
