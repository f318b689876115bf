package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// A file that is a symbolic link belongs to the module of the link too: its names are found, and a rename that
// would change both modules is refused.
func TestSymbolicLinks(t *testing.T) {
	dir := unpack(t, "-- a/main.tf --\nvariable \"size\" {}\noutput \"o\" {\n  value = var.size\n}\n-- b/use.tf --\noutput \"p\" {\n  value = \"${var.size} ${local.own}\"\n}\nlocals {\n  own = 1\n}\n-- m/main.tf --\nmodule \"b\" {\n  source = \"../b\"\n  size   = 1\n}\n")
	for link, to := range map[string]string{"b/main.tf": "../a/main.tf", "b/gone.tf": "../nothing.tf", "b/device.tf": "/dev/null", "b/loop.tf": "loop.tf"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	c := start(t, dir, nil)
	p := c.at("b/use.tf", "var.si")
	p["context"] = map[string]any{"includeDeclaration": true}
	var refs []protocol.Location
	c.call("textDocument/references", p, &refs)
	equal(t, "references", c.places(refs), "b/main.tf:1 size", "b/main.tf:3 size", "b/use.tf:2 size", "m/main.tf:3 size")
	for _, x := range []struct{ name, before, err string }{
		{"b/use.tf", "var.si", "symbolic link"}, {"a/main.tf", "var.si", "symbolic link"}, {"m/main.tf", "  si", "symbolic link"}, {"b/use.tf", "local.ow", ""},
	} {
		p := c.at(x.name, x.before)
		p["newName"] = "new"
		if err := c.try("textDocument/rename", p, nil); x.err == "" && err != nil || x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err)) {
			t.Errorf("rename in %s behind %q: %v", x.name, x.before, err)
		}
	}
}
