package server

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// Unpack writes the files of an archive to a new directory.
func Unpack(t testing.TB, text string) string { return unpack(t, text) }

// Hovering starts a server in a directory and returns its client's methods hovered and hoveredNearest.
func Hovering(t testing.TB, dir string) (hovered func(dir, address string) (text, file string), nearest func(file, address string) (text, dir, from string)) {
	c := start(t, dir, nil)
	return c.hovered, c.hoveredNearest
}

// choose chooses the viewpoint of a file.
func (c *client) choose(file, viewpoint string) {
	c.t.Helper()
	c.call("workspace/executeCommand", map[string]any{"command": "terrace.viewpoint", "arguments": []string{c.uri(file), viewpoint}}, nil)
}

// hoveredNearest returns the explanation in the hover at a name with an address in a file, as it is seen from the
// nearest viewpoint. It also returns the directory of the viewpoint, and the address there. dir is "" if the file
// has no viewpoint in another directory.
func (c *client) hoveredNearest(file, want string) (text, dir, from string) {
	c.t.Helper()
	if !index.KindOf(file).OfModule() {
		return "", "", ""
	}
	c.choose(file, "")
	var views viewpointsResult
	c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri(file)}}, &views)
	v := viewOf(views.Current)
	if views.Current != views.Default || len(views.All) > 0 && v.at == "" {
		c.t.Errorf("%s is seen from %q, and not from the default %q of %q", file, views.Current, views.Default, views.All)
	}
	path := filepath.Join(c.dir, file)
	if v.at == "" || v.dir() == filepath.Dir(path) {
		return "", "", ""
	}
	text, _ = c.hoveredIn([]string{path}, want)
	rel, err := filepath.Rel(c.dir, v.dir())
	if err != nil {
		c.t.Fatal(err)
	}
	return text, rel, v.address(want)
}

// hovered returns the explanation in the hover at a name with an address as the directory dir sees it, and
// the file with the name: a file of the directory, or one that its unit reads, seen from the unit.
func (c *client) hovered(dir, want string) (text, file string) {
	c.t.Helper()
	here := filepath.Join(c.dir, dir)
	paths, _ := filepath.Glob(filepath.Join(here, "*"))
	unit := filepath.Join(here, "terragrunt.hcl")
	_, err := os.Stat(unit)
	if err != nil && len(paths) > 0 { // explain runs in the directory, and not in that of a caller
		c.choose(filepath.ToSlash(filepath.Join(dir, "main.tf")), c.uri(dir))
	}
	if text, file := c.hoveredIn(paths, want); file != "" {
		return text, file
	}
	if err != nil {
		return "", ""
	}
	err = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || file != "" || filepath.Dir(path) == here || index.KindOf(path) != index.Unit && index.KindOf(path) != index.Module {
			return err
		}
		rel, err := filepath.Rel(c.dir, path)
		if err != nil {
			return err
		}
		var views viewpointsResult
		c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri(filepath.ToSlash(rel))}}, &views)
		if !slices.Contains(views.All, document.URI(unit)) {
			return nil
		}
		if index.KindOf(path) == index.Unit && !strings.HasPrefix(want, "inputs") && !strings.Contains(want, "_") {
			return nil // a name of the other file, and not of the unit
		}
		c.call("workspace/executeCommand", map[string]any{"command": "terrace.viewpoint", "arguments": []string{c.uri(filepath.ToSlash(rel)), document.URI(unit)}}, nil)
		text, file = c.hoveredIn([]string{path}, want)
		c.call("workspace/executeCommand", map[string]any{"command": "terrace.viewpoint", "arguments": []string{c.uri(filepath.ToSlash(rel)), ""}}, nil)
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return text, file
}

// hoveredIn returns the explanation in the hover at a name with an address in some files, and the file.
func (c *client) hoveredIn(paths []string, want string) (text, file string) {
	c.t.Helper()
	at := func(path string, raw []byte, offset int) (text, file string) {
		rel, _ := filepath.Rel(c.dir, path)
		var h *protocol.Hover
		c.call("textDocument/hover", c.position(filepath.ToSlash(rel), raw, offset), &h)
		if h == nil {
			return "", rel
		}
		_, body, _ := strings.Cut(h.Contents.Value, "```text\n")
		if seen, rest, ok := strings.Cut(body, ":\n\n"); ok && strings.HasPrefix(seen, "Seen from ") {
			body = rest
		}
		return strings.TrimSpace(strings.TrimSuffix(body, "\n```")), rel
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f := indexOf(path, raw)
		for i := range f.Names {
			if o := &f.Names[i]; address(f, o) == want {
				return at(path, raw, o.Start)
			}
		}
		for i := range f.Arguments {
			if a := &f.Arguments[i]; a.Address() == want && !a.Nested && f.At(a.Start) == nil {
				return at(path, raw, a.Start)
			}
		}
	}
	return "", ""
}

// ModuleFiles is an archive with a module that calls another.
const ModuleFiles = moduleFiles

// RenameSome renames random names in the files of a directory, and returns what it renamed. Outputs of
// the root module keep their names, and so do module calls, whose names affected lists.
func RenameSome(t testing.TB, dir string, r *rand.Rand, n int) (renamed []string) {
	c := start(t, dir, nil)
	for i := range n {
		name := []string{"main.tf", "m/main.tf"}[r.IntN(2)]
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		f := indexOf(filepath.Join(dir, name), raw)
		o := f.Names[r.IntN(len(f.Names))]
		if o.History || strings.HasPrefix(o.Addr, "output.") && o.Via == "" && name == "main.tf" || strings.HasPrefix(o.Addr, "module.") {
			continue
		}
		to := fmt.Sprintf("renamed_%d", i)
		p := c.position(name, raw, o.Start)
		p["newName"] = to
		var e protocol.WorkspaceEdit
		if err := c.try("textDocument/rename", p, &e); err != nil {
			t.Errorf("rename of %s: %v", o.Addr, err)
			continue
		}
		apply(t, &e)
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
		renamed = append(renamed, o.Addr+" to "+to)
	}
	return renamed
}

// Renaming starts a server in a directory and returns a function that renames a random name in a random
// file. kind is the kind of the name. err is the reason of a refusal.
func Renaming(t testing.TB, dir string) func(r *rand.Rand) (was, now, kind string, err error) {
	c := start(t, dir, nil)
	n := 0
	return func(r *rand.Rand) (was, now, kind string, err error) {
		var paths []string
		walk := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() {
				paths = append(paths, path)
			}
			return err
		})
		if walk != nil {
			t.Fatal(walk)
		}
		var f *index.File
		var raw []byte
		path := ""
		for f == nil || len(f.Names) == 0 {
			path = paths[r.IntN(len(paths))]
			if raw, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
			f = indexOf(path, raw)
		}
		o := f.Names[r.IntN(len(f.Names))]
		n++
		was, now = string(raw[o.Start:o.End]), fmt.Sprintf("renamed_%d", n)
		kind, _, _ = strings.Cut(o.Addr, ".")
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		p := c.position(filepath.ToSlash(rel), raw, o.Start)
		p["newName"] = now
		var e protocol.WorkspaceEdit
		if err := c.try("textDocument/rename", p, &e); err != nil {
			return was, now, kind, err
		}
		apply(t, &e)
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
		return was, now, kind, nil
	}
}
