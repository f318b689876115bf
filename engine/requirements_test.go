package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
)

// Requirements are computed once, and a caller that changes its map changes no other.
func TestRequirementsAreCopied(t *testing.T) {
	dir := t.TempDir()
	text := "terraform {\n  required_providers {\n    x = { source = \"a/x\", version = \"> 1.0\" }\n  }\n}\n\nprovider \"x\" {\n  version = \"< 3.0\"\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	e, ds := engine.Open(t.Context(), engine.Options{Dir: dir})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	x, other := addr.Provider{Host: addr.DefaultHost, Namespace: "a", Type: "x"}, addr.Provider{Type: "other"}
	first := e.Requirements()
	first[other] = nil
	constraints := first[x]
	if len(constraints) != 2 {
		t.Fatalf("%d constraints: %v", len(constraints), first)
	}
	_ = append(constraints, constraints[0])
	second := e.Requirements()
	if _, ok := second[other]; ok || len(second) != 1 || len(second[x]) != 2 {
		t.Errorf("after a change of the first result: %v", second)
	}
	if cap(second[x]) != 2 {
		t.Error("a caller that appends would write into the shared constraints")
	}
}
