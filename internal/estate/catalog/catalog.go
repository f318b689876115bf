// Package catalog finds the components of a repository: modules, units, stacks and templates.
// Each has the title, description and tags of its README.
//
// Main function: Discover. The one rule: the package only reads files and runs nothing.
package catalog

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Kind is the type of a component.
type Kind string

// The kinds, in the order in which they are listed.
const (
	Template Kind = "template"
	Stack    Kind = "stack"
	Unit     Kind = "unit"
	Module   Kind = "module"
)

// A Component is a directory of a repository that can be used in configuration.
// docs/schemas/catalog.json documents its JSON form.
type Component struct {
	Kind        Kind   `json:"kind"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	// Source is the address of the repository. "" means a repository on this machine.
	Source string `json:"source"`
	// Dir is the directory in the repository, with slashes. "" means the repository itself.
	Dir             string   `json:"dir,omitempty"`
	Version         string   `json:"version,omitempty"`
	URL             string   `json:"url,omitempty"`
	ComponentSource string   `json:"component_source"`
	Doc             string   `json:"doc,omitempty"` // the README without front matter
	Tags            []string `json:"tags,omitempty"`

	Folder   string `json:"-"` // path on this machine
	Markdown bool   `json:"-"` // Doc is Markdown, otherwise AsciiDoc
}

// Is reports whether a component is of a kind, according to its files or its tags.
func (c *Component) Is(k Kind) bool {
	return c.Kind == k || slices.ContainsFunc(c.Tags, func(tag string) bool { return strings.EqualFold(tag, string(k)) })
}

// Discover returns the components of the repository at root that are in or below one of its
// directories, sorted by path. below is that directory, or "" for the whole repository. name is
// the title of the repository itself if its README has none.
func Discover(root, below, name string, ignored Rules) ([]Component, error) {
	var out []Component
	var visit func(dir string) error
	visit = func(dir string) error {
		folder := filepath.Join(root, filepath.FromSlash(dir))
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		kind := kindOf(entries)
		if kind != "" && !ignored.Match(dir) {
			c := Component{Kind: kind, Title: name, Dir: dir, Folder: folder}
			if dir != "" {
				c.Title = path.Base(dir)
			}
			if err := c.read(entries); err != nil {
				return err
			}
			out = append(out, c)
		}
		if kind != "" && kind != Module { // directories in a component belong to it
			return nil
		}
		for _, en := range entries {
			if en.IsDir() && !strings.HasPrefix(en.Name(), ".") {
				if err := visit(path.Join(dir, en.Name())); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return out, visit(below)
}

// kindOf returns the kind of a directory with these entries, or "" if it is no component.
func kindOf(entries []os.DirEntry) Kind {
	kind := Kind("")
	for _, en := range entries {
		found := Kind("")
		switch name := en.Name(); {
		case name == ".boilerplate" && en.IsDir(), name == "boilerplate.yml" && !en.IsDir():
			return Template
		case en.IsDir():
		case name == "terragrunt.stack.hcl":
			found = Stack
		case name == "terragrunt.hcl", name == "terragrunt.hcl.json":
			found = Unit
		case IsConfiguration(name):
			found = Module
		}
		if found == Stack || found == Unit && kind != Stack || kind == "" {
			kind = found
		}
	}
	return kind
}

// IsConfiguration reports whether a file with this name contains configuration of a module.
func IsConfiguration(name string) bool {
	return slices.ContainsFunc([]string{".tf", ".tf.json", ".tofu", ".tofu.json"}, func(end string) bool { return strings.HasSuffix(name, end) })
}
