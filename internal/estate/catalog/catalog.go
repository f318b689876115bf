// Package catalog finds what a repository offers for use: modules, units, stacks and
// templates, each with the title, the description and the tags of its README.
//
// Main function: Discover. The one rule: it only reads, and runs nothing of what it finds.
package catalog

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Kind is what a component is.
type Kind string

// The kinds, in the order in which they are shown.
const (
	Template Kind = "template"
	Stack    Kind = "stack"
	Unit     Kind = "unit"
	Module   Kind = "module"
)

// A Component is a folder of a repository that can be used. Its form as JSON is that of
// docs/schemas/catalog.json.
type Component struct {
	Kind        Kind   `json:"kind"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	// Source is the repository, "" for one on this machine.
	Source string `json:"source"`
	// Dir is the folder in the repository, with slashes; "" for the repository itself.
	Dir             string   `json:"dir,omitempty"`
	Version         string   `json:"version,omitempty"`
	URL             string   `json:"url,omitempty"`
	ComponentSource string   `json:"component_source"`
	Doc             string   `json:"doc,omitempty"` // the README without front matter
	Tags            []string `json:"tags,omitempty"`

	Folder   string `json:"-"` // where it lies on this machine
	Markdown bool   `json:"-"` // the form of Doc
}

// Is reports whether a component is of a kind, by its files or by its tags.
func (c *Component) Is(k Kind) bool {
	return c.Kind == k || slices.ContainsFunc(c.Tags, func(tag string) bool { return strings.EqualFold(tag, string(k)) })
}

// Discover finds the components of a repository in a folder, below one of its
// folders ("" for all), in the order of their paths. name is the title of the repository
// itself where its README says none.
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
		if kind != "" && kind != Module { // what lies in them belongs to them
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

// kindOf tells what a folder with these entries is, "" for nothing.
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
		case name == "terragrunt.hcl":
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

// IsConfiguration reports whether a file of a name is configuration of a module.
func IsConfiguration(name string) bool {
	return slices.ContainsFunc([]string{".tf", ".tf.json", ".tofu", ".tofu.json"}, func(end string) bool { return strings.HasSuffix(name, end) })
}
