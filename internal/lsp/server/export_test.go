package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// Unpack writes the files of an archive to a new directory.
func Unpack(t testing.TB, text string) string { return unpack(t, text) }

// Hovering starts a server in a directory and returns its client's method hovered.
func Hovering(t testing.TB, dir string) func(dir, address string) (text, file string) {
	return start(t, dir, nil).hovered
}

// hovered returns the explanation in the hover at a name with an address, and the file with the name.
func (c *client) hovered(dir, want string) (text, file string) {
	c.t.Helper()
	paths, _ := filepath.Glob(filepath.Join(c.dir, dir, "*"))
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f := indexOf(path, raw)
		for i := range f.Names {
			o := &f.Names[i]
			if address(f, o) != want {
				continue
			}
			rel, _ := filepath.Rel(c.dir, path)
			var h *protocol.Hover
			c.call("textDocument/hover", c.position(filepath.ToSlash(rel), raw, o.Start), &h)
			if h == nil {
				return "", rel
			}
			_, body, _ := strings.Cut(h.Contents.Value, "```text\n")
			body = strings.TrimSuffix(body, "\n```")
			return strings.TrimSpace(body), rel
		}
	}
	return "", ""
}
