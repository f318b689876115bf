package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// A workspace whose directory is a symbolic link is read like any other.
func TestLinkedRoot(t *testing.T) {
	dir := unpack(t, "-- a b%/main.tf --\nmodule \"m\" {\n  source = \"./m\"\n  size   = 1\n}\n-- a b%/m/main.tf --\nvariable \"size\" {}\n")
	link := filepath.Join(t.TempDir(), "li nk%20")
	if err := os.Symlink(filepath.Join(dir, "a b%"), link); err != nil {
		t.Skip(err)
	}
	c := start(t, link, nil)
	p := c.at("m/main.tf", "variable \"")
	p["context"] = map[string]any{"includeDeclaration": true}
	var l []protocol.Location
	c.call("textDocument/references", p, &l)
	equal(t, "references", c.places(l), "m/main.tf:1 size", "main.tf:3 size")
	p["newName"] = "number"
	var e protocol.WorkspaceEdit
	if err := c.try("textDocument/rename", p, &e); err != nil || len(e.Changes) != 2 {
		t.Errorf("rename: %v, %s", err, asJSON(e))
	}
}
