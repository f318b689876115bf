package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// Every function of unit files has a signature with as many parameters as the function accepts.
func TestSignaturesOfUnitFunctions(t *testing.T) {
	for _, name := range syntax.ContextFunctions() {
		f := unitFunctionOf(name)
		if f == nil || f.doc == "" || f.result == "" {
			t.Errorf("%s has no signature", name)
			continue
		}
		if name == "deep_merge" || name == "mark_glob_as_read" || name == "read_terragrunt_config" || name == "run_cmd" {
			continue // these check their arguments when they run
		}
		fn, ok := new(functions.Library).Function(name, nil)
		if !ok {
			t.Fatalf("there is no function %s", name)
		}
		for n := range 6 {
			if n == 0 && len(f.required) == 0 {
				continue // it would run
			}
			args := slices.Repeat([]cty.Value{cty.UnknownVal(cty.String)}, n)
			_, err := fn.Call(args)
			if want := n >= len(f.required) && n <= len(f.required)+len(f.optional); want != (err == nil) {
				t.Errorf("%s with %d arguments: %v", name, n, err)
			}
		}
	}
}

func TestSignatureHelpInUnits(t *testing.T) {
	c := start(t, unpack(t, "-- terragrunt.hcl --\n-- main.tf --\n"), nil)
	for _, x := range []struct {
		name, text, label string
		active            int
	}{
		{"terragrunt.hcl", `locals { a = get_env("A", |`, "get_env(name string, [default string]) string", 1},
		{"terragrunt.hcl", `locals { a = upper(get_env("A", "b"), |`, "upper(str string)", 0},
		{"terragrunt.hcl", `locals { a = run_cmd("a", "b", "c", |`, "run_cmd(program string, ...arguments string) string", 1},
		{"main.tf", `locals { a = get_env(|`, "", 0},
	} {
		before, _, _ := strings.Cut(x.text, "|")
		c.opened(x.name, before)
		var sig *protocol.SignatureHelp
		c.call("textDocument/signatureHelp", c.position(x.name, []byte(before), len(before)), &sig)
		switch {
		case x.label == "" && sig != nil, x.label != "" && (sig == nil || sig.Signatures[0].Label != x.label || sig.ActiveParameter != x.active):
			t.Errorf("%s: %s", x.text, asJSON(sig))
		}
	}
	c.opened("terragrunt.hcl", "locals { a = get_repo_root() }")
	var h *protocol.Hover
	c.call("textDocument/hover", c.position("terragrunt.hcl", []byte("locals { a = get_repo_root() }"), 18), &h)
	if h == nil || !strings.Contains(h.Contents.Value, "get_repo_root() string") {
		t.Errorf("hover: %s", asJSON(h))
	}
}
