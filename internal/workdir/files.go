package workdir

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// OnDisk returns the files of the directory on disk, with names relative to it.
func (c *Directory) OnDisk() config.FS { return onDisk{c} }

type onDisk struct{ c *Directory }

func (f onDisk) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.c.Files.ReadDir(f.c.Path(name))
	if f.c.Files.Fixed() && f.c.Path(name) == f.c.Dir && errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a revision without the directory has no configuration
	}
	return entries, err
}

func (f onDisk) ReadFile(name string) ([]byte, error) { return f.c.Files.ReadFile(f.c.Path(name)) }

// NewSources returns the files on disk as they are now, for steps that share the loaded files.
func (c *Directory) NewSources() *engine.Sources { return &engine.Sources{FS: c.OnDisk()} }

// ReadOnce makes the directory read and parse each of its configuration files only once, for a
// command that does not change them. It has no effect in the directory of a unit.
func (c *Directory) ReadOnce() {
	if c.Sources == nil && c.View == nil {
		c.Sources, c.ownSources = c.NewSources(), true
	}
}

// Anew returns a copy of the directory that reads all configuration files from disk again, each once.
// init uses it, because files may change before and during init.
func (c *Directory) Anew() *Directory {
	n := *c
	n.View, n.Sources, n.ownSources = nil, nil, false
	n.ReadOnce()
	return &n
}

// FilesOf returns the configuration files of the directory: those of View, those of Sources, or those
// on disk.
func (c *Directory) FilesOf() config.FS {
	switch {
	case c.View != nil:
		return c.View
	case c.Sources != nil:
		return c.Sources.FS
	}
	return c.OnDisk()
}

// Root loads the root module alone. The caller must not modify the module.
func (c *Directory) Root() (*config.Module, diag.List) {
	if c.ownSources {
		root, ds := c.Sources.Load(".", c.Set)
		return root, slices.Clone(ds)
	}
	return config.Load(".", config.Options{FS: c.FilesOf(), Set: c.Set})
}

// SettingsRoot loads the root module for its backend and encryption blocks. It ignores errors in
// other blocks, such as resources. It returns an error for a file that cannot be parsed, because that
// file may contain one of the two blocks.
func (c *Directory) SettingsRoot() (*config.Module, diag.List) {
	root, ds := c.Root()
	ds = slices.DeleteFunc(slices.Clone(ds.Errors()), func(m *diag.Message) bool { return m.At != nil && c.besideSettings(*m.At) })
	return root, ds
}

// besideSettings reports whether a range is in a block that is not a terraform block, in a file
// without syntax errors.
func (c *Directory) besideSettings(at source.Range) bool {
	f := c.Set.File(at.Filename)
	if f == nil {
		return false
	}
	parsed, diags := hclnative.ParseConfig(f.Bytes, f.Path)
	if diags.HasErrors() {
		return false
	}
	body, ok := parsed.Body.(*hclsyntax.Body)
	return ok && slices.ContainsFunc(body.Blocks, func(b *hclsyntax.Block) bool {
		return b.Type != "terraform" && b.Range().Overlaps(at)
	})
}

// SelectWorkspace stores the name of the selected workspace in the data directory.
func (c *Directory) SelectWorkspace(name string) diag.List {
	err := inside.CheckData(c.DataPath(), c.DataPath())
	if err == nil {
		err = os.MkdirAll(c.DataPath(), 0o777)
	}
	if err == nil {
		err = atomicfile.WriteUnlinked(c.DataPath("environment"), []byte(name), 0o644)
	}
	if err != nil {
		return diag.Errorf(diag.CodeStateWorkspace, nil, "Failed to select workspace", "The selected workspace cannot be recorded: %s.", err)
	}
	return nil
}
