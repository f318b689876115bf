package syntax_test

import (
	"runtime"
	"testing"

	"github.com/terrace-iac/terrace/unit/syntax"
)

// Files with the same path and text are shared while one user has them.
func TestParses(t *testing.T) {
	var p syntax.Parses
	spec := syntax.Language().Unit
	first := p.Parse("/a/terragrunt.hcl", []byte("inputs = { a = 1 }\n"), spec)
	if again := p.Parse("/a/terragrunt.hcl", []byte("inputs = { a = 1 }\n"), spec); again != first {
		t.Error("an equal file is parsed again")
	}
	if other := p.Parse("/b/terragrunt.hcl", []byte("inputs = { a = 1 }\n"), spec); other == first {
		t.Error("files with different paths are shared")
	}
	if other := p.Parse("/a/terragrunt.hcl", []byte("inputs = { a = 2 }\n"), spec); other == first || string(other.Src.Bytes) != "inputs = { a = 2 }\n" {
		t.Error("files with different texts are shared")
	}
	runtime.KeepAlive(first)
	if f := (*syntax.Parses)(nil).Parse("/a/terragrunt.hcl", []byte("x"), spec); f == nil {
		t.Error("nil does not parse")
	}
}
